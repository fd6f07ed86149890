"""Scaling in random worlds: within its bounds, never on what is unknown, never against itself; and it comes to rest."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.admission import admission
from scheduler.decision import Reason, Verb
from scheduler.draft import Draft
from scheduler.looks import Day, Minute, Scaling
from scheduler.planner import plan
from scheduler.scaling import SCALE_OUT, carriers, desired
from scheduler.signals import capacity, copies, look
from scheduler.world import Phase, Service, Want, World
from tests.plays.farm import Farm
from tests.properties.worlds import worlds
from tests.scenarios.crowd import Crowd
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world, acting

SAME = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
MANY = settings(SAME, max_examples=200)
FEW = settings(SAME, max_examples=12)
MINUTE, DAY = int(NOW) // 60, int(NOW) // 86400


def any_scaling(dice: Random, world: World, name: str) -> Scaling:
    """Much of it fits the world as it is, so that something happens."""
    seen = copies(r for r in world.replicas.values() if r.service == name)
    quiet = dice.random() < 0.6
    waiting = dice.choice([0, 0, 1]) if quiet else dice.choice([0, 3, 30])
    minutes = [
        Minute(MINUTE - ago, 10, 10 * seen.ready, 10 * dice.randint(0, 12), 10 * waiting, waiting, 0, 10, 0)
        for ago in range(dice.choice([21, 21, 21, 5, 0]), -1, -1)
    ]
    raised_at = dice.choice([None, None, NOW - 5, NOW - 40])
    return Scaling(
        looked_at=NOW,
        over=0 if quiet else 2,
        over_by=dice.choice(["queue", "p99", ""]),
        over_at=None if quiet else NOW,
        signalled_at=None if quiet else NOW - dice.choice([0, 10, 100]),
        ready=seen.ready,
        live=seen.live if dice.random() < 0.9 else seen.live + 1,
        changed_at=NOW - dice.choice([30, 3600, 3600]),
        minutes=tuple(minutes),
        days=(Day(DAY - dice.randint(0, 6), dice.uniform(0, 20), dice.choice([None, 3.0])),),
        raised_to=dice.randint(0, 6),
        raised_waiting=dice.choice([0, 20]),
        raised_at=raised_at,
        came_from=dice.choice([0, 4, 8]),
        came_from_at=dice.choice([None, NOW - 3600, NOW - 2]),
    )


def busy(world: World, seed: int) -> World:
    """The same world with loads and looks at most of its services."""
    dice = Random(seed)
    services = dict(world.services)
    for name in sorted(services):
        if dice.random() < 0.8:
            services[name] = replace(
                services[name],
                max_replicas=dice.randint(2, 6),
                running=dice.choice([None, 0, 4, 30]),
                waiting=dice.choice([None, 0, 0, 2, 40]),
                p99_ms=dice.choice([None, 300.0, 2000.0]),
                generation_s=dice.choice([None, 2.0]),
                scaling=any_scaling(dice, world, name),
            )
    return replace(world, services=services)


def busy_worlds() -> st.SearchStrategy[World]:
    return st.builds(busy, worlds(), st.integers(0, 2**32))


def fewer(decisions, world: World):
    """Scale-ins, beside the surplus that was there before there was scaling."""
    return [d for d in acting(decisions) if d.reason is Reason.SURPLUS and "came_from" in d.numbers]


@MANY
@given(busy_worlds())
def test_scaling_keeps_its_bounds(world: World) -> None:
    decisions = plan(world, POLICY, NOW)
    draft = Draft(world, POLICY, NOW)
    for decision in acting(decisions):
        assert draft.do(decision), decision
    for name in {d.service for d in acting(decisions) if d.reason in SCALE_OUT}:
        assert len(draft.in_hand(name)) <= world.services[name].max_replicas
    for decision in fewer(decisions, world):
        service = world.services[decision.service]
        assert len(draft.staying(service.name)) >= max(1, service.min_replicas)
        assert (
            len(draft.staying(service.name))
            >= decision.numbers["desired"]
            >= carriers(decision.numbers["load"] - 0.05, service, POLICY, NOW)
        )


@MANY
@given(busy_worlds())
def test_what_is_unknown_or_kept_never_goes(world: World) -> None:
    for decision in fewer(plan(world, POLICY, NOW), world):
        service, replica = world.services[decision.service], world.replicas[decision.replica]
        assert service.running is not None
        assert service.waiting is not None
        assert service.waiting <= POLICY.scale_in_waiting
        assert replica.in_flight is not None
        assert not replica.external
        assert service.whitelisted_until is None or service.whitelisted_until <= NOW
        assert service.p99_ms is None or service.p99_ms <= POLICY.p99_target_ms
        assert replica.left_alone_until is None or replica.left_alone_until <= NOW


@MANY
@given(busy_worlds())
def test_nothing_scales_both_ways_and_a_plan_is_the_same_twice(world: World) -> None:
    decisions = plan(world, POLICY, NOW)
    assert decisions == plan(world, POLICY, NOW)
    out = {d.service for d in acting(decisions) if d.reason in SCALE_OUT}
    assert not out & {d.service for d in fewer(decisions, world)}


@MANY
@given(busy_worlds())
def test_a_scale_out_sends_nobody_away_who_is_in_use(world: World) -> None:
    decisions = acting(plan(world, POLICY, NOW))
    for decision in decisions:
        if decision.reason is Reason.ROOM and decision.verb is Verb.DRAIN:
            caller = world.services.get(str(decision.numbers.get("room_for")))
            waited = caller is not None and (caller.demand.held or caller.demand.expected_until)
            if caller is not None and not waited and caller.wished_at is None:
                assert world.replicas[decision.replica].in_flight == 0


@MANY
@given(
    st.integers(0, 400),
    st.integers(0, 400),
    st.integers(1, 8),
    st.integers(0, 8),
    st.sampled_from([4, 16, 64]),
)
def test_desired_is_more_than_there_is_and_grows_with_the_load(running, waiting, live, came_from, seqs) -> None:
    def count(running: int, waiting: int, came_from: int) -> int:
        known = Scaling(came_from=came_from, came_from_at=NOW if came_from else None)
        service = a_service(running=running, waiting=waiting, max_num_seqs=seqs, scaling=known)
        return desired(service, live, POLICY, NOW)

    here = count(running, waiting, came_from)
    assert here > live
    assert here <= count(running, waiting + 7, came_from)
    assert count(running, waiting, 0) <= here <= max(count(running, waiting, 0) * 1.5 + 1, count(running, waiting, 0))


@MANY
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.sampled_from([None, 300.0, 2000.0])), max_size=60))
def test_looks_forget_and_capacity_stays_within_what_was_seen(states) -> None:
    service, now = a_service("s", max_replicas=8, max_num_seqs=16), NOW
    for running, waiting, p99_ms in states:
        now += 5
        service = replace(service, running=running, waiting=waiting, p99_ms=p99_ms)
        service = replace(service, scaling=look(service, copies([a_replica(1)]), POLICY, now))
    assert service.scaling is None or len(service.scaling.minutes) <= POLICY.scale_in_s // 60 + 2
    assert service.scaling is None or len(service.scaling.days) <= POLICY.capacity_days
    assert 1 <= capacity(service, POLICY, now) <= max(8.0, *(running for running, _, _ in states), 8.0)


def any_site(dice: Random) -> Crowd:
    ready = dice.randint(1, 5)
    service = a_service(
        "s",
        weights=30_000,
        min_replicas=dice.choice([0, 1, 2]),
        max_replicas=dice.randint(2, 8),
        max_num_seqs=dice.choice([4, 8, 16]),
        generation_s=4.0,
    )
    cards = [a_card(f"c{n}", host=f"h{n % 4}") for n in range(8)]
    there = [a_replica(n + 1, "s", card=f"c{n}") for n in range(min(ready, service.max_replicas))]
    return Crowd(
        Farm(a_world(service, *cards, *there), load_s={"s": dice.choice([10.0, 40.0])}), "s", dice.choice([2.0, 4.0])
    )


@FEW
@given(st.integers(0, 2**32))
def test_whatever_comes_nothing_that_was_let_in_is_dropped_and_a_constant_load_comes_to_rest(seed: int) -> None:
    dice = Random(seed)
    crowd = any_site(dice)
    for _ in range(4):
        crowd.steps(dice.randint(5, 40), dice.choice([0.0, 1.0, 4.0, 20.0]))
        crowd.step(at_once=dice.choice([0, 0, 30, 200]))
    crowd.steps(200, 1.0)
    acts = len(crowd.farm.did("s"))
    crowd.steps(60, 1.0)
    assert len(crowd.farm.did("s")) == acts
    assert crowd.dropped == 0
    assert max(crowd.waits_s, default=0) <= 60, "nobody waits for ever: what is let in can be served"


@MANY
@given(busy_worlds())
def test_who_is_let_in_is_at_least_what_the_engines_run_at_once(world: World) -> None:
    for service in world.services.values():
        of_it = [r for r in world.replicas.values() if r.service == service.name]
        limit = admission(world, POLICY, service, of_it, NOW)
        if limit is not None:
            ready = sum(r.phase is Phase.READY and r.want is Want.READY for r in of_it)
            silent = sum(world.hosts[world.cards[r.cards[0]].host].seen_at < NOW - POLICY.silent_s for r in of_it)
            assert limit.calls >= (ready - silent) * _at_once(service)
            assert limit.retry_after_s >= 1


def _at_once(service: Service) -> int:
    return service.max_num_seqs
