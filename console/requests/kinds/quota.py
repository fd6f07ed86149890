"""A quota: how much of a pool a company is promised, and how far beyond it may borrow; for a while, or for good."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from console import state
from console.accounts.access import own
from console.accounts.models import Role, Tenant, User
from console.filters import gib
from console.fleet.models import Pool
from console.fleet.quotas import Overpromised, Overtaken, put, quota_of
from console.quotas.effects import weighed
from console.quotas.forms import QuotaFields
from console.quotas.ledger import ledger
from console.requests import weigh
from console.requests.kind import AskForm, Filed, Kind, Stale
from console.requests.models import Request
from scheduler.allotment import Quota as Size
from scheduler.lending import plannable_mib, short_mib


class QuotaForm(QuotaFields, AskForm):
    def __init__(self, person: User, data: QueryDict | None = None, **kwargs: Any) -> None:
        super().__init__(person, data, **kwargs)
        self.fields["tenant"].queryset = own(Tenant.objects.all(), person, "pk")  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """More than the pool has left is not even asked for."""
        given = super().clean()
        tenant, pool, promised = (given.get(name) for name in ("tenant", "pool", "guaranteed_mib"))
        if tenant is not None and pool is not None and promised is not None:
            standing, rules = quota_of(tenant.pk, pool.pk), state.policy()
            short = short_mib(ledger(rules), rules, tenant.slug, pool.name, promised)
            if short > 0 and promised > (standing.guaranteed_mib if standing is not None else 0):
                said = _("这个资源池剩下的不够：至多能保证 %(most)s MiB。")
                self.add_error("guaranteed_mib", said % {"most": f"{max(0, promised - short):,}"})
        return given


class Quota(Kind):
    key = "quota"
    label = pgettext_lazy("one", "配额")
    about = gettext_lazy("一家公司在一个资源池里保证有多少显存，别家闲着时还能借多少；到时自己变回原样。")
    askers = frozenset({Role.OPERATOR, Role.TENANT_ADMIN})

    def form(self, person: User, data: QueryDict | None, initial: Mapping[str, Any]) -> AskForm:
        start = {"tenant": person.tenant_id, **initial}
        return QuotaForm(person, data, initial={**_standing(start), **start})

    def filed(self, form: Any) -> Filed:
        given = form.cleaned_data
        tenant, pool = given["tenant"], given["pool"]
        wanted = {"tenant": tenant.pk, "pool": pool.pk}
        wanted |= {name: given[name] for name in ("guaranteed_mib", "borrowable_mib")}
        return Filed(tenant, None, f"{tenant.name} · {pool.label}", wanted)

    def says(self, row: Request) -> list[tuple[Any, str]]:
        new, now = _size(row.wanted), _now(row)
        return [
            (gettext_lazy("给谁"), row.subject),
            (gettext_lazy("保证，GiB"), gib(new.guaranteed_mib)),
            (gettext_lazy("可借，GiB"), gib(new.borrowable_mib)),
            (gettext_lazy("现在"), _said(now)),
        ]

    def consequences(self, row: Request, now: float) -> dict[str, Any]:
        pool = _pool(row)
        if pool is None or row.tenant is None:
            return weigh.Weighed(facts=[("unclear", {})]).frozen(now)
        return weighed(weigh.look(now), row.tenant.slug, pool.name, _size(row.wanted)).frozen(now)

    def apply(self, row: Request, now: datetime) -> dict[str, Any]:
        pool = _pool(row)
        if pool is None or row.tenant is None:
            raise Stale("pool_gone")
        before = _now(row)
        try:
            put(row.tenant, pool, before, _size(row.wanted), _there(pool))
        except Overpromised:
            raise Stale("over_promised") from None
        except Overtaken:
            raise Stale("changed") from None
        return {"before": _row(before), "after": _row(_size(row.wanted))}

    def end(self, row: Request, now: datetime) -> None:
        """Back, where it still is as this request made it and there is as much to promise as before."""
        pool = _pool(row)
        if pool is None or row.tenant is None:
            return
        try:
            put(row.tenant, pool, _size(row.undo["after"]), _of(row.undo["before"]), _there(pool))
        except (Overtaken, Overpromised):
            return


def _standing(start: Mapping[str, Any]) -> dict[str, int]:
    """What is in force for the company and pool that the address names: a raise begins there."""
    tenant, pool = (str(start.get(name) or "") for name in ("tenant", "pool"))
    now = quota_of(int(tenant), int(pool)) if tenant.isdecimal() and pool.isdecimal() else None
    return {} if now is None else _row(now)


def _there(pool: Pool) -> int:
    rules = state.policy()
    return plannable_mib(ledger(rules), rules, pool.name)


def _pool(row: Request) -> Pool | None:
    return Pool.objects.filter(pk=row.wanted["pool"]).first()


def _now(row: Request) -> Size | None:
    return quota_of(row.tenant_id or 0, row.wanted["pool"])


def _size(values: Mapping[str, Any]) -> Size:
    return Size(values["guaranteed_mib"], values["borrowable_mib"])


def _of(values: Mapping[str, Any]) -> Size | None:
    return _size(values) if values else None


def _row(size: Size | None) -> dict[str, int]:
    """JSON; nothing for none."""
    return {} if size is None else {"guaranteed_mib": size.guaranteed_mib, "borrowable_mib": size.borrowable_mib}


def _said(size: Size | None) -> str:
    if size is None:
        return _("没有设：不限，也没有保证")
    values = {"guaranteed": gib(size.guaranteed_mib), "borrowable": gib(size.borrowable_mib)}
    return _("保证 %(guaranteed)s GiB，可借 %(borrowable)s GiB") % values
