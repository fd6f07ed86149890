"""The loop of a simulation: the next event, and the planner when something asks for it."""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from heapq import nlargest

from scheduler.decision import Decision, Reason, Verb
from scheduler.draft import Draft
from scheduler.forecast import due as expected
from scheduler.fragmentation import together
from scheduler.looks import Scaling
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.reclaim import idle_limit_s
from scheduler.scaling import carriers
from scheduler.signals import copies as counted
from scheduler.signals import load, look
from scheduler.simulation import batch, gate, holding, learning, machines, night, recording
from scheduler.simulation.copies import Copy
from scheduler.simulation.measures import Measures
from scheduler.simulation.state import NEVER, Farm, Planner, Seen, wanted_ready
from scheduler.simulation.trace import Call, Machine, Trace
from scheduler.world import Phase, Service, Tier, World

TIMER_S = 30.0  # nothing is overlooked for longer
AGAIN_S = 0.25  # the loop's own pace while somebody waits
LOOK_AGAIN_S = 600.0  # at an idle copy that a plan left where it is
SAMPLE_S = 600.0  # of memory and fragmentation
SCALE_IN_S = 120.0  # how often spare copies are looked at
LEAST_SAMPLES = 50
SIGNAL, MANY = "signal", "many"


def simulate(
    world: World, policy: Policy, trace: Trace, until: float, *, began: float, machine: Machine | None = None,
    planner: Planner = plan,
) -> Measures:  # fmt: skip
    """Plays the trace from `began` to `until` (seconds since the epoch) on the farm as `world` shows it.

    The same for the same arguments. `planner` decides: the product's, or one to compare it with.
    """
    going = steps(world, policy, trace, until, began=began, machine=machine, planner=planner, every_s=until - began)
    while True:
        try:
            next(going)
        except StopIteration as end:
            measures: Measures = end.value
            return measures


def steps(
    world: World, policy: Policy, trace: Trace, until: float, *, began: float, every_s: float,
    machine: Machine | None = None, planner: Planner = plan, strands: bool = True,
) -> Generator[float, None, Measures]:  # fmt: skip
    """The same in pieces of simulated time: yields how far it has come, and at last returns what was measured.

    `strands` False: memory as a whole, cards in use and fragmentation are not measured.
    """
    farm = Farm(world, policy, machine or Machine(), planner, began, began)
    _settle_in(farm)
    learning.start(farm, trace.habits, tiers_stand=trace.tiers_stand)
    night.start(farm)
    batch.start(farm)
    farm.at(began + TIMER_S, partial(_timer, farm))
    if strands:
        farm.at(began, partial(_sample, farm, began))
    for growth in trace.growths:
        farm.at(growth.at, partial(machines.grow, farm, growth))
    calls, at = _Calls(trace.calls), began
    while at < until:
        at = min(until, at + every_s)
        _play(farm, calls.until(at), at)
        yield at
    farm.now = until
    for card in world.cards:
        farm.account(card)
    holding.note(farm, world.cards)
    farm.measures.seconds = until - began
    return farm.measures


class _Calls:
    """Calls in pieces: the first one of a later piece waits for it."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self.rest = iter(calls)
        self.ahead = next(self.rest, None)

    def until(self, at: float) -> Iterator[Call]:
        while (call := self.ahead) is not None and call.at <= at:
            self.ahead = next(self.rest, None)
            yield call


def _settle_in(farm: Farm) -> None:
    """Copies that are there already."""
    farm.services.update(farm.world.services)
    farm.load_times.update(farm.world.load_times)
    farm.wake_times.update(farm.world.wake_times)
    for replica in farm.world.replicas.values():
        copy = Copy(replica, farm.services[replica.service])
        recording.add(farm, copy)
        farm.next_id = max(farm.next_id, replica.id + 1)
        if wanted_ready(copy):
            gate.served(farm, copy)
    farm.sample(set(farm.world.cards))
    holding.note(farm, farm.world.cards)
    farm.ask(farm.now)


def _play(farm: Farm, calls: Iterator[Call], until: float) -> None:
    """Calls, events and plans in the order of time; at one time calls first, plans last."""
    call = next(calls, None)
    while True:
        call_at = NEVER if call is None else call.at
        event_at = farm.events[0][0] if farm.events else NEVER
        first = min(call_at, event_at, farm.plan_at)
        if first > until:
            return
        farm.now = max(farm.now, first)
        if call is not None and call_at <= first:
            gate.arrive(farm, call)
            call = next(calls, None)
        elif event_at <= first:
            heapq.heappop(farm.events)[2]()
        else:
            _plan(farm)


def _plan(farm: Farm) -> None:
    farm.plan_at, farm.planned_at = NEVER, farm.now
    world = farm.picture()
    farm.measures.plans += 1
    decisions = farm.planner(world, farm.policy, farm.now)
    for decision in decisions:
        recording.record(farm, decision)
    batch.told(farm, decisions)
    notices = []
    for number, copy in farm.copies.items():
        if copy.seen.drain_at is not None:
            notices.append(copy.seen.drain_at)
        elif _idle(farm, copy):
            farm.looked[number] = farm.now
    if notices:
        farm.ask(max(min(notices), farm.now + AGAIN_S))
    if any(_asks_for_more(decision) for decision in decisions):
        farm.ask(farm.now + 1.0)  # the loop's next tick
    elif any(d.refusal is not None and d.refusal.passing for d in decisions):
        farm.ask(farm.now + TIMER_S / 6)


def _asks_for_more(decision: Decision) -> bool:
    """May the next plan add to it? After a load that nobody waits for another may begin; who was evicted is rebuilt.

    All else is gone on with when something happens: a drain is over, memory is back, a copy is ready, a notice is due.
    """
    if decision.refusal is not None:
        return False
    return decision.verb in (Verb.START, Verb.WAKE) or decision.reason is Reason.PRESSURE


def _timer(farm: Farm) -> None:
    """Looks at load, and asks the planner where time alone may have changed its answer."""
    farm.at(farm.now + TIMER_S, partial(_timer, farm))
    scaling = [_look(farm, service) for service in list(farm.services.values()) if service.max_replicas > 1]
    quiet_s = farm.now - farm.planned_at
    if SIGNAL in scaling or (MANY in scaling and quiet_s >= SCALE_IN_S) or night.due(farm) or _time_is_up(farm):
        farm.ask(farm.now)


def _look(farm: Farm, service: Service) -> str:
    """A look at the load of a service that may scale: a signal, more copies than it must have, or nothing to plan."""
    desk = farm.desks[service.name]
    own = [c for c in desk.routed if c.seen.phase is Phase.READY]
    farm.dirty.add(service.name)
    gate.forget_late(farm, desk)
    first = [seconds for _, seconds in desk.first_tokens]
    p99 = 1000 * nlargest(len(first) - int(0.99 * len(first)), first)[-1] if len(first) >= LEAST_SAMPLES else None
    running, queued = sum([c.running for c in own]), sum([len(c.queue) for c in own])
    before = desk.seen.scaling if desk.seen else service.scaling
    seen = Seen(before, running, queued + len(desk.held), p99, service.p99_target_ms, len(first))
    copies = counted([c.seen for c in farm.of_service[service.name]])
    known = look(seen, copies, farm.policy, farm.now)
    desk.seen = seen._replace(scaling=known)
    if known.over >= farm.policy.scale_looks:
        return SIGNAL
    return MANY if _spare(farm, service, known, load(seen)) else ""


def _spare(farm: Farm, service: Service, known: Scaling, calls: int) -> bool:
    """Has it had more copies than it must have, for as long as a scale-in waits, and than its calls of now need?"""
    if known.ready <= max(1, service.min_replicas) or farm.now - known.changed_at < farm.policy.scale_in_s:
        return False
    return carriers(calls, service, farm.policy, farm.now) < known.ready


def _time_is_up(farm: Farm) -> bool:
    """Has somebody been idle for long enough, or is a load due for what is expected?"""
    oldest, looked = farm.now - LOOK_AGAIN_S, farm.looked
    if any(looked.get(number, 0.0) < oldest and _may_go(farm, copy) for number, copy in farm.copies.items()):
        return True
    return any(_preload_due(farm, name) for name in farm.likely)


def _may_go(farm: Farm, copy: Copy) -> bool:
    """Idle for long enough, and not of a service that is kept awake whatever happens."""
    return _idle(farm, copy) and farm.services[copy.seen.service].tier is not Tier.HOT


def _idle(farm: Farm, copy: Copy) -> bool:
    seen = copy.seen
    if copy.running or copy.queue or seen.drain_at is not None or not wanted_ready(copy):
        return False
    used = max(copy.last_call_at or 0.0, seen.loaded_at or seen.since)
    if farm.now - used < farm.least_idle_s:
        return False
    service = farm.services[seen.service]
    return farm.now - used >= idle_limit_s(farm.policy.of_service(service.name), seen, service)


def _preload_due(farm: Farm, name: str) -> bool:
    """Not while a copy is ready or on its way, and once for each expectation."""
    desk, forecast = farm.desks[name], farm.forecasts[name]
    if desk.routed:
        return False
    found = expected(forecast, farm.policy, farm.now, forecast.load_s + farm.policy.preload_lead_s, desk.last_call_at)
    if found is None or farm.expected.get(name) == found.at:
        return False
    farm.expected[name] = found.at
    return True


def _sample(farm: Farm, since: float) -> None:
    """Memory held, cards in use, copies on them, and what of the rest is stranded, for the time since the last one."""
    passed, m = farm.now - since, farm.measures
    farm.at(farm.now + SAMPLE_S, partial(_sample, farm, farm.now))
    if not passed:
        return
    for name, card in farm.world.cards.items():
        there = [c for c in farm.on_card[name] if c.seen.phase not in (Phase.STOPPED, Phase.FAILED)]
        m.total_mib_s += card.total_mib * passed
        m.resident_mib_s += (farm.used_mib(name) - card.driver_reserved_mib) * passed
        m.used_card_s += passed * bool(there)
        m.copies_s += passed * len(there)
    lost = together(Draft(farm.picture(), farm.policy, farm.now).stranded().values())
    m.stranded_mib_s += lost.stranded_mib * passed
    m.free_mib_s += lost.free_mib * passed
