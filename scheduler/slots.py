"""How many on-demand services a pool keeps awake at once: the number N, counted as the pool would fill itself."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.draft import Draft
from scheduler.memory import allocatable_mib
from scheduler.pools import may_enter
from scheduler.world import Phase, Pool, Service


@dataclass(frozen=True, slots=True)
class Slots:
    """`awake` on-demand services now, `n` at most by their claims, of so many that may use the pool."""

    pool: str
    awake: int
    n: int
    services: int


def resident_slots(draft: Draft, pool: str) -> Slots:
    """Services in the order in which they are kept (priority, then lately used), each on the first card that has room.

    By whole claims: what is granted in full disturbs nobody. A card takes no more than its limit of awake replicas.
    """
    cards = [c for c in draft.world.cards.values() if c.pool == pool and c.healthy and not c.cordoned]
    rooms = [[allocatable_mib(draft.book(c.id)) or 0, draft.policy.max_replicas_per_card] for c in cards]
    there = {c.id for c in cards}
    awake = {r.service for r in draft.replicas.values() if r.phase is Phase.READY and there.intersection(r.cards)}
    may = [s for s in draft.services.values() if may_enter(draft, s, draft.world.pools.get(pool, Pool(pool)))]
    wanted = sorted((s for s in may if s.name in awake or s.demand.calls_7d), key=_order)
    most = max((room for room, _ in rooms), default=0)
    n = 0
    for service in wanted:
        mib = service.claim.fixed_mib + service.claim.kv_cap_mib
        seat = None if mib > most else next((r for r in rooms if r[0] >= mib and r[1] > 0), None)
        if seat is not None:
            seat[0] -= mib
            seat[1] -= 1
            n += 1
    return Slots(pool, len(awake & {s.name for s in may}), n, len(wanted))


def _order(service: Service) -> tuple[int, float, str]:
    return -service.priority, -(service.demand.last_call_at or 0.0), service.name
