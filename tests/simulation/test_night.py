"""The simulated night makes the repack's moves: searched at their hour, one after the other, and nobody is cut."""

from __future__ import annotations

from dataclasses import replace

from scheduler.decision import Code, Decision, Reason, Refusal, Verb
from scheduler.move import Move
from scheduler.simulation import night
from scheduler.simulation.copies import Copy
from scheduler.world import Pool
from tests.scheduler.build import a_replica, a_service
from tests.simulation.build import BEGAN, HOUR, MACHINE, QUICK, a_call, a_farm, run

LARGE = a_service("large", weights=55000, kv=4000, starts_28d=50)
PAIR = [a_service(n, weights=16000) for n in ("a", "b")]
#: Each on a card of its own, and the large one, which is expected, fits beside neither.
APART = [LARGE, *PAIR, *(a_replica(i, n, c, loaded_at=BEGAN) for i, n, c in ((1, "a", "c0"), (2, "b", "c1")))]
CALM = replace(QUICK, idle_unload_s=86400)


def homes(farm):
    return {copy.seen.service: copy.seen.cards for copy in farm.copies.values()}


def played(calls=(), until=1.5 * HOUR, **more):
    farm = a_farm(*APART, policy=CALM, **more)
    night.start(farm)
    return run(farm, until, list(calls))


def test_what_stands_apart_is_brought_together_at_its_hour():
    assert homes(played(until=HOUR - 1)) == {"a": ("c0",), "b": ("c1",)}
    farm = played()
    assert len(set(homes(farm).values())) == 1
    assert (farm.measures.moves, farm.measures.moves_failed, farm.moves) == (1, 0, [])


def test_calls_meanwhile_are_all_answered():
    calls = [a_call(HOUR - 30 + i, name, decode=20.0) for i in range(0, 120, 5) for name in "ab"]
    farm = played(calls)
    m = farm.measures
    assert (m.answered, m.told, m.cut, m.cold_starts) == (len(calls), 0, 0, 0)
    assert len(set(homes(farm).values())) == 1


def test_nothing_is_moved_where_the_planner_only_advises():
    farm = a_farm(*APART, policy=CALM)
    farm.world = replace(farm.world, pools={"default": Pool("default", mode="suggest")})
    night.start(farm)
    run(farm, 1.5 * HOUR)
    assert homes(farm) == {"a": ("c0",), "b": ("c1",)}


def answered(code: Code, copy: int | None):
    farm = a_farm(*APART, policy=CALM, machine=MACHINE)
    farm.moves = [
        Move(1, 1, 1, 1, "a", ("c1",), copy),
        Move(2, 1, 2, 2, "b", ("c0",)),
        Move(3, 2, 1, 2, "b", ("c0",)),
    ]
    night.answered(farm, Decision(Verb.START, "a", Reason.REPACK, 1, refusal=Refusal(code), move=1))
    return [move.id for move in farm.moves], farm.measures.moves, farm.measures.moves_failed


def test_a_move_that_failed_stops_the_rest_of_its_proposal():
    assert answered(Code.LOAD_FAILED, 9) == ([3], 0, 1)


def test_one_that_may_not_begin_is_left_out_and_one_that_is_done_is_counted():
    assert answered(Code.SHORT_OF_MEMORY, None) == ([2, 3], 0, 0)
    assert answered(Code.ALREADY_SO, 9) == ([2, 3], 1, 0)


def test_a_start_that_is_no_move_begins_none():
    farm = a_farm(*APART, policy=CALM)
    farm.moves = [Move(1, 1, 1, 1, "a", ("c1",))]
    copy: Copy = farm.copies[1]
    night.began(farm, Decision(Verb.START, "a", Reason.HOLD, cards=("c1",)), copy)
    assert farm.moves[0].copy is None
