"""Decisions taken down, as the control loop does it: wants change, machines follow."""

from __future__ import annotations

from dataclasses import replace

from scheduler.decision import Code, Decision, Reason, Verb
from scheduler.lifecycle import changed
from scheduler.looks import Scaling
from scheduler.scaling import SCALE_OUT
from scheduler.simulation import gate, machines, night
from scheduler.simulation.copies import Copy
from scheduler.simulation.state import Farm
from scheduler.world import Eviction, Phase, Replica, Swap, Tier, Want

#: Refusals that say nothing about how scarce memory is.
NOT_FOR_ROOM = frozenset({Code.MAX_REPLICAS, Code.OUTSIDE_WINDOW})
GIVES_BACK = frozenset({Reason.IDLE, Reason.ROOM, Reason.BUDGET})
#: Who has to go by these goes for somebody else.
FOR_OTHERS = frozenset({Reason.ROOM, Reason.PRESSURE})


def record(farm: Farm, decision: Decision) -> None:
    """One decision, done or told."""
    if decision.refusal is not None:
        night.answered(farm, decision)
        _refused(farm, decision)
        return
    farm.measures.decisions += 1
    if decision.replica is None:
        _new(farm, decision)
        return
    copy = farm.copies.get(decision.replica)
    if copy is not None:
        _old(farm, copy, decision)


def _refused(farm: Farm, decision: Decision) -> None:
    refusal = decision.refuses_wish
    if refusal is None or refusal.passing:
        return
    if refusal.code not in NOT_FOR_ROOM:
        for pool in farm.services[decision.service].pools or farm.world.pools or {"default"}:
            farm.refused_at[pool] = farm.now
    if farm.desks[decision.service].held and decision.reason is Reason.HOLD:
        gate.tell(farm, decision.service)


def _new(farm: Farm, decision: Decision) -> None:
    """A start of a copy that did not exist."""
    seen = Replica(farm.next_id, decision.service, decision.cards, Want.READY, Phase.STARTING, attempt=0)
    farm.next_id += 1
    copy = Copy(changed(seen, decision, farm.now), farm.services[decision.service])
    add(farm, copy)
    _counted(farm, decision)
    night.began(farm, decision, copy)
    machines.begin(farm, copy)
    machines.watch(farm, set(copy.seen.cards))


def add(farm: Farm, copy: Copy) -> None:
    farm.copies[copy.seen.id] = copy
    farm.of_service[copy.seen.service].append(copy)
    for card in copy.seen.cards:
        farm.on_card[card].append(copy)


def _old(farm: Farm, copy: Copy, decision: Decision) -> None:
    before = copy.seen
    copy.seen = changed(before, decision, farm.now)
    if (until := decision.numbers.get("left_alone_until")) is not None:
        farm.change(copy, left_alone_until=float(until))
    match decision.verb:
        case Verb.START:
            _counted(farm, decision)
            machines.begin(farm, copy)
        case Verb.WAKE if before.phase is Phase.ASLEEP:
            machines.wake(farm, copy)
        case Verb.WAKE if before.want is Want.DRAINED:
            gate.served(farm, copy)
        case Verb.DRAIN if decision.not_before is not None:
            farm.ask(decision.not_before)
        case Verb.DRAIN:
            machines.drain(farm, copy)
        case Verb.SLEEP | Verb.STOP if before.phase is not Phase.FAILED:
            machines.go(farm, copy)
        case Verb.STOP:
            machines.remove(farm, copy)
    _remembered(farm, copy, decision, before)
    machines.watch(farm, set(before.cards) | set(copy.seen.cards))


def _counted(farm: Farm, decision: Decision) -> None:
    """A start that callers wait for is a cold one; soon after a reclaim it is one to regret."""
    name, desk = decision.service, farm.desks[decision.service]
    service = farm.services[name]
    farm.services[name] = replace(service, starts_28d=service.starts_28d + 1)
    if desk.held:
        farm.measures.cold_starts += 1
        farm.measures.of[name].cold_starts += 1
        at = service.last_reclaimed_at
        farm.measures.regrets += at is not None and farm.now - at < farm.policy.regret_within_s
    if decision.reason in SCALE_OUT and "raised_from" in decision.numbers:
        most = min(int(decision.numbers["desired"]), service.max_replicas)
        known = replace(
            service.scaling or Scaling(),
            raised_to=most, raised_waiting=int(decision.numbers["waiting"]), raised_at=farm.now,
            came_from=0, came_from_at=None,
        )  # fmt: skip
        farm.services[name] = replace(farm.services[name], scaling=known)
        since = farm.now if desk.raised is None else desk.raised[0]
        desk.raised = (since, most)


def _remembered(farm: Farm, copy: Copy, decision: Decision, before: Replica) -> None:
    """What later plans know of it: swaps, evictions, reclaims, the number that a scale-in came from."""
    name, service = decision.service, farm.services[decision.service]
    acts = decision.verb in (Verb.DRAIN, Verb.STOP) and decision.not_before is None
    if "room_for" in decision.numbers:
        farm.swaps.append(Swap(str(decision.numbers["room_for"]), name, farm.now))
    if decision.reason is Reason.PRESSURE and "frees_mib" in decision.numbers:
        farm.evictions.append(Eviction(name, before.cards[0], farm.now, decision.verb is Verb.DRAIN))
    if acts and decision.reason in GIVES_BACK and before.phase in (Phase.READY, Phase.ASLEEP):
        farm.services[name] = replace(service, last_reclaimed_at=farm.now)
        farm.measures.reclaims += 1
        farm.measures.of[name].reclaims += 1
        farm.desks[name].reclaims.append(farm.now)
    if acts and decision.reason in FOR_OTHERS and before.phase in (Phase.READY, Phase.ASLEEP):
        farm.measures.of[name].evictions += 1
    if acts and decision.reason is Reason.SURPLUS and "came_from" in decision.numbers:
        known = replace(
            service.scaling or Scaling(), came_from=int(decision.numbers["came_from"]), came_from_at=farm.now
        )
        farm.services[name] = replace(farm.services[name], scaling=known)


def settled(farm: Farm, name: str, tier: Tier) -> None:
    """A recomputed tier."""
    if farm.services[name].tier is not tier:
        farm.services[name] = replace(farm.services[name], tier=tier)
