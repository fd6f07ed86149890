"""Batch in the simulated farm: hours and the controller bound it, a neighbour is spared, and no call is forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.decision import Code, Decision, Reason, Refusal, Verb
from scheduler.simulation import Trace, batch, gate, simulate
from scheduler.simulation.copies import Answer, Copy
from scheduler.simulation.farm import _plan
from scheduler.simulation.limits import has_room, most_calls
from scheduler.simulation.measures import Measures
from scheduler.simulation.state import Farm
from scheduler.world import Pool, Profile, Tier
from tests.scheduler.build import a_replica, a_service
from tests.simulation.build import BEGAN, HOUR, QUICK, a_call, a_farm, a_growth, played, run

ONLINE = a_service("o", weights=20000, profile=Profile.ONLINE, tier=Tier.HOT, max_num_seqs=16)
BATCH = a_service("b", weights=20000, profile=Profile.BATCH, tier=Tier.HOT, max_num_seqs=16)
BESIDE = [ONLINE, BATCH, a_replica(1, "o", "c0"), a_replica(2, "b", "c0")]
MORNING = 8 * HOUR


def burst(since: float, count: int = 60, decode: float = 50.0):
    return [a_call(since + i / 10, "b", stream=True, decode=decode) for i in range(count)]


def talks(until: float):
    """An online service that is called every three seconds."""
    return [a_call(3.0 * i, "o") for i in range(1, int(until / 3))]


def in_flight(farm: Farm) -> int:
    return sum(copy.in_flight for copy in farm.of_service["b"])


# Hours


def test_by_day_no_more_than_a_few_are_in_flight_on_a_card():
    farm = run(a_farm(*BESIDE), MORNING + 10, burst(MORNING))
    assert in_flight(farm) == QUICK.batch_day_calls
    assert len(farm.desks["b"].turn) == 60 - QUICK.batch_day_calls
    assert not farm.desks["b"].held, "its model is ready: nothing is to be loaded for them"


def test_by_night_as_many_as_come():
    farm = run(a_farm(*BESIDE), 610, burst(600))
    assert in_flight(farm) == 60
    assert not farm.waiting_turn


def test_an_own_window_goes_before_the_policys():
    always = replace(BATCH, batch_hours=((BEGAN, BEGAN + 24 * HOUR),))
    farm = run(a_farm(ONLINE, always, *BESIDE[2:]), MORNING + 10, burst(MORNING))
    assert in_flight(farm) == 60


def test_a_turn_comes_when_another_call_ends():
    farm = run(a_farm(*BESIDE), MORNING + 8, burst(MORNING, count=20, decode=4.0))
    assert in_flight(farm) == QUICK.batch_day_calls
    assert farm.measures.answered >= QUICK.batch_day_calls, "those in flight are the next ones"
    run(farm, MORNING + 300)
    assert farm.measures.answered == 20
    assert not farm.waiting_turn


def test_who_waits_for_a_turn_gives_up_when_a_held_one_would():
    farm = run(a_farm(*BESIDE), MORNING + 5000, [c._replace(stream=False) for c in burst(MORNING, decode=4000.0)])
    assert farm.measures.told == 60 - QUICK.batch_day_calls
    assert not farm.desks["b"].turn


# The controller


def neighbour(mode: str) -> Measures:
    until = 0.75 * HOUR
    world = replace(a_farm(*BESIDE).world, pools={"default": Pool("default", mode=mode)})
    trace = Trace(sorted([*talks(until), *burst(900, 300, decode=20.0)]))
    return simulate(world, QUICK, trace, BEGAN + until, began=BEGAN)


def test_a_busy_neighbour_is_slowed_less_than_where_nobody_is_limited():
    spared, slowed = neighbour("enforce"), neighbour("observe")
    assert (spared.batch_lowered > 0, slowed.batch_lowered) == (True, 0)
    after = [m.first_token["online night"].at(0.9) for m in (spared, slowed)]
    assert after[0] < after[1]


def test_it_is_halved_step_by_step_and_given_back_one_by_one():
    calls = [*talks(2400), *burst(900, 200, decode=20.0)]
    farm = a_farm(*BESIDE)
    batch.start(farm)
    seen = []
    for second in range(880, 1400, 10):
        run(farm, second, [c for c in calls if second - 10 < c.at - BEGAN <= second] if second > 880 else
            [c for c in calls if c.at - BEGAN <= second])  # fmt: skip
        seen.append(farm.world.cards["c0"].batch_calls)
    steps = [b for a, b in zip(seen, seen[1:], strict=False) if a != b]
    assert seen[0] is None
    assert steps[0] is not None
    lower = [b for b in steps if b is not None]
    assert min(lower) >= QUICK.batch_least_calls
    assert any(b < a for a, b in zip(lower, lower[1:], strict=False))
    assert "c0" in farm.limited


def test_a_limit_ends_with_the_batch_copies():
    farm = a_farm(ONLINE, BESIDE[2])
    farm.world = replace(
        farm.world, cards={**farm.world.cards, "c0": replace(farm.world.cards["c0"], batch_calls=2)}
    )  # fmt: skip
    farm.limited = {"c0"}
    batch.look(farm)
    assert farm.world.cards["c0"].batch_calls is None
    assert farm.limited == set()


def test_nobody_is_let_in_where_pressure_finds_nobody_to_go():
    farm = a_farm(*BESIDE)
    farm, copy = run(farm, 5), farm.of_service["b"][0]
    assert has_room(farm, copy)
    refusal = Refusal(Code.NO_VICTIM, {"card": "c0"})
    batch.told(farm, [Decision(Verb.DRAIN, "", Reason.PRESSURE, cards=("c0",), refusal=refusal)])
    assert most_calls(farm, copy, "c0") == 0
    farm = run(farm, 20, burst(10, count=5))
    assert (in_flight(farm), len(farm.desks["b"].turn)) == (0, 5)
    batch.told(farm, [])
    assert (in_flight(farm), len(farm.desks["b"].turn)) == (5, 0)


def test_who_waited_for_a_turn_waits_for_a_load_once_the_copy_is_gone():
    farm = run(a_farm(*BESIDE), MORNING + 10, burst(MORNING, count=10))
    waiting = len(farm.desks["b"].turn)
    assert waiting
    gate.leave(farm, farm.of_service["b"][0])
    assert len(farm.desks["b"].held) == waiting == farm.desks["b"].held_streams
    _plan(farm)
    assert farm.services["b"].demand.held == waiting


@pytest.mark.parametrize("hour", [0.0, 8.0])
def test_every_batch_call_is_answered_told_or_cut(hour):
    calls = [*burst(hour * HOUR + 60, 80, decode=15.0), *talks(1200)]
    growths = [a_growth(hour * HOUR + 120, "b", 15000, 300)]
    found = played(*BESIDE, calls=calls, growths=growths, hours=hour + 3)
    assert found.calls == len(calls) == found.answered + found.told + found.cut + found.cut_by_kills


# What gateways measure


def with_answers(*answers: Answer) -> Copy:
    copy = Copy(a_replica(1, "o", "c0"), ONLINE)
    copy.late.extend(answers)
    return copy


def test_a_p99_needs_its_samples_and_reaches_back_for_them():
    now = BEGAN + 400
    few = with_answers(*[Answer(now - 10, now, 0.2, 1.0)] * (QUICK.p99_samples - 1))
    assert batch.p99_ms(few, QUICK, now) is None
    old = [Answer(now - 200, now - 190, 0.9, 1.0)] * 10
    assert batch.p99_ms(with_answers(*old, *few.late), QUICK, now) == pytest.approx(900)
    assert batch.p99_ms(with_answers(*old, *few.late, few.late[0]), QUICK, now) == pytest.approx(200)


def test_a_disturbance_is_how_much_wider_gaps_are_than_before():
    now = BEGAN + 400
    before, after = Answer(now - 200, now - 100, 0.2, 1.1), Answer(now - 25, now, 0.2, 1.65)
    assert batch.disturbance_pct(with_answers(before, after), QUICK, now) == pytest.approx(50)
    assert batch.disturbance_pct(with_answers(after), QUICK, now) is None
    assert batch.disturbance_pct(with_answers(before), QUICK, now) is None
