"""The short half of the seam: rows to a World with memory and phases only, for the board and its "what if".

A whole World of a large site takes 200 ms to read (traffic of a week, every service, every load time); what is drawn
needs none of that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db.models import QuerySet

from console import reading, state
from console.catalog.models import Replica as ReplicaRow
from console.catalog.models import Service as ServiceRow
from console.fleet.foreign import Taken, taken
from console.fleet.models import Card as CardRow
from console.fleet.models import Host as HostRow
from console.unchanged import Unchanged
from console.wire import UNKNOWN, Gateways
from scheduler.lifecycle import seen_phase
from scheduler.policy import Policy
from scheduler.world import Card, Claim, Host, Phase, Profile, Replica, Service, Tier, Want, World

COLUMNS = (
    "pk",
    "service_id", "cards", "want", "phase", "attempt", "phase_attempt", "kv_granted_mib", "measured_mib", "residue_mib",
    "drain_at", "progress", "kv_used_pct", "waiting", "door_in_flight", "unrouted_version", "last_call_at", "loaded_at",
    "external",
)  # fmt: skip
#: Drawn, and nothing to a plan. Times cost most: each is parsed.
DRAWN_ONLY = frozenset({"last_call_at", "loaded_at", "kv_used_pct", "waiting"})
PLANNED = tuple(name for name in COLUMNS if name not in DRAWN_ONLY)
_known: Unchanged[Replica] = Unchanged()
_known_services: Unchanged[tuple[Service, Offered]] = Unchanged()


@dataclass(frozen=True, slots=True)
class Offered:
    """What the board prints of a service."""

    name: str
    label: str
    tenant: int


@dataclass(frozen=True, slots=True)
class Seated:
    """A World as far as memory goes, and the rows it came from; replicas as tuples with the names of `COLUMNS`."""

    world: World
    cards: list[CardRow]
    replicas: list[Any]
    services: dict[int, Offered]


def seated(
    gateways: Gateways,
    rules: Policy,
    foreign: Taken,
    hosts: Collection[int] | None = None,
    columns: tuple[str, ...] = COLUMNS,
) -> Seated:
    """Five queries, tuples instead of models where there are many. `hosts`: only what is there."""
    replicas = ReplicaRow.objects.filter(ended_at=None)
    if hosts is not None:
        replicas = replicas.filter(host__in=hosts)
    rows: list[Any] = list(replicas.values_list(*columns, named=True))
    known, offered = _services(replicas, rules)
    rows = [row for row in rows if row.service_id in offered]  # one may have been deleted in between
    cards = reading.card_rows(hosts)
    return Seated(
        World(
            hosts={},
            cards={row.uuid: state.card_of(row, foreign) for row in cards},
            services=known,
            replicas={row.pk: _replica(row, offered[row.service_id].name, gateways) for row in rows},
        ),
        cards,
        rows,
        offered,
    )


def memory(rules: Policy) -> World:
    """Copies, their services, and the cards of hosts that are not gone: as far as sums of memory go. Three queries."""
    replicas = ReplicaRow.objects.filter(ended_at=None)
    rows: list[Any] = list(replicas.values_list(*PLANNED, named=True))
    known, offered = _services(replicas, rules)
    there = CardRow.objects.filter(host__declared_gone=False).order_by()
    cards = [
        Card(uuid, host, 0, "", total, reserved, None, baseline_mib=baseline, pool=pool)
        for uuid, host, pool, total, reserved, baseline in there.values_list(
            "uuid", "host__name", "pool__name", "total_mib", "reserved_mib", "baseline_mib"
        )
    ]
    return World(
        hosts={card.host: Host(card.host, None) for card in cards},
        cards={card.id: card for card in cards},
        services=known,
        replicas={r.pk: _replica(r, offered[r.service_id].name, UNKNOWN) for r in rows if r.service_id in offered},
    )


def planning(now: float, gateways: Gateways, rules: Policy, services: Iterable[str]) -> World:
    """A World in which these services may be placed: they whole, their neighbours as memory and phases. No traffic."""
    seats = seated(gateways, rules, taken(state.moment(now)), columns=PLANNED)
    whole = state.services_named(services, rules)
    return replace(
        seats.world,
        hosts={row.name: state.host_of(row, gateways, now) for row in HostRow.objects.filter(declared_gone=False)},
        services={**seats.world.services, **whole},
        pools=state.pools(),
    )


def _services(of: QuerySet[ReplicaRow], rules: Policy) -> tuple[dict[str, Service], dict[int, Offered]]:
    """Found by the database: a thousand ids in a query cost more than the query."""
    columns = ServiceRow.objects.filter(pk__in=of.values("service_id")).order_by().values_list(
        "pk", "name", "label", "tenant_id", "profile", "tier", "weights_mib", "kv_cap_mib", "headroom_mib",
        "overhead_mib", "cards_per_replica", "tenant__slug",
    )  # fmt: skip
    known, offered = {}, {}
    for row in columns:
        service, offered[row[0]] = _known_services.of(
            row[0], (row, rules.default_overhead_mib), partial(_sized, row, rules)
        )
        known[service.name] = service
    return known, offered


def _sized(row: tuple[Any, ...], rules: Policy) -> tuple[Service, Offered]:
    """A service as far as memory goes."""
    _pk, name, label, tenant, profile, tier, weights, kv_cap, headroom, overhead, per_replica, slug = row
    claim = Claim(weights, kv_cap, headroom, rules.default_overhead_mib if overhead is None else overhead)
    known = Service(name, slug, claim, Profile(profile), Tier(tier), cards_per_replica=per_replica)
    return known, Offered(name, label, tenant)


def _replica(row: Any, service: str, gateways: Gateways) -> Replica:
    in_flight = state.traffic(row, gateways)[0]
    key = row.pk, len(row)  # drawn and planned rows have columns of their own
    return _known.of(key, (row, service, in_flight), lambda: _new(row, service, in_flight))


def _new(row: Any, service: str, in_flight: int | None) -> Replica:
    want = Want(row.want)
    return Replica(
        id=row.pk,
        service=service,
        cards=tuple(row.cards),
        want=want,
        phase=seen_phase(want, row.attempt, Phase(row.phase), row.phase_attempt),
        attempt=row.attempt,
        kv_granted_mib=row.kv_granted_mib,
        measured_mib=row.measured_mib,
        residue_mib=row.residue_mib,
        in_flight=in_flight,
        drain_at=state.at(row.drain_at),
        progress=row.progress,
        external=row.external,
    )
