"""Batch beside online services: the product's controller, told what gateways would have measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from scheduler import isolation
from scheduler.decision import Code, Decision
from scheduler.policy import Policy
from scheduler.simulation import gate
from scheduler.simulation.copies import Copy
from scheduler.simulation.limits import of_batch
from scheduler.simulation.state import Farm
from scheduler.world import Phase, Profile, World

LOOK_S = 10.0  # latencies come in slots of ten seconds
SHARE = 0.99
CHUNK_S = 0.25  # of an answer, a sample of how slow it is: several chunks
AWAKE = (Phase.READY, Phase.DRAINING)


def start(farm: Farm) -> None:
    farm.at(farm.now + LOOK_S, partial(look, farm))


def look(farm: Farm) -> None:
    """One look of the controllers at the cards where batch calls run, or are limited still.

    Where a batch copy has no call only the neighbours' own P99 is to be learned, and more seldom.
    """
    farm.at(farm.now + LOOK_S, partial(look, farm))
    batch = [copy for copy in farm.copies.values() if of_batch(copy) and copy.seen.phase in AWAKE]
    cards = {card for copy in batch if copy.in_flight for card in copy.seen.cards} | farm.limited
    if farm.now - farm.quiet_at >= farm.policy.quiet_every_s:
        farm.quiet_at = farm.now
        _learn(farm, {card for copy in batch for card in copy.seen.cards})
    if not cards:
        return
    steps = isolation.steps(_picture(farm, cards, gaps=True), farm.policy, farm.now)
    changes = {step.card: isolation.stepped(farm.world.cards[step.card], step, farm.now) for step in steps}
    if changes:
        farm.world = replace(farm.world, cards={**farm.world.cards, **changes})
        farm.limited = {name for name, card in farm.world.cards.items() if card.batch_calls is not None}
        farm.measures.batch_lowered += sum(card.batch_lowered_at == farm.now for card in changes.values())
    gate.turns(farm)  # also when nothing changed: hours begin


def _learn(farm: Farm, cards: set[str]) -> None:
    """How quick each online neighbour is without batch."""
    world = _picture(farm, cards, gaps=False)
    for number, p99_ms in isolation.quiet_p99s(world, farm.policy, farm.now).items():
        farm.change(farm.copies[number], quiet_p99_ms=p99_ms)


def _picture(farm: Farm, cards: set[str], *, gaps: bool) -> World:
    """As much of the world as the controllers read."""
    there = {copy.seen.id: copy for card in sorted(cards) for copy in farm.on_card[card] if copy.seen.phase in AWAKE}
    for copy in there.values():
        if of_batch(copy):
            farm.change(copy, in_flight=copy.in_flight, last_call_at=copy.last_call_at)
        elif copy.service.profile is Profile.ONLINE:
            _measure(copy, farm, gaps=gaps)
    return World(
        hosts={},
        cards={name: farm.world.cards[name] for name in cards},
        services=farm.services,
        replicas={number: copy.seen for number, copy in there.items()},
        pools=farm.world.pools,
        site_minute=farm.site_minute,
    )


def _measure(copy: Copy, farm: Farm, *, gaps: bool) -> None:
    """What its gateways say of an online copy; answers that nothing looks back at are forgotten."""
    policy, late = farm.policy, copy.late
    oldest = farm.now - max(policy.p99_stretch_s, policy.disturbance_window_s + policy.disturbance_past_s)
    while late and late[0].ends < oldest:
        late.popleft()
    known = copy.seen.p99_ms, copy.seen.disturbance_pct
    found = p99_ms(copy, policy, farm.now), disturbance_pct(copy, policy, farm.now) if gaps else None
    if found != known:
        farm.change(copy, p99_ms=found[0], disturbance_pct=found[1])


def p99_ms(copy: Copy, policy: Policy, now: float) -> float | None:
    """Of first tokens of late; None below the number of samples that a P99 takes."""
    if len(copy.late) < policy.p99_samples:
        return None
    for window_s in (policy.p99_window_s, policy.p99_stretch_s):
        first = [one.first_s for one in copy.late if one.at >= now - window_s]
        if len(first) >= policy.p99_samples:
            return 1000 * _p99(first)
    return None


def disturbance_pct(copy: Copy, policy: Policy, now: float) -> float | None:
    """How much wider the gaps between chunks are than in the time before; None where too little was answered."""
    border = now - policy.disturbance_window_s
    fresh = _widest(copy, border, now, policy.p99_samples)
    past = _widest(copy, border - policy.disturbance_past_s, border, policy.p99_samples)
    return None if fresh is None or past is None else (fresh / past - 1) * 100


def _widest(copy: Copy, since: float, until: float, least: int) -> float | None:
    """P99 of how much slower than alone the pieces of answers came in this time; None with fewer of them."""
    pieces = [(one.slow, int((min(until, one.ends) - max(since, one.at)) / CHUNK_S)) for one in copy.late]
    came = sorted([piece for piece in pieces if piece[1] > 0], reverse=True)
    whole = sum([count for _, count in came])
    if whole < least:
        return None
    slower = 0
    for slow, count in came:
        slower += count
        if slower > whole * (1 - SHARE):
            return slow
    return came[-1][0]


def _p99(samples: list[float]) -> float:
    return sorted(samples)[min(len(samples) - 1, int(SHARE * len(samples)))]


def told(farm: Farm, decisions: Iterable[Decision]) -> None:
    """Cards under pressure from which nobody may go, by this plan: no batch call is let in there."""
    stuck = {c for d in decisions if d.refusal is not None and d.refusal.code is Code.NO_VICTIM for c in d.cards}
    if stuck != farm.stuck:
        farm.stuck = stuck
        gate.turns(farm)
