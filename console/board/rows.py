"""What the board reads from the database beside the World. A fixed number of queries, however many cards."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console import state
from console.accounts.models import Tenant
from console.board.names import Names
from console.board.picture import CardFacts, CardNumbers, Facts, ReplicaFacts, picture
from console.board.scopes import Held
from console.board.stranded import stranded_pct
from console.catalog.models import Replica, Service
from console.fleet.foreign import Taken, taken
from console.fleet.models import Card, Pool
from console.same_rows import Rows, Standing
from console.seats import Seated, seated
from console.unchanged import Unchanged
from console.wire import Gateways, ReplicaLatency, read_gateways
from scheduler.policy import Policy
from scheduler.world import World

CARDS = Rows("pk", "uuid", "host_id", "util_pct", "sampled_at")
REPLICAS = Rows(
    "pk", "service_id", "kv_used_pct", "waiting", "door_in_flight", "last_call_at", "loaded_at", "service__tenant_id"
)
#: The same of the whole farm: what the loop asks each second.
EVERY_CARD = Standing(lambda: Card.objects.order_by("host__name", "index"), *CARDS.columns)
EVERY_REPLICA = Standing(lambda: Replica.objects.filter(ended_at=None).order_by(), *REPLICAS.columns)
_known: Unchanged[ReplicaFacts] = Unchanged()


@dataclass(frozen=True, slots=True)
class Now:
    """The whole board at one moment, unreduced: pass it through `scopes.seen_by` before anybody sees it."""

    at: float
    cards: list[CardNumbers]
    held: Mapping[int, Held] | None
    stranded_pct: float | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """Numbers and the names printed beside them, of one moment. `world` holds memory and phases only."""

    now: Now
    names: Names
    policy: Policy
    world: World


def facts(at: float, gateways: Gateways) -> Facts:
    """Ids and measurements beside a World somebody has read already: three queries."""
    cards, replicas = EVERY_CARD.all(), EVERY_REPLICA.all()
    owners = {row.pk: row.service__tenant_id for row in replicas}
    return _facts(cards, replicas, owners, taken(state.moment(at)), gateways.latencies.replicas)


def _facts(
    cards: Iterable[Any],
    replicas: Iterable[Any],
    owners: Mapping[int, int],
    foreign: Taken,
    latencies: Mapping[int, ReplicaLatency],
) -> Facts:
    """`owners`: tenant id by replica id."""
    asked = [((row.pk, len(row)), (row, owners[row.pk], _p99_ms(latencies, row.pk))) for row in replicas]
    return Facts(
        cards={
            row.uuid: CardFacts(row.pk, row.util_pct, state.at(row.sampled_at), state.at(foreign.until(row)))
            for row in cards
        },
        replicas={key[0]: one for (key, _), one in zip(asked, _known.each(asked, _new), strict=True)},
    )


def _new(row: Any, owner: int, p99_ms: int | None) -> ReplicaFacts:
    used_at = _used_at(row)
    return ReplicaFacts(row.service_id, owner, row.kv_used_pct, row.waiting, row.door_in_flight, used_at, p99_ms)


def _used_at(row: Any) -> float | None:
    stamps: list[datetime] = [stamp for stamp in (row.last_call_at, row.loaded_at) if stamp is not None]
    return state.at(max(stamps, default=None))


def _p99_ms(latencies: Mapping[int, ReplicaLatency], replica: int) -> int | None:
    found = latencies.get(replica)
    return None if found is None or found.p99_ms is None else round(found.p99_ms)


def held(gateways: Gateways) -> Mapping[int, Held] | None:
    """Held calls by tenant id; None where no gateway table can be read. A query only where somebody is held."""
    if not gateways.known:
        return None
    counts = [(name, one) for gate in gateways.gateways for name, one in gate.services.items() if one.held]
    if not counts:
        return {}
    owners = dict(Service.objects.filter(name__in={name for name, _ in counts}).values_list("name", "tenant_id"))
    result: dict[int, Held] = {}
    for name, one in counts:
        if (owner := owners.get(name)) is not None:
            old = result.get(owner, Held())
            since = [at for at in (old.since, one.held_since) if at is not None]
            result[owner] = Held(old.count + one.held, min(since, default=None))
    return result


def now(
    at: float | None = None,
    world: World | None = None,
    gateways: Gateways | None = None,
    policy: Policy | None = None,
    hosts: Collection[int] | None = None,
) -> Now:
    """Read the board's numbers, or those of some hosts. Who has read the World (the control loop) hands it in."""
    at = time.time() if at is None else at
    policy = policy or state.policy()
    gateways = read_gateways() if gateways is None else gateways
    if world is None:
        return _now(at, *_seated(at, gateways, policy, hosts), gateways, policy)
    pools = Pool.objects.filter(stranded_at__isnull=False)
    return Now(at, picture(world, facts(at, gateways), policy, at), held(gateways), stranded_pct(pools))


def hosts_of(tenant: int | None) -> set[int] | None:
    """Hosts with a replica of the tenant: where all it may see of the farm is. None: staff, the whole farm."""
    if tenant is None:
        return None
    return set(Replica.objects.filter(ended_at=None, service__tenant=tenant).values_list("host_id", flat=True))


def board(at: float | None = None, hosts: Collection[int] | None = None) -> Board:
    """Numbers and names together. `hosts`: of these hosts' cards only, by id."""
    at, policy, gateways = time.time() if at is None else at, state.policy(), read_gateways()
    seats, foreign = _seated(at, gateways, policy, hosts)
    names = Names(
        Tenant.objects.in_bulk(),
        {pk: one.label for pk, one in seats.services.items()},
        {row.pk: row for row in seats.cards},
    )
    return Board(_now(at, seats, foreign, gateways, policy), names, policy, seats.world)


def _seated(
    at: float, gateways: Gateways, policy: Policy, hosts: Collection[int] | None = None
) -> tuple[Seated, Taken]:
    foreign = taken(state.moment(at))
    return seated(gateways, policy, foreign, hosts), foreign


def _now(at: float, seats: Seated, foreign: Taken, gateways: Gateways, policy: Policy) -> Now:
    owners = {row.pk: seats.services[row.service_id].tenant for row in seats.replicas}
    known = _facts(seats.cards, seats.replicas, owners, foreign, gateways.latencies.replicas)
    pools = {card.pool for card in seats.cards}
    return Now(at, picture(seats.world, known, policy, at), held(gateways), stranded_pct(pools))
