"""What a pool's mode lets act. plan() is the same in every mode: this is asked by whoever records a plan."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.decision import TAKING, Decision, Verb
from scheduler.world import Phase, Replica, Want, World

OBSERVE, SUGGEST = "observe", "suggest"
#: What callers are told whose wish is only advised, by the mode of the pool.
TOLD = {OBSERVE: "not_managed", SUGGEST: "awaiting_approval"}


def pools_of(decision: Decision, world: World) -> list[str]:
    """The pools of its cards, the first card's first; empty when no card of it is known."""
    replica = world.replicas.get(decision.replica) if decision.replica is not None else None
    cards = decision.cards or (replica.cards if replica else ())
    return list(dict.fromkeys(world.cards[card].pool for card in cards if card in world.cards))


def advice(decision: Decision, world: World) -> str:
    """Empty when the pools let it act (the strictest counts), else what the callers of its service are told."""
    modes = {world.pools[pool].mode for pool in pools_of(decision, world) if pool in world.pools}
    if OBSERVE in modes:
        return TOLD[OBSERVE]
    return TOLD[SUGGEST] if SUGGEST in modes and takes(decision, world) else ""


def takes(decision: Decision, world: World) -> bool:
    """Does it take memory from somebody? A step that finishes what was begun with leave needs no leave again."""
    if decision.reason not in TAKING or decision.move is not None:  # a move that may be done was approved as such
        return False
    replica = world.replicas.get(decision.replica) if decision.replica is not None else None
    return replica is None or not begun(decision, replica)


def begun(decision: Decision, replica: Replica) -> bool:
    """A notice that is due, a drain that ends, and their like: the same reason stands on the replica already."""
    if decision.reason != replica.reason:
        return False
    noticed = replica.drain_at is not None and decision.verb is Verb.DRAIN and decision.not_before is None
    return noticed or (replica.phase is Phase.DRAINING and replica.want is not Want.READY)


def subject(decision: Decision, world: World, ordinal: int) -> str:
    """What an advice is about: the n-th copy of a service for a start of a new one, of all else the replica."""
    return f"{decision.service}#{ordinal}" if decision.replica is None else f"replica {decision.replica}"


def in_hand(world: World) -> dict[str, int]:
    """Service: copies that are ready or on their way, as far as the world alone tells."""
    counts: dict[str, int] = {}
    for replica in world.replicas.values():
        if replica.want is Want.READY and replica.phase in (Phase.STARTING, Phase.READY, Phase.FAILED):
            counts[replica.service] = counts.get(replica.service, 0) + 1
    return counts


def told(decisions: Iterable[Decision], world: World) -> dict[str, str]:
    """Service: what its waiting callers are told because their wish is only advised, or waits for a taking that is."""
    found: dict[str, str] = {}
    for decision in decisions:
        if decision.refusal is not None or not (why := advice(decision, world)):
            continue
        if (waiting := who_waits(decision, world)) is not None:
            found[waiting] = why
    return found


def who_waits(decision: Decision, world: World) -> str | None:
    """The service whose callers the decision would serve; None when it is for nobody who waits."""
    for_whom = str(decision.numbers.get("room_for", ""))
    name = for_whom if decision.verb in (Verb.DRAIN, Verb.STOP) else decision.service
    service = world.services.get(name)
    return name if service is not None and service.demand.held else None
