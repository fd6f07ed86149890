"""Keep a service from reclaim until a time. The exemption itself is `Service.whitelisted_until`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from typing import Any

from django.db.models import F
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.accounts.access import own
from console.accounts.models import User
from console.catalog.models import Service
from console.filters import when
from console.requests import weigh
from console.requests.colder import colder, copies, held, month_fen
from console.requests.kind import AskForm, Filed, Kind, Stale, moment_field
from console.requests.models import Ended, Request, State
from console.service_field import ServiceField
from scheduler.memory import held_mib
from scheduler.policy import Policy

FRIDAY, EVENING = 4, time(18)


def friday(now: datetime) -> datetime:
    """The next Friday evening in the site's time: what people ask for."""
    local = timezone.localtime(now)
    day = local.date() + timedelta(days=(FRIDAY - local.weekday()) % 7)
    at = timezone.make_aware(datetime.combine(day, EVENING))
    return at if at > now + timedelta(hours=1) else at + timedelta(days=7)


class WhitelistForm(AskForm):
    service = ServiceField(label=pgettext_lazy("one", "业务"))
    until = moment_field(gettext_lazy("保留到"), gettext_lazy("站点时间；到时自己结束。"), required=True)

    def __init__(self, person: User, data: QueryDict | None = None, **kwargs: Any) -> None:
        super().__init__(person, data, **kwargs)
        self.fields["service"].queryset = own(Service.objects.all(), person)  # type: ignore[attr-defined]


def _stamp(moment: datetime | None) -> str | None:
    """In site time, for the record of changes."""
    return None if moment is None else f"{timezone.localtime(moment):%Y-%m-%d %H:%M}"


class Whitelist(Kind):
    key = "whitelist"
    label = gettext_lazy("白名单")
    about = gettext_lazy("一个业务在到期之前不因空闲或让位被收回；显存压力下最多换一张卡。")

    def form(self, person: User, data: QueryDict | None, initial: Mapping[str, Any]) -> AskForm:
        return WhitelistForm(person, data, initial={"until": friday(timezone.now()), **initial})

    def filed(self, form: Any) -> Filed:
        service: Service = form.cleaned_data["service"]
        return Filed(service.tenant, service, service.label, {"service": service.name})

    def says(self, row: Request) -> list[tuple[Any, str]]:
        return [(pgettext_lazy("one", "业务"), row.subject), (gettext_lazy("保留到"), when(row.until))]

    def steps(self, row: Request, rules: Policy) -> int:
        begins = row.starts_at or row.asked_at
        lasts_s = (row.until - begins).total_seconds() if row.until is not None else 0
        return 2 if lasts_s > rules.two_approvers_s else super().steps(row, rules)

    def consequences(self, row: Request, now: float) -> dict[str, Any]:
        seen = weigh.look(now)
        name = row.service.name if row.service is not None else ""
        mine, known = copies(seen.world, name), seen.world.services.get(name)
        by_card = [(card, held_mib(one, known, seen.rules)) for one in mine for card in one.cards]
        facts = [("copies", {"n": len(mine)})] if mine else [("nothing_held", {})]
        return weigh.Weighed(
            cards=tuple(dict.fromkeys(card for card, _ in by_card)),
            held_mib=held(seen.world, seen.rules, mine),
            colder=colder(seen.world, seen.rules, name, now),
            fen_month=month_fen(seen.world, by_card),
            facts=facts,
        ).frozen(now)

    def apply(self, row: Request, now: datetime) -> dict[str, Any]:
        """A later word replaces the earlier."""
        service = Service.objects.filter(pk=row.service_id or 0).first()
        if service is None:
            raise Stale("service_gone")
        Service.objects.filter(pk=service.pk).update(whitelisted_until=row.until)
        earlier = Request.objects.filter(kind=self.key, service=service, state=State.IN_FORCE).exclude(pk=row.pk)
        earlier.update(state=State.ENDED, ended_at=now, end_why=Ended.REPLACED, version=F("version") + 1)
        return {
            "before": {"whitelisted_until": _stamp(service.whitelisted_until)},
            "after": {"whitelisted_until": _stamp(row.until)},
        }

    def end(self, row: Request, now: datetime) -> None:
        Service.objects.filter(pk=row.service_id or 0, whitelisted_until=row.until).update(whitelisted_until=None)
