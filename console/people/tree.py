"""The tree: the group (the site itself), its companies, their applications, with what each calls and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Sum

from console.accounts.models import ApiKey, Application, Tenant, User
from console.money.models import KeyCost
from console.money.months import month_of
from console.people.live import live
from console.usage.models import HourlyCalls

WEEK = timedelta(days=7)


@dataclass
class Leaf:
    """An application, or (None) a company's keys that belong to none."""

    application: Application | None
    keys: int = 0  # live ones
    calls: int = 0  # of the last 7 days
    fen: int | None = None  # of this month; None: not asked


@dataclass
class Branch:
    leaves: list[Leaf] = field(default_factory=list)
    rest: Leaf = field(default_factory=lambda: Leaf(None))


@dataclass(frozen=True)
class Group:
    """Sums over all companies."""

    companies: int
    applications: int
    people: int  # who can sign in, those of the centre too
    keys: int
    calls: int


def branches(tenants: Iterable[Tenant], now: datetime, costs: bool = False) -> dict[int, Branch]:
    """Company → its applications by name and the keys that belong to none. Four queries at most, however many."""
    wanted = {tenant.pk: tenant.slug for tenant in tenants}
    found = {pk: Branch() for pk in wanted}
    leaves: dict[int, Leaf] = {}
    for row in Application.objects.filter(tenant__in=wanted).select_related("owner").order_by("name"):
        leaves[row.pk] = Leaf(row, fen=0 if costs else None)
        found[row.tenant_id].leaves.append(leaves[row.pk])
    keys = ApiKey.objects.filter(tenant__in=wanted).values_list("pk", "tenant_id", "application_id")
    calls = _calls(list(wanted.values()), now)
    fen = _fen(list(wanted.values()), now) if costs else Counter[int]()
    alive = set(live().filter(tenant__in=wanted).values_list("pk", flat=True)) if keys else set()
    for key, tenant, application in keys:
        leaf = leaves[application] if application is not None else found[tenant].rest
        leaf.keys += key in alive
        leaf.calls += calls[key]
        if costs:
            leaf.fen = (leaf.fen or 0) + fen[key]
    return found


def _calls(slugs: list[str], now: datetime) -> Counter[int]:
    rows = HourlyCalls.objects.filter(tenant__in=slugs, hour__gte=now - WEEK).order_by()
    return Counter(dict(rows.values("key_id").annotate(n=Sum("calls")).values_list("key_id", "n")))


def _fen(slugs: list[str], now: datetime) -> Counter[int]:
    rows = KeyCost.objects.filter(tenant__in=slugs, month=month_of(now).date()).order_by()
    return Counter(dict(rows.values("key_id").annotate(n=Sum("fen")).values_list("key_id", "n")))


def group(now: datetime) -> Group:
    return Group(
        companies=Tenant.objects.count(),
        applications=Application.objects.count(),
        people=User.objects.filter(is_active=True).count(),
        keys=live().count(),
        calls=HourlyCalls.objects.filter(hour__gte=now - WEEK).aggregate(n=Sum("calls"))["n"] or 0,
    )


def by_service(application: Application, now: datetime) -> list[dict[str, Any]]:
    """What it called in the last 7 days, most first: service, calls, those that waited for a load, refused, tokens."""
    keys = ApiKey.objects.filter(application=application).values("pk")
    rows = HourlyCalls.objects.filter(tenant=application.tenant.slug, key_id__in=keys, hour__gte=now - WEEK)
    summed = (
        rows.order_by()
        .values("service")
        .annotate(
            n=Sum("calls"), waited=Sum("cold"), no=Sum("refused"), tokens=Sum("prompt_tokens") + Sum("generated_tokens")
        )
    )
    return [dict(one) for one in summed.order_by("-n", "service")]
