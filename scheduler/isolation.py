"""Compute isolation: how many batch calls a card carries at once beside its online neighbours.

Nothing here moves a replica. The limits go to the gateways with the routes: batch calls over them wait there.
Two parts: hours in which a batch service may run freely (outside them a fixed limit), and a controller per card that
halves the limit while an online neighbour is slower than it may be, and raises it one by one afterwards (additive
increase, multiplicative decrease, as in congestion control). What is unknown slows nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf

from scheduler.decision import Code, Decision, Numbers, Refusal
from scheduler.memory import HUNDRED
from scheduler.policy import Policy
from scheduler.signals import target_ms
from scheduler.world import Card, Phase, Profile, Replica, Service, World

DAY_MIN = 24 * 60


class Why(StrEnum):
    """What limits batch on a card, or of one service (DAY)."""

    NEIGHBOUR = "neighbour"  # an online neighbour answers slower than it may
    DAY = "day"  # it is not the hour of batch
    PRESSURE = "pressure"  # the card is nearly full and nobody may go: nothing is admitted


@dataclass(frozen=True, slots=True)
class Cap:
    """`calls` of batch services that may be in flight on a card at once, over all gateways."""

    calls: int
    why: Why


@dataclass(frozen=True, slots=True)
class Step:
    """The controller changes a card's limit; None is no limit. `numbers`: what it saw."""

    card: str
    old: int | None
    new: int | None
    numbers: Numbers = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sharing:
    """Who computes on one card: batch replicas, and online ones beside them."""

    batch: tuple[Replica, ...]
    online: tuple[Replica, ...]

    @property
    def in_flight(self) -> int | None:
        """Batch calls now; None when one replica cannot be counted."""
        counts = [r.in_flight for r in self.batch]
        return None if None in counts else sum(c for c in counts if c is not None)


def in_window(policy: Policy, minute: int | None) -> bool:
    """May batch run freely at this minute of the day? Equal ends are a whole day; an unknown minute is no reason."""
    begin, end = policy.batch_from_min, policy.batch_until_min
    if minute is None or begin == end:
        return True
    return begin <= minute < end if begin < end else minute >= begin or minute < end


def may_run(policy: Policy, service: Service, minute: int | None, now: float) -> bool:
    """Is it within the service's own batch hours, or, where it has none, within the policy's window?"""
    if service.batch_hours is None:
        return in_window(policy, minute)
    return any(begins <= now < ends for begins, ends in service.batch_hours)


def day_calls(world: World, policy: Policy, service: Service, now: float, pool: str = "") -> int | None:
    """Of a batch service outside its hours: batch calls that may be in flight on each of its cards. None: no limit.

    `pool`: of the card that is meant.
    """
    return calls_now(policy, service, world.site_minute, now, pool)


def calls_now(policy: Policy, service: Service, minute: int | None, now: float, pool: str = "") -> int | None:
    """The same at this minute of the day, site time."""
    if service.profile is not Profile.BATCH or may_run(policy, service, minute, now):
        return None
    return policy.of_service(service.name, pool).batch_day_calls


def not_its_hours(world: World, policy: Policy, service: Service, now: float) -> Refusal | None:
    """Why nothing is loaded for the service's callers now: outside its hours no call of it is let in at all."""
    if day_calls(world, policy, service, now) != 0:
        return None
    opens_s = opens_in_s(policy, service, world.site_minute, now)
    return Refusal(Code.OUTSIDE_WINDOW, {} if opens_s is None else {"retry_after_s": opens_s})


def opens_in_s(policy: Policy, service: Service, minute: int | None, now: float) -> float | None:
    """Seconds until its hours begin; None when that is not soon known."""
    if service.batch_hours is not None:
        return min((begins - now for begins, _ in service.batch_hours if begins > now), default=None)
    return None if minute is None else (policy.batch_from_min - minute) % DAY_MIN * 60.0


def shared_cards(world: World) -> dict[str, Sharing]:
    """Cards on which batch services compute now, with their online neighbours."""
    batch: dict[str, list[Replica]] = defaultdict(list)
    online: dict[str, list[Replica]] = defaultdict(list)
    for replica in world.replicas.values():
        if replica.phase not in (Phase.READY, Phase.DRAINING):
            continue
        profile = world.services[replica.service].profile if replica.service in world.services else None
        into = batch if profile is Profile.BATCH else online if profile is Profile.ONLINE else None
        for card in replica.cards if into is not None else ():
            into[card].append(replica)  # type: ignore[index]
    return {card: Sharing(tuple(found), tuple(online.get(card, ()))) for card, found in batch.items()}


def governed(world: World, card: Card) -> bool:
    """Does its pool let anything be done there? Where one only looks on, nobody is limited."""
    pool = world.pools.get(card.pool)
    return pool is None or pool.mode != "observe"


def stepped(card: Card, step: Step, now: float) -> Card:
    """The card once the step is taken."""
    down = step.new is not None and (step.old is None or step.new < step.old)
    lowered_at = now if down else card.batch_lowered_at
    return replace(card, batch_calls=step.new, batch_calls_at=now, batch_lowered_at=lowered_at)


def caps(world: World, decisions: Iterable[Decision]) -> dict[str, Cap]:
    """The limit that holds on each card where batch computes; a card without one is absent.

    `decisions` of this plan say which cards are under pressure without anybody who may go.
    """
    stuck = {c for d in decisions if d.refusal is not None and d.refusal.code is Code.NO_VICTIM for c in d.cards}
    found = {}
    for card_id in shared_cards(world):
        card = world.cards.get(card_id)
        if card is None or not governed(world, card):
            continue
        if (cap := cap_of(card.batch_calls, stuck=card_id in stuck)) is not None:
            found[card_id] = cap
    return found


def cap_of(batch_calls: int | None, *, stuck: bool = False) -> Cap | None:
    """A card's limit: of its pressure (`stuck`), else of its controller."""
    if stuck:
        return Cap(0, Why.PRESSURE)
    return None if batch_calls is None else Cap(batch_calls, Why.NEIGHBOUR)


def steps(world: World, policy: Policy, now: float) -> list[Step]:
    """What the controllers change now, by card id. Each step down is held for a while, or what follows late is
    mistaken for what remains."""
    shared = shared_cards(world)
    limited = [c for c in world.cards.values() if c.batch_calls is not None]
    left = {c.id for c in limited if c.id not in shared or not governed(world, c)}
    found = [Step(card, world.cards[card].batch_calls, None) for card in sorted(left)]
    for card_id, sharing in sorted(shared.items()):
        card = world.cards.get(card_id)
        if card is None or not governed(world, card):
            continue
        step = _step(world, policy.of_pool(card.pool), card, sharing, now)
        if step is not None and step.new != step.old:
            found.append(step)
    return found


def _step(world: World, policy: Policy, card: Card, sharing: Sharing, now: float) -> Step | None:
    slowed = worst(world, policy, sharing.online)
    if slowed is not None:
        waits = card.batch_calls is not None and _since(card.batch_lowered_at, now) < policy.batch_lower_s
        return None if waits else _lower(policy, card, sharing, slowed)
    if card.batch_calls is None or _since(card.batch_calls_at, now) < policy.batch_raise_s:
        return None
    higher = card.batch_calls + policy.batch_step_calls
    most = sum(world.services[r.service].max_num_seqs for r in sharing.batch)
    return Step(card.id, card.batch_calls, None if higher >= most else higher, {"limit_from": card.batch_calls})


def _since(at: float | None, now: float) -> float:
    return inf if at is None else now - at


def _lower(policy: Policy, card: Card, sharing: Sharing, slowed: Numbers) -> Step | None:
    """By the calls that run, where they are fewer than the limit: a limit above them would change nothing.

    No batch call in flight, or nobody knows: then batch is not seen to be the cause.
    """
    in_flight = sharing.in_flight
    if not in_flight:
        return None
    running = in_flight if card.batch_calls is None else min(in_flight, card.batch_calls)
    lower = max(policy.batch_least_calls, running * policy.batch_keep_pct // HUNDRED)
    if card.batch_calls is not None:
        lower = min(lower, card.batch_calls)
    return Step(card.id, card.batch_calls, lower, {**slowed, "in_flight": in_flight, "limit_to": lower})


def worst(world: World, policy: Policy, online: Sequence[Replica]) -> Numbers | None:
    """The online neighbour that is furthest from what it may be, with its numbers; None: all are well or unknown."""
    found = [n for r in online if (n := over(world, policy, r)) is not None]
    return max(found, key=lambda n: (float(n["over_pct"]), str(n["neighbour"])), default=None)


def over(world: World, policy: Policy, replica: Replica) -> Numbers | None:
    """By how much, in percent, one online replica is beyond its P99 target, its own quiet P99, or its usual gaps."""
    service = world.services[replica.service]
    rise_pct = policy.neighbour_rise_night_pct
    if not in_window(policy, world.site_minute):
        rise_pct = policy.neighbour_rise_day_pct
    asked: list[tuple[float, Numbers]] = []
    line_ms = target_ms(service, policy.of_service(service.name))
    if replica.p99_ms is not None and (replica.quiet_p99_ms or 0.0) < line_ms:  # else batch is not why it is over
        asked.append((_rise_pct(replica.p99_ms, line_ms), {"p99_ms": replica.p99_ms, "target_ms": line_ms}))
    if (risen := risen_pct(replica)) is not None and replica.p99_ms is not None:
        asked.append((risen - rise_pct, {"p99_ms": replica.p99_ms, "rise_pct": round(risen, 1)}))
    if replica.disturbance_pct is not None:
        asked.append((replica.disturbance_pct - rise_pct, {"disturbance_pct": round(replica.disturbance_pct, 1)}))
    beyond, seen = max(asked, key=lambda one: one[0], default=(0.0, {}))
    if beyond <= 0:
        return None
    return {"neighbour": replica.service, "over_pct": round(beyond, 1), **seen}


def risen_pct(replica: Replica) -> float | None:
    """Its P99 above that of quiet times; None while either is unknown."""
    if replica.p99_ms is None or not replica.quiet_p99_ms:
        return None
    return _rise_pct(replica.p99_ms, replica.quiet_p99_ms)


def _rise_pct(value: float, base: float) -> float:
    return (value / base - 1.0) * HUNDRED


def quiet_p99s(world: World, policy: Policy, now: float) -> Mapping[int, float]:
    """Replica id → its quiet P99 in ms as learned with this look; only what changed.

    Quiet: no batch call on its cards, and none for longer than a measurement reaches back.
    """
    shared = shared_cards(world)
    loud = {card for card, sharing in shared.items() if any(_called_lately(r, policy, now) for r in sharing.batch)}
    found = {}
    for replica in world.replicas.values():
        if replica.p99_ms is None or replica.phase is not Phase.READY or loud & set(replica.cards):
            continue
        if replica.service in world.services and world.services[replica.service].profile is Profile.ONLINE:
            learned = _learned(replica.quiet_p99_ms, replica.p99_ms, policy)
            if not _same(replica.quiet_p99_ms, learned, policy):
                found[replica.id] = learned
    return found


def _called_lately(replica: Replica, policy: Policy, now: float) -> bool:
    if replica.in_flight != 0:
        return True  # unknown is not nothing
    return replica.last_call_at is not None and now - replica.last_call_at < policy.quiet_after_s


def _same(known: float | None, learned: float, policy: Policy) -> bool:
    return known is not None and abs(learned - known) * HUNDRED <= known * policy.quiet_noise_pct


def _learned(known: float | None, seen: float, policy: Policy) -> float:
    if known is None:
        return round(seen, 1)
    return round(known + (seen - known) * policy.quiet_weight_pct / HUNDRED, 1)
