"""How farms are run before anybody shares cards: everything resident, one model a card, the rest takes turns.

A `Planner` for the same simulation: each application has a card of its own with an engine that takes nearly all of it;
applications that came later share two cards: who is called is loaded, whoever sits there is stopped for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scheduler.decision import Decision, Reason, Verb
from scheduler.policy import Policy
from scheduler.world import Card, Phase, Replica, Service, Want, World

SHARED = 2  # cards left for all who came too late
ENGINE_PCT = 96  # of a card, that an engine takes when nobody tells it otherwise
IMPATIENT_S = 8.0  # whoever holds the shared card goes, in use or not, once a caller waited so long


def resident(world: World, calls: Mapping[str, float]) -> World:
    """The farm as it was: a card each for those with most calls, the others without. `calls`: a week, by service."""
    services = sorted(world.services.values(), key=lambda s: (-calls[s.name], s.name))
    cards = sorted(world.cards.values(), key=lambda c: c.id)
    own, rows = cards[: len(cards) - SHARED], {}
    for number, (service, card) in enumerate(zip(_by_size(services[: len(own)]), _large_first(own), strict=True), 1):
        rows[number] = Replica(number, service.name, (card.id,), Want.READY, Phase.READY, in_flight=0,
                               kv_granted_mib=_rest(service, card))  # fmt: skip
    return replace(world, replicas=rows)


def _by_size(services: list[Service]) -> list[Service]:
    return sorted(services, key=lambda s: (-s.claim.fixed_mib, s.name))


def _large_first(cards: list[Card]) -> list[Card]:
    return sorted(cards, key=lambda c: (-c.total_mib, c.id))


def _rest(service: Service, card: Card) -> int:
    return max(0, card.total_mib * ENGINE_PCT // 100 - card.driver_reserved_mib - service.claim.fixed_mib)


def everything_resident(world: World, policy: Policy, now: float) -> list[Decision]:
    """Starts again what was killed; on the shared cards the newest caller wins."""
    decisions = [
        Decision(Verb.START, r.service, Reason.FAULT, r.id, cards=r.cards, kv_granted_mib=r.kv_granted_mib)
        for r in world.replicas.values()
        if r.phase is Phase.FAILED
    ]
    shared = sorted(world.cards)[-SHARED:]
    there = {c: r for c in shared for r in world.replicas.values() if c in r.cards}
    waiting = [s for s in world.services.values() if s.demand.held and not _has_one(world, s)]
    for service in sorted(waiting, key=lambda s: (s.demand.held_since or now, s.name)):
        if not shared:
            break
        free = [c for c in shared if c not in there]
        card = min(free or shared, key=lambda c: (_used(there.get(c)), c))
        shared.remove(card)
        if card in free:
            rest = _rest(service, world.cards[card])
            decisions.append(Decision(Verb.START, service.name, Reason.HOLD, cards=(card,), kv_granted_mib=rest))
        else:
            decisions += _make_way(there[card], now - (service.demand.held_since or now))
    return decisions


def _has_one(world: World, service: Service) -> bool:
    return any(r.service == service.name and r.phase is not Phase.FAILED for r in world.replicas.values())


def _used(replica: Replica | None) -> float:
    return 0.0 if replica is None else max(replica.last_call_at or 0.0, replica.since)


def _make_way(replica: Replica, waited_s: float) -> list[Decision]:
    if replica.want is Want.STOPPED or replica.phase is Phase.STARTING:
        return []
    if replica.in_flight and waited_s < IMPATIENT_S:
        return []
    return [Decision(Verb.STOP, replica.service, Reason.ROOM, replica.id, force=True)]
