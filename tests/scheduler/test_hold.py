"""What held callers are told."""

from __future__ import annotations

from scheduler.decision import PASSING, Code, Decision, Reason, Refusal, Verb
from scheduler.hold import Outlook, hold_cap_s, outlook, tell_plain_now
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.world import Phase, Want
from tests.scheduler.build import NOW, POLICY, a_card, a_host, a_replica, a_service, a_world, held
from tests.scheduler.cases import cases

HELD = a_service(demand=held())
LEARNED = {("s", "h1"): [10.0] * 3}


def told(*things, service=HELD, decisions=None, **more) -> Outlook:
    """The outlook after the real plan of this world, or after the given decisions."""
    world = a_world(service, *things, **more)
    return outlook(world, POLICY, service, plan(world, POLICY, NOW) if decisions is None else decisions, NOW)


@cases(
    ("weights", "own", "cap"),
    [(16383, None, 15), (16384, None, 30), (8000, 60.0, 60), (8000, 500.0, 180), (99999, 5.0, 5), (1, 0.0, 0)],
)
def test_the_cap_is_the_services_own_or_by_size(weights, own, cap):
    assert hold_cap_s(POLICY, a_service(weights=weights, hold_cap_s=own)) == cap


def test_the_caps_are_policy():
    assert hold_cap_s(Policy(hold_small_s=7), a_service()) == 7


@cases(("left", "low", "now"), [(15, None, False), (15, 15, False), (15, 15.1, True), (0, 0.5, True), (0, 0, False)])
def test_a_plain_caller_is_told_when_waiting_is_certain_to_be_in_vain(left, low, now):
    assert tell_plain_now(left, low) is now


@cases(
    ("things", "state"),
    [
        ([], "cold"),
        ([a_replica()], "ready"),
        ([a_replica(drain_at=NOW + 9, reason="idle")], "ready"),
        ([a_replica(phase=Phase.ASLEEP)], "asleep"),
        ([a_replica(phase=Phase.STARTING)], "loading"),
        ([a_replica(phase=Phase.STARTING, want=Want.STOPPED)], "cold"),
        ([a_replica(phase=Phase.DRAINING)], "cold"),
        ([a_replica(), a_host(seen_at=NOW - 20)], "cold"),
        ([a_replica(), a_host(seen_at=NOW - 20, serving=True)], "ready"),
        ([a_card("c1"), a_card("c2"), a_replica(phase=Phase.ASLEEP), a_replica(2, card="c2")], "ready"),
    ],
)
def test_the_state_when_nobody_waits(things, state):
    got = told(*things, service=a_service(), decisions=[])
    assert got.state == state
    assert got.refusal is None
    assert not got.plain_now


def test_a_start_of_this_tick_is_loading_with_an_estimate():
    got = told()
    assert (got.state, got.stage, got.eta_s, got.low_s, got.plain_now) == ("loading", "weights", 16, None, False)


def test_a_wake_of_this_tick_is_loading():
    got = told(a_replica(phase=Phase.ASLEEP))
    assert (got.state, got.stage, got.eta_s) == ("loading", "waking", 3)


def test_a_learned_load_inside_the_cap_is_held():
    got = told(load_s=LEARNED)
    assert (got.eta_s, got.low_s, got.plain_now) == (10, 10, False)


def test_a_learned_load_past_the_cap_is_told_to_plain_callers_at_once():
    got = told(load_s={("s", "h1"): [16.0] * 3})
    assert (got.low_s, got.plain_now, got.refusal) == (16, True, None)


@cases("code", sorted(PASSING))
def test_who_must_wait_a_little_is_loading_and_not_refused(code):
    refusal = Refusal(code, {"wait_s": 3.0, "host": "h1"})
    got = told(decisions=[Decision(Verb.START, "s", Reason.HOLD, refusal=refusal)])
    assert (got.state, got.eta_s, got.refusal) == ("loading", 3 + 16, None)


@cases("code", sorted(set(Code) - PASSING))
def test_every_other_refusal_reaches_callers_at_once(code):
    refusal = Refusal(code, {"retry_after_s": 3})
    got = told(decisions=[Decision(Verb.START, "s", Reason.HOLD, refusal=refusal)])
    assert (got.state, got.refusal, got.plain_now, got.eta_s) == ("cold", refusal, True, None)


def test_a_refused_second_copy_does_not_turn_away_who_waits_for_the_first():
    refusal = Decision(Verb.START, "s", Reason.MINIMUM, refusal=Refusal(Code.NO_CAPACITY))
    got = told(a_replica(phase=Phase.STARTING), decisions=[refusal])
    assert (got.state, got.refusal) == ("loading", None)


def test_others_decisions_are_not_ours():
    other = Decision(Verb.START, "x", Reason.HOLD, refusal=Refusal(Code.NO_CAPACITY))
    assert told(service=a_service(), decisions=[other]).refusal is None


@cases(
    ("things", "code"),
    [
        ([a_card(healthy=False)], Code.CARD_UNHEALTHY),
        ([a_card(unavailable_mib=76000)], Code.NO_CAPACITY),
        ([a_card(unavailable_mib=81920)], Code.UNDER_PRESSURE),
        ([a_host(seen_at=None)], Code.HOST_LOST),
        ([a_host(weights=frozenset())], Code.WEIGHTS_ABSENT),
    ],
)
def test_who_waits_is_told_when_the_planner_refuses(things, code):
    assert told(*things).refusal.code is code


def test_who_waits_in_a_frozen_farm_is_told():
    assert told(frozen=True).refusal.code is Code.FROZEN


def test_a_ready_copy_outweighs_any_refusal():
    got = told(a_replica(), decisions=[Decision(Verb.START, "s", Reason.MINIMUM, refusal=Refusal(Code.NO_CAPACITY))])
    assert (got.state, got.refusal) == ("ready", None)
