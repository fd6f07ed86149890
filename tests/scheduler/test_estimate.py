"""How long a load takes and when a caller is served."""

from __future__ import annotations

import pytest

from scheduler.decision import Code, Decision, Reason, Refusal, Verb
from scheduler.estimate import drain_bound_s, eta, learned, load_estimate, remaining, wake_estimate
from scheduler.policy import Policy
from scheduler.world import LoadTimes, Phase, Want
from tests.scheduler.build import NOW, POLICY, a_card, a_host, a_replica, a_service, a_world
from tests.scheduler.cases import cases

S = a_service(weights=20000)


@cases(
    ("seconds", "mean", "low"),
    [
        ((10.0,), 10, 10),
        ((10.0, 10.0, 10.0), 10, 10),
        ((8.0, 12.0), 92 / 9, 92 / 9 - 4),
        ((12.0, 8.0), 88 / 9, 88 / 9 - 4),
        ((1.0, 19.0), 11, 0),
        ((100.0, *[10.0] * 10), 10, 10),
    ],
)
def test_learned_is_the_mean_and_two_deviations_below(seconds, mean, low):
    """A load counts four fifths of the one after it."""
    got = learned(POLICY, LoadTimes(seconds))
    assert (got.seconds, got.low_s) == (pytest.approx(mean), pytest.approx(low))
    assert not got.rough


def test_nothing_is_learned_from_nothing():
    assert learned(POLICY, LoadTimes()) is None


@cases(("bandwidth", "expected"), [(2000, 18), (1000, 28), (200, 108)])
def test_a_first_load_is_rough_by_size_and_bandwidth(bandwidth, expected):
    got = load_estimate(a_world(S, a_host(bandwidth_mib_s=bandwidth)), POLICY, S, "h1")
    assert (got.seconds, got.low_s, got.rough) == (expected, None, True)


def test_unknown_bandwidth_or_host_still_gives_an_estimate():
    assert load_estimate(a_world(S, a_host(bandwidth_mib_s=0)), POLICY, S, "h1").seconds == 8
    assert load_estimate(a_world(S), POLICY, S, "h9").rough


def test_learned_is_per_host():
    world = a_world(S, load_s={("s", "h1"): [12.0]})
    assert load_estimate(world, POLICY, S, "h1").seconds == 12
    assert load_estimate(world, POLICY, S, "h2").rough


def test_a_wake_is_learned_apart_from_loads():
    world = a_world(S, load_s={("s", "h1"): [12.0]}, wake_s={("s", "h1"): [2.0, 2.0]})
    assert wake_estimate(world, POLICY, S, "h1").seconds == 2
    assert wake_estimate(a_world(S), POLICY, S, "h1").seconds == POLICY.wake_s


@cases(("mean", "bound"), [(None, 600), (0.0, 15), (10.0, 45), (100.0, 315), (400.0, 600)])
def test_the_bound_of_a_drain(mean, bound):
    assert drain_bound_s(POLICY, a_service(generation_s=mean)) == bound
    assert drain_bound_s(POLICY, None) == 600


def starting(elapsed=0.0, **more):
    return a_replica(1, phase=Phase.STARTING, since=NOW - elapsed, want_since=NOW - elapsed, **more)


@cases(
    ("elapsed", "progress", "eta_s", "low_s"),
    [(0, None, 40, 40), (10, None, 30, 30), (10, 0.5, 20, 20), (10, 0.1, 30, 30), (60, None, 1, 0), (0, 1.0, 1, 0)],
)
def test_what_is_left_of_a_load(elapsed, progress, eta_s, low_s):
    replica = starting(elapsed, progress=progress)
    world = a_world(S, replica, load_s={("s", "h1"): [40.0] * 3})
    got = remaining(world, POLICY, replica, NOW)
    assert (got.eta_s, got.low_s) == (eta_s, low_s)


def test_a_load_begins_with_its_want_even_if_the_phase_is_older():
    replica = a_replica(1, phase=Phase.STARTING, waking=True, since=NOW - 900, want_since=NOW - 1)
    got = remaining(a_world(S, replica), POLICY, replica, NOW)
    assert (got.eta_s, got.stage) == (2, "waking")


@cases(
    ("stage", "elapsed", "expected"),
    [
        ("", 0, "weights"),
        ("", 27, "warmup"),
        ("process", 0, "weights"),
        ("queued", 0, "queued"),
        ("warmup", 0, "warmup"),
    ],
)
def test_the_stage_is_the_hosts_word_or_by_time(stage, elapsed, expected):
    replica = starting(elapsed, stage=stage)
    assert remaining(a_world(S, replica), POLICY, replica, NOW).stage == expected


def test_a_load_of_an_unknown_service_is_rough():
    replica = starting()
    assert remaining(a_world(replica), POLICY, replica, NOW).rough


def refused(code, verb=Verb.START, **numbers):
    return [Decision(verb, "s", Reason.HOLD, refusal=Refusal(code, {"host": "h1", **numbers}))]


def told(*things, decisions=(), **more):
    return eta(a_world(S, *things, **more), POLICY, S, NOW, decisions)


def test_nothing_coming_has_no_eta():
    assert told() is None
    assert told(a_replica()) is None
    assert told(starting(want=Want.STOPPED)) is None


def test_a_start_of_this_plan_counts_whole():
    got = told(decisions=[Decision(Verb.START, "s", Reason.HOLD, cards=("c1",))])
    assert (got.eta_s, got.stage, got.rough) == (28, "weights", True)


def test_a_wake_of_this_plan():
    got = told(a_replica(phase=Phase.ASLEEP), decisions=[Decision(Verb.WAKE, "s", Reason.HOLD, 1)])
    assert (got.eta_s, got.stage) == (3, "waking")


def test_room_that_is_being_made_counts_before_the_load():
    decisions = refused(Code.NOT_NOW, wait_s=10.0, wait_low_s=8.0)
    got = told(decisions=decisions, load_s={("s", "h1"): [4.0] * 3})
    assert (got.eta_s, got.low_s, got.stage) == (14, 12, "room")


def test_a_rough_load_after_room_has_no_lower_bound():
    assert told(decisions=refused(Code.NOT_NOW, wait_s=10.0)).low_s is None


def test_loads_ahead_count_before_ours():
    got = told(decisions=refused(Code.LOAD_IN_FLIGHT, wait_s=7.0, wait_low_s=7.0))
    assert (got.eta_s, got.stage) == (35, "queued")


def test_a_wake_that_waits_counts_as_a_wake():
    assert told(decisions=refused(Code.LOAD_IN_FLIGHT, Verb.WAKE, wait_s=7.0)).eta_s == 10


@cases("code", [Code.NO_CAPACITY, Code.ANTI_SWAP, Code.LOAD_FAILED])
def test_a_refusal_that_does_not_pass_promises_nothing(code):
    assert told(decisions=refused(code, wait_s=7.0)) is None


def test_decisions_about_others_do_not_count():
    assert told(decisions=[Decision(Verb.START, "x", Reason.HOLD, cards=("c1",))]) is None


def test_the_first_of_several_counts():
    cards = [a_card("c1"), a_card("c2")]
    got = told(*cards, starting(20), decisions=[Decision(Verb.START, "s", Reason.HOLD, cards=("c2",))])
    assert got.eta_s == 8


def test_its_numbers_are_policy():
    quick = Policy(load_init_s=0, load_warm_up_s=0)
    assert load_estimate(a_world(S), quick, S, "h1").seconds == 20
