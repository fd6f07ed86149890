"""The list of services: what is offered, by whom, and how it stands now. A fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.accounts.models import Tenant
from console.board.names import hue
from console.catalog.models import Replica, Service
from console.filters import TIERS
from console.same_rows import Rows
from console.services.standing import WORDS, Standing, phases_of, standing
from console.state import calls_7d, traffic
from console.tables import Choice, Column, Table
from console.wire import Gateways
from scheduler.policy import Policy
from scheduler.world import Phase

PRESENT = (Phase.STARTING, Phase.READY, Phase.DRAINING, Phase.ASLEEP)
TIER_ORDER = list(TIERS)
STATE_ORDER = list(WORDS)
REPLICAS = Rows("pk", "want", "phase", "attempt", "phase_attempt", "service_id", "door_in_flight", "unrouted_version")
SERVICES = Rows(
    "pk", "name", "label", "tenant_id", "model__name", "tier", "profile", "audience", "min_replicas", "max_replicas",
    "failures", "last_call_at", "whitelisted_until",
)  # fmt: skip


class Line(NamedTuple):
    """One service as listed: plain values, for a thousand of them are sorted to show fifty.

    Counts that nobody can say now are None, and P99 of too few calls; `kept_until` None: no exemption stands.
    """

    name: str
    label: str
    tenant: Tenant
    model: str
    tier: str
    profile: str
    audience: str
    standing: Standing
    present: int
    least: int
    most: int
    calls_7d: int
    in_flight: int | None
    held: int | None
    p99_ms: float | None
    last_call_at: datetime | None
    kept_until: datetime | None

    @property
    def tier_rank(self) -> int:
        return TIER_ORDER.index(self.tier)

    @property
    def state_rank(self) -> int:
        return STATE_ORDER.index(self.standing.state)

    @property
    def url(self) -> str:
        return f"{_prefix()}{self.name}"

    @property
    def hue(self) -> str:
        return hue(self.tenant)

    @property
    def offered_to(self) -> str:
        """Who besides its own company may call it; empty: nobody."""
        return "" if self.audience == Service.Audience.OWN else str(Service.Audience(self.audience).label)


@lru_cache(maxsize=1)
def _prefix() -> str:
    """Of a service's address: to look it up for each costs more than to draw it."""
    return reverse("service", args=["-"]).removesuffix("-")


TABLE = Table(
    name="services",
    row="catalog/_service.html",
    columns=(
        Column("label", pgettext_lazy("one", "业务"), ("label",)),
        Column("state", _("状态"), ("state_rank", "label")),
        Column("tenant", _("公司"), ("tenant__ordinal", "label")),
        Column("tier", _("档位"), ("tier_rank", "label")),
        Column("present", _("实例"), ("present",), numeric=True, hint=_("在显存里的，最少和最多")),
        Column("calls", _("7 日调用"), ("calls_7d",), numeric=True),
        Column("in_flight", _("在途 / 挂起"), ("in_flight",), numeric=True),
        Column("p99", "P99", ("p99_ms",), numeric=True, hint=_("近几分钟，不含挂起")),
        Column("called", _("最近调用"), ("last_call_at",), numeric=True),
        Column("kept", _("白名单到期"), ("kept_until",), numeric=True),
    ),
    filters=(
        Choice("tier", _("档位"), {t: (label, lambda row, t=t: row.tier == t) for t, label in TIERS.items()}),
        Choice(
            "state",
            _("状态"),
            {s.value: (w, lambda row, s=s: row.standing.state is s) for s, (w, _tone) in WORDS.items()},
        ),
    ),
    search=("label", "name", "model"),
    search_hint=_("名称、模型"),
    start="tenant",
    empty=(
        _("还没有业务"),
        _("一个业务是一个模型加一个名字，归一家公司。登记后，应用用它的名字就能调用。"),
    ),
)


def table(lines: Sequence[Line]) -> Table:
    """With the companies that appear, where there is more than one."""
    tenants = sorted({line.tenant.pk: line.tenant for line in lines}.values(), key=lambda t: t.ordinal)
    if len(tenants) < 2:
        return TABLE
    picks = {t.slug: (t.name, lambda row, pk=t.pk: row.tenant.pk == pk) for t in tenants}
    return replace(TABLE, filters=(Choice("tenant", _("公司"), picks), *TABLE.filters))


def lines(services: QuerySet[Service], gateways: Gateways, rules: Policy) -> list[Line]:
    """All of `services`, four queries."""
    rows = SERVICES.of(services)
    replicas = REPLICAS.of(Replica.objects.filter(ended_at=None, service__in=services))
    tenants, now = Tenant.objects.in_bulk(), timezone.now()
    calls, phases = calls_7d(now.timestamp()), phases_of(replicas)
    busy, held = in_flight(replicas, gateways), held_by_name(gateways)
    latencies = gateways.latencies.services
    found = []
    for pk, name, label, tenant, model, tier, profile, audience, least, most, failures, called, kept in rows:
        line = Line(
            name,
            label,
            tenants[tenant],
            model,
            tier,
            profile,
            audience,
            standing(failures, phases.get(pk, {}), rules, now.timestamp()),
            sum(phases[pk][phase] for phase in PRESENT) if pk in phases else 0,
            least,
            most,
            calls.get(name, 0),
            busy.get(pk, 0 if gateways.known else None),
            held.get(name, 0) if gateways.known else None,
            latencies[name].p99_ms if name in latencies else None,
            called,
            kept if kept is not None and kept > now else None,
        )
        found.append(line)
    return found


def in_flight(replicas: Iterable[Any], gateways: Gateways) -> Mapping[int, int]:
    """Service id → calls in flight; nothing where the gateways are not known."""
    result: dict[int, int] = defaultdict(int)
    for row in replicas:
        count, _quiet = traffic(row, gateways)
        if count is not None:
            result[row.service_id] += count
    return result


def held_by_name(gateways: Gateways) -> Mapping[str, int]:
    result: dict[str, int] = defaultdict(int)
    for gateway in gateways.gateways:
        for name, count in gateway.services.items():
            result[name] += count.held
    return result
