"""A caller's key with wide scope: every service its company may call, now and later. Collected once, by who asked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.db import transaction
from django.db.models import Sum
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.access import own
from console.accounts.keys import new_key
from console.accounts.models import ApiKey, Tenant, User
from console.people.key_forms import callable_by
from console.people.live import is_live
from console.requests import weigh
from console.requests.kind import AskForm, Filed, Kind, Stale
from console.requests.models import Entry, Request, State
from console.requests.steps import No, note, step
from console.state import moment
from console.usage.models import HourlyCalls

WEEK = timedelta(days=7)


class KeyForm(AskForm):
    tenant = forms.ModelChoiceField(Tenant.objects.none(), label=gettext_lazy("公司"))
    name = forms.CharField(
        label=gettext_lazy("名称"), max_length=80, help_text=gettext_lazy("哪个应用用它，例如：工单系统。")
    )
    progress_content = forms.BooleanField(label=gettext_lazy("等待装载时，把进度当作文字发进流式回答"), required=False)

    def __init__(self, person: User, data: QueryDict | None = None, **kwargs: Any) -> None:
        super().__init__(person, data, **kwargs)
        self.fields["tenant"].queryset = own(Tenant.objects.all(), person, "pk")  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        if given.get("tenant") is not None and _taken(given["tenant"].pk, given.get("name", "")):
            self.add_error("name", _("这家公司已有一个同名的有效密钥。换个名称，或轮换原来的。"))
        return given


def _taken(tenant: int, name: str) -> bool:
    return ApiKey.objects.filter(is_live(timezone.now()), tenant_id=tenant, name=name).exists()


class Key(Kind):
    key = "key"
    label = gettext_lazy("大范围密钥")
    about = gettext_lazy("能调用公司全部业务的密钥，以后新增的也算。批准后由提出的人领取，只显示一次。")

    def form(self, person: User, data: QueryDict | None, initial: Mapping[str, Any]) -> AskForm:
        until = timezone.now() + timedelta(days=90)
        return KeyForm(person, data, initial={"tenant": person.tenant_id, "until": until, **initial})

    def filed(self, form: Any) -> Filed:
        given = form.cleaned_data
        wanted = {"tenant": given["tenant"].pk, "name": given["name"], "progress_content": given["progress_content"]}
        return Filed(given["tenant"], None, given["name"], wanted)

    def says(self, row: Request) -> list[tuple[Any, str]]:
        found = [(gettext_lazy("名称"), row.subject), (gettext_lazy("能调用的业务"), _("公司能调用的全部"))]
        if (key := ApiKey.objects.filter(pk=row.undo.get("key", 0)).first()) is not None:
            found.append((gettext_lazy("开头"), f"{key.prefix}…"))
        return found

    def consequences(self, row: Request, now: float) -> dict[str, Any]:
        services = callable_by(row.tenant).count() if row.tenant is not None else 0
        slug, since = row.tenant.slug if row.tenant is not None else "", moment(now) - WEEK
        calls = HourlyCalls.objects.filter(tenant=slug, hour__gte=since).aggregate(n=Sum("calls"))["n"] or 0
        keys = ApiKey.objects.filter(is_live(timezone.now()), tenant_id=row.tenant_id or 0).count()
        return weigh.Weighed(facts=[("key", {"services": services, "calls": calls, "keys": keys})]).frozen(now)

    def apply(self, row: Request, now: datetime) -> dict[str, Any]:
        """Leave to collect it: the key itself is made when it is shown."""
        if row.tenant_id is None or _taken(row.tenant_id, row.wanted["name"]):
            raise Stale("name_taken")
        return {}

    def end(self, row: Request, now: datetime) -> None:
        ApiKey.objects.filter(pk=row.undo.get("key", 0), revoked_at=None).update(revoked_at=now)


def may_collect(row: Request, by: User) -> bool:
    return row.kind == Key.key and row.state == State.IN_FORCE and row.asked_by_id == by.pk and "key" not in row.undo


def collect(row: Request, by: User, now: datetime) -> str:
    """The key, once: of two clicks one makes it. Raises No."""
    if not may_collect(row, by) or row.tenant_id is None:
        raise No("overtaken")
    made = new_key()
    with transaction.atomic():
        key = ApiKey.objects.create(
            tenant_id=row.tenant_id,
            name=row.wanted["name"],
            prefix=made.prefix,
            digest=made.digest,
            progress_content=row.wanted["progress_content"],
            expires_at=row.until,
            created_by=by,
        )
        step(row, {State.IN_FORCE}, undo={**row.undo, "key": key.pk})
        note(row, Entry.Act.COLLECTED, by, now, prefix=made.prefix)
    return made.key
