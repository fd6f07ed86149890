"""Calls: routed to the copy with the fewest, queued in its engine, or held until one is ready."""

from __future__ import annotations

from functools import partial

from scheduler.hold import hold_cap_s
from scheduler.policy import Policy
from scheduler.regret import harmful
from scheduler.simulation.copies import Answer, Copy
from scheduler.simulation.interference import slowdown
from scheduler.simulation.limits import has_room, of_batch
from scheduler.simulation.state import Desk, Farm
from scheduler.simulation.trace import Call
from scheduler.world import Profile, Service

PAUSE_S = 1200  # a call after so long a pause begins a session
PROMPT_S = 2.0  # a first call that waits no longer was not made to wait
WINDOW_S = 300.0  # of first tokens, for the P99 of services that scale
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
NIGHT_FROM_H, NIGHT_UNTIL_H = 22, 7  # of site time: as the field reports its nights


def arrive(farm: Farm, call: Call) -> None:
    """A call comes in."""
    desk = farm.desks[call.service]
    farm.measures.calls += call.calls
    _count(farm, desk, call.calls)
    farm.dirty.add(call.service)
    if desk.routed:
        if (copy := choose(farm, desk)) is not None:
            admit(farm, copy, call, farm.now)
            return
        desk.turn.append((call, farm.now))
        farm.waiting_turn.add(call.service)
    else:
        desk.held.append((call, farm.now))
        desk.held_streams += call.stream
        farm.ask(farm.now)
    service = farm.services[call.service]
    farm.at(farm.now + patience_s(farm.policy.of_service(call.service), service, call), partial(_gives_up, farm, call))


def choose(farm: Farm, desk: Desk) -> Copy | None:
    """The copy with the fewest calls; None where batch calls wait for their turn."""
    there = desk.routed
    if of_batch(there[0]):
        there = [copy for copy in there if has_room(farm, copy)]
    return min(there, key=_load, default=None) if len(there) != 1 else there[0]


def turns(farm: Farm) -> None:
    """Calls that wait for their turn are let in, as far as there is room now."""
    for name in sorted(farm.waiting_turn):
        desk = farm.desks[name]
        while desk.turn and desk.routed and (copy := choose(farm, desk)) is not None:
            admit(farm, copy, desk.turn.popleft()[0], farm.now)
        if not desk.turn:
            farm.waiting_turn.discard(name)


def patience_s(policy: Policy, service: Service, call: Call) -> float:
    return policy.hold_stream_s if call.stream else hold_cap_s(policy, service)


def _load(copy: Copy) -> tuple[int, int]:
    return copy.in_flight, copy.seen.id


def _count(farm: Farm, desk: Desk, calls: int) -> None:
    """For tiers, for the forecast, and whether a session begins. It is a hit until it has waited."""
    days, seconds = divmod(farm.now + farm.machine.site_offset_s, DAY_S)
    day, second = int(days), int(seconds)
    desk.calls_by_day[day] += calls
    desk.hours_by_day[day] |= 1 << second // HOUR_S
    if desk.last_call_at is None or farm.now - desk.last_call_at > PAUSE_S:
        farm.measures.sessions += 1
        farm.measures.hits += bool(desk.routed)
        desk.opened_at = None if desk.routed else farm.now
        desk.starts.append((day, second // MINUTE_S))
    desk.last_call_at = farm.now


def admit(farm: Farm, copy: Copy, call: Call, came: float) -> None:
    """Into the engine: at once, or behind those that wait there."""
    copy.last_call_at = max(farm.now, copy.last_call_at or 0.0)
    farm.touched.add(copy.seen.id)
    if copy.seen.drain_at is not None:
        farm.ask(farm.now)
    if copy.running < copy.service.max_num_seqs:
        _run(farm, copy, call, came)
    else:
        copy.queue.append((call, came))


def _run(farm: Farm, copy: Copy, call: Call, came: float) -> None:
    """Its pace is that of the moment it begins: neighbours that come later are not reckoned."""
    slow = slowdown(farm.neighbours_busy(copy), farm.machine.interference)
    copy.running += 1
    farm.rate(copy)
    first_s = farm.now - came + call.prefill_s * slow
    _first_token(farm, copy, call, first_s)
    ends = farm.now + (call.prefill_s + call.decode_s) * slow
    if copy.service.profile is Profile.ONLINE:
        copy.late.append(Answer(farm.now, ends, first_s, slow))
    farm.at(ends, partial(_ends, farm, copy, copy.life, call))


def _first_token(farm: Farm, copy: Copy, call: Call, first_s: float) -> None:
    hour = (farm.now + farm.machine.site_offset_s) % DAY_S / HOUR_S
    kind = copy.kinds[hour >= NIGHT_FROM_H or hour < NIGHT_UNTIL_H]
    farm.measures.first_token[kind].add(first_s)
    farm.measures.alone[kind].add(call.prefill_s)
    if copy.service.max_replicas > 1:
        farm.desks[call.service].first_tokens.extend(((farm.now, first_s),) * call.calls)


def forget_late(farm: Farm, desk: Desk) -> None:
    """First tokens that are no longer of late."""
    late, oldest = desk.first_tokens, farm.now - WINDOW_S
    while late and late[0][0] < oldest:
        late.popleft()


def _ends(farm: Farm, copy: Copy, life: int, call: Call) -> None:
    """A call is answered; the next of the engine's queue begins, and a drain may be over."""
    if copy.life != life:
        return
    copy.running -= 1
    farm.measures.answered += call.calls
    farm.touched.add(copy.seen.id)
    farm.dirty.add(call.service)
    if copy.queue:
        _run(farm, copy, *copy.queue.popleft())
    else:
        farm.rate(copy)
    if farm.waiting_turn:
        turns(farm)


def served(farm: Farm, copy: Copy) -> None:
    """A copy answers from here on: all who were held go to it."""
    desk = farm.desks[copy.seen.service]
    if copy not in desk.routed:
        desk.routed.append(copy)
    while desk.held:
        call, since = desk.held.popleft()
        if of_batch(copy) and not has_room(farm, copy):
            desk.turn.append((call, since))
            farm.waiting_turn.add(call.service)
            continue
        farm.measures.waits.add(farm.now - since)
        farm.measures.of[call.service].waits.add(farm.now - since)
        if since == desk.opened_at and farm.now - since <= PROMPT_S:
            farm.measures.hits += 1  # it was none when it came
        admit(farm, copy, call, farm.now)
    desk.held_streams = 0
    farm.dirty.add(copy.seen.service)


def leave(farm: Farm, copy: Copy) -> None:
    """No new calls for it."""
    desk = farm.desks[copy.seen.service]
    if copy in desk.routed:
        desk.routed.remove(copy)
        farm.dirty.add(copy.seen.service)
        if desk.turn and not desk.routed:
            _hold_again(farm, desk)


def _hold_again(farm: Farm, desk: Desk) -> None:
    """Who waited for a turn waits for a load from here on."""
    desk.held_streams += sum(call.stream for call, _ in desk.turn)
    desk.held.extend(desk.turn)
    desk.turn.clear()
    farm.ask(farm.now)


def cut(farm: Farm, copy: Copy, *, killed: bool = False) -> None:
    """Its engine is gone, and with it the calls it had. Of several that came as one, one was in flight."""
    lost = copy.in_flight
    farm.measures.of[copy.seen.service].cut += lost
    if killed:
        farm.measures.cut_by_kills += lost
    else:
        farm.measures.cut += lost
        _blame(farm, copy.seen.service, lost)
    copy.queue.clear()
    copy.running, copy.life = 0, copy.life + 1
    farm.rate(copy)


def tell(farm: Farm, name: str) -> None:
    """All who are held are told why not, and when to come again."""
    desk = farm.desks[name]
    count = sum([call.calls for call, _ in desk.held])
    desk.held.clear()
    desk.held_streams = 0
    _told(farm, name, count)


def _gives_up(farm: Farm, call: Call) -> None:
    """Its time is over: the longest held ones are first."""
    desk = farm.desks[call.service]
    waits = next((e for e in desk.turn if e[0] is call), None)
    entry = next((e for e in desk.held if e[0] is call), None)
    if waits is not None:
        desk.turn.remove(waits)
    elif entry is not None:
        desk.held.remove(entry)
        desk.held_streams -= call.stream
    if waits is not None or entry is not None:
        _told(farm, call.service, call.calls)


def _told(farm: Farm, name: str, count: int) -> None:
    farm.measures.told += count
    farm.dirty.add(name)
    if count:
        farm.measures.of[name].told += count
        _blame(farm, name, count)


def _blame(farm: Farm, name: str, count: int) -> None:
    """Was it a reclaim that left these callers without an answer?"""
    at = farm.services[name].last_reclaimed_at
    if count and harmful(farm.now, at, farm.policy):
        farm.measures.harmful += count
        desk = farm.desks[name]
        if desk.reclaims and desk.reclaims[-1] == at:
            desk.reclaims.pop()  # one reclaim is harmful once
            farm.measures.harmful_reclaims += 1
        farm.measures.of[name].harmful_reclaims += 1
