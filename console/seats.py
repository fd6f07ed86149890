"""The short half of the seam: rows to a World with memory and phases only, for the board and its "what if".

A whole World of a large site takes 200 ms to read (traffic of a week, every service, every load time); what is drawn
needs none of that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from django.db.models import QuerySet

from console import machines, reading, state
from console.catalog.models import Replica as ReplicaRow
from console.catalog.models import Service as ServiceRow
from console.fleet.foreign import Taken, taken
from console.fleet.models import Card as CardRow
from console.same_rows import Standing
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
PRESENT = ReplicaRow.objects.filter(ended_at=None)


def _served_by(replicas: QuerySet[ReplicaRow]) -> QuerySet[ServiceRow]:
    """Found by the database: a thousand ids in a query cost more than the query."""
    return ServiceRow.objects.filter(pk__in=replicas.values("service_id")).order_by()


#: What a copy is built from, beside the names of its service and its calls in flight: other columns move each second.
OF_REPLICA = attrgetter(
    "pk", "cards", "want", "phase", "attempt", "phase_attempt", "kv_granted_mib", "measured_mib", "residue_mib",
    "drain_at", "progress", "external",
)  # fmt: skip
DRAWN = Standing(lambda: PRESENT, *COLUMNS)
PLANNED = Standing(lambda: PRESENT, *(name for name in COLUMNS if name not in DRAWN_ONLY))
SERVICES = Standing(
    lambda: _served_by(PRESENT),
    "pk", "name", "label", "tenant_id", "profile", "tier", "weights_mib", "kv_cap_mib", "headroom_mib", "overhead_mib",
    "cards_per_replica", "tenant__slug",
)  # fmt: skip
SUMMED_CARDS = Standing(
    lambda: CardRow.objects.filter(host__declared_gone=False).order_by(),
    "pk", "uuid", "host__name", "pool__name", "total_mib", "reserved_mib", "baseline_mib",
)  # fmt: skip
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


def seated(gateways: Gateways, rules: Policy, foreign: Taken, hosts: Collection[int] | None = None) -> Seated:
    """Five queries, tuples instead of models where there are many. `hosts`: only what is there."""
    if hosts is None:
        rows, services = DRAWN.all(), SERVICES.all()
    else:
        there = PRESENT.filter(host__in=hosts)
        rows, services = DRAWN.of(there), SERVICES.of(_served_by(there))
    cards = reading.card_rows(hosts)
    seen = machines.cards_of(((row, row.host.name, row.pool.name) for row in cards), foreign)
    return _seated(rows, services, seen, gateways, rules, cards)


def standing(gateways: Gateways, rules: Policy, foreign: Taken) -> World:
    """Cards, memory and phases of the whole farm. Three queries."""
    return _seated(PLANNED.all(), SERVICES.all(), machines.cards(foreign), gateways, rules).world


def memory(rules: Policy) -> World:
    """Copies, their services, and the cards of hosts that are not gone: as far as sums of memory go. Three queries."""
    cards = {
        row.uuid: Card(
            row.uuid, row.host__name, 0, "", row.total_mib, row.reserved_mib, None,
            baseline_mib=row.baseline_mib, pool=row.pool__name,
        )
        for row in SUMMED_CARDS.all()
    }  # fmt: skip
    world = _seated(PLANNED.all(), SERVICES.all(), cards, UNKNOWN, rules).world
    return replace(world, hosts={card.host: Host(card.host, None) for card in cards.values()})


def planning(now: float, gateways: Gateways, rules: Policy, services: Iterable[str]) -> World:
    """A World in which these services may be placed: they whole, their neighbours as memory and phases. No traffic."""
    world = standing(gateways, rules, taken(state.moment(now)))
    whole = state.services_named(services, rules)
    return replace(
        world,
        hosts=machines.hosts(gateways, now),
        services={**world.services, **whole},
        pools=machines.pools(),
    )


def _seated(
    rows: list[Any],
    services: list[Any],
    cards: dict[str, Card],
    gateways: Gateways,
    rules: Policy,
    card_rows: list[CardRow] | None = None,
) -> Seated:
    overhead_mib = rules.default_overhead_mib
    sized = _known_services.each([(row.pk, (row, overhead_mib)) for row in services], _sized)
    known = {service.name: service for service, _ in sized}
    offered = {row.pk: of for row, (_, of) in zip(services, sized, strict=True)}
    rows = [row for row in rows if row.service_id in offered]  # one may have been deleted in between
    seen = [state.traffic(row, gateways)[0] for row in rows] if gateways.known else [None] * len(rows)
    asked = [
        (row.pk, (OF_REPLICA(row), offered[row.service_id].name, in_flight))
        for row, in_flight in zip(rows, seen, strict=True)
    ]
    replicas = {one.id: one for one in _known.each(asked, _new)}
    return Seated(World(hosts={}, cards=cards, services=known, replicas=replicas), card_rows or [], rows, offered)


def _sized(row: tuple[Any, ...], overhead_mib: int) -> tuple[Service, Offered]:
    """A service as far as memory goes; `overhead_mib` where none was ever measured."""
    _pk, name, label, tenant, profile, tier, weights, kv_cap, headroom, overhead, per_replica, slug = row
    claim = Claim(weights, kv_cap, headroom, overhead_mib if overhead is None else overhead)
    known = Service(name, slug, claim, Profile(profile), Tier(tier), cards_per_replica=per_replica)
    return known, Offered(name, label, tenant)


def _new(values: tuple[Any, ...], service: str, in_flight: int | None) -> Replica:
    (pk, cards, said, phase, attempt, phase_attempt, kv_granted_mib, measured_mib, residue_mib, drain_at, progress,
     external) = values  # fmt: skip
    want = Want(said)
    return Replica(
        id=pk,
        service=service,
        cards=tuple(cards),
        want=want,
        phase=seen_phase(want, attempt, Phase(phase), phase_attempt),
        attempt=attempt,
        kv_granted_mib=kv_granted_mib,
        measured_mib=measured_mib,
        residue_mib=residue_mib,
        in_flight=in_flight,
        drain_at=state.at(drain_at),
        progress=progress,
        external=external,
    )
