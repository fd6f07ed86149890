"""Who is worse off while a service keeps what it holds: in numbers, by the planner's own placement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scheduler.draft import Draft
from scheduler.estimate import load_estimate
from scheduler.kept import why_kept
from scheduler.memory import held_mib
from scheduler.placement import Placement, place, verdicts
from scheduler.policy import Policy
from scheduler.sums import start_of, sums_on
from scheduler.world import Card, Phase, Replica, Service, World

#: 365 days of 24 hours over 12 months.
HOURS_A_MONTH = 730
#: Why somebody is colder: no place is left, theirs is asked for next, or it sits on what another was promised.
NO_ROOM, NEXT, OWES = "no_room", "next", "owes"


@dataclass(frozen=True, slots=True)
class Colder:
    """A service that waits longer or sooner than it would: at least `wait_s` at its next call. `why`: above."""

    service: str
    why: str
    wait_s: float
    rough: bool


def copies(world: World, service: str) -> list[Replica]:
    """Of the service, those that hold memory or soon will."""
    return [r for r in world.replicas.values() if r.service == service and r.phase not in (Phase.STOPPED, Phase.FAILED)]


def held(world: World, rules: Policy, mine: Iterable[Replica]) -> int:
    """MiB over all their cards."""
    return sum(held_mib(one, world.services.get(one.service), rules) * len(one.cards) for one in mine)


def month_fen(world: World, mib_by_card: Iterable[tuple[str, int]]) -> int:
    """What so many MiB of these cards cost in a month at today's prices, fen."""
    here = [(world.cards[card], mib) for card, mib in mib_by_card if card in world.cards]
    return round(HOURS_A_MONTH * sum(card.price_fen_h * mib / card.total_mib for card, mib in here))


def colder(world: World, rules: Policy, service: str, now: float) -> list[Colder]:
    """While `service` stays: who finds no room that would, and who is asked next. Longest wait first."""
    mine = copies(world, service)
    cards = [world.cards[card] for card in dict.fromkeys(c for one in mine for c in one.cards) if card in world.cards]
    if not cards:
        return []
    gone = {pk: one for pk, one in world.replicas.items() if one.service != service}
    with_it, without = Draft(world, rules, now), Draft(replace(world, replicas=gone), rules, now)
    there = {one.service for one in gone.values() if one.phase in (Phase.READY, Phase.STARTING)}
    room_mib = max(sums_on(without)[card.id].room_mib for card in cards)
    absent = [other for name, other in world.services.items() if name not in there]
    fitting = [other for other in absent if start_of(other, rules).least_mib <= room_mib]  # most of a thousand do not
    found = [_shut_out(with_it, without, other, cards) for other in fitting]
    found += [_next(with_it, one) for one in gone.values() if _on(one, cards) and one.phase is Phase.READY]
    known = {one.service: one for one in found if one is not None and one.service != service}
    return sorted(known.values(), key=lambda one: (one.why != NO_ROOM, -one.wait_s, one.service))


def _on(replica: Replica, cards: Sequence[Card]) -> bool:
    return any(card.id in replica.cards for card in cards)


def _shut_out(with_it: Draft, without: Draft, other: Service, cards: Sequence[Card]) -> Colder | None:
    """It fits where the copies stand only if they go, and nowhere else."""
    free = [one.card for one in verdicts(without, other, cards) if one.offer is not None]
    if not free or any(one.offer is not None for one in verdicts(with_it, other, cards)):
        return None
    if isinstance(place(with_it, with_it.policy, other, with_it.now), Placement):
        return None
    load = load_estimate(with_it.world, with_it.policy, other, free[0].host)
    return Colder(other.name, NO_ROOM, load.seconds, load.rough)


def _next(draft: Draft, neighbour: Replica) -> Colder | None:
    """An on-demand copy beside them: what is asked for next when somebody needs room on these cards."""
    service = draft.world.services.get(neighbour.service)
    if service is None or neighbour.external or why_kept(draft, neighbour, for_room=True):
        return None
    load = load_estimate(draft.world, draft.policy, service, draft.world.cards[neighbour.cards[0]].host)
    return Colder(service.name, NEXT, load.seconds, load.rough)
