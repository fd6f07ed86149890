"""The decision table of one replica: no processes, no clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler import world
from workers.host import memo as states
from workers.host import words
from workers.host.engine import Gauges, Health
from workers.host.eyes import moved_at
from workers.host.launchers import Running
from workers.host.limits import DEFAULT
from workers.host.memo import Memo
from workers.host.sync import Call, Look, Step, Wish, next_step, phase_of, report

NOW = 1_000_000.0
HEAD, WORKER = Running(10, 1.0, 1, True), Running(11, 1.1, 1, False)
FINE = Look(pids=(HEAD, WORKER), health=Health.GOOD, asleep=False, routed=True, in_flight=0)


def memo(state: str = states.AWAKE, **changes: Any) -> Memo:
    base = Memo(attempt=1, state=state, served_name="m", cards=["c"], sleep_mode=True, started_at=NOW - 100)
    return replace(base, **changes)


def wish(want: str = "ready", attempt: int = 1, **changes: Any) -> Wish:
    return replace(Wish(want, attempt, shutdown_s=5), **changes)


def step(the_wish: Wish | None, the_memo: Memo, look: Look, others_turn: bool = False, now: float = NOW) -> Step:
    return next_step(the_wish, the_memo, look, others_turn, now, DEFAULT)


def test_its_words_are_those_of_the_core() -> None:
    assert set(words.WANTS) == set(world.Want)
    assert set(words.PHASES) == set(world.Phase)


def test_it_starts_what_is_wanted_and_absent() -> None:
    assert step(wish(), Memo(), Look()) is Step.START


def test_it_waits_for_its_cards_turn() -> None:
    assert step(wish(), Memo(), Look(), others_turn=True) is Step.NOTHING
    assert step(wish(), memo(states.ASLEEP), replace(FINE, asleep=True), others_turn=True) is Step.NOTHING
    assert step(wish("asleep"), memo(), replace(FINE, routed=False), others_turn=True) is Step.NOTHING


def test_it_does_not_try_a_failed_attempt_again_but_a_later_one() -> None:
    failed = memo(states.FAILED, fault="crashed")
    assert step(wish(attempt=1), failed, Look()) is Step.NOTHING
    assert step(wish(attempt=2), failed, Look()) is Step.START


def test_a_stopped_attempt_is_not_revived_by_itself() -> None:
    assert step(wish(attempt=1), memo(states.STOPPED), Look()) is Step.NOTHING
    assert step(wish(attempt=2), memo(states.STOPPED), Look()) is Step.START


@pytest.mark.parametrize("want", ["drained", "asleep", "stopped"])
def test_nothing_but_ready_starts_an_engine(want: str) -> None:
    assert step(wish(want), Memo(), Look()) is Step.NOTHING


def test_it_arrives_when_health_and_the_models_name_are_right() -> None:
    loading = memo(states.LOADING)
    assert step(wish(), loading, replace(FINE, names=None)) is Step.NOTHING
    assert step(wish(), loading, replace(FINE, names=[])) is Step.NOTHING
    assert step(wish(), loading, replace(FINE, names=["m"])) is Step.ARRIVED
    assert step(wish(), loading, replace(FINE, names=["other"])) is Step.STRANGER


def test_before_its_first_want_it_observes_and_changes_nothing() -> None:
    assert step(None, memo(states.LOADING), replace(FINE, names=["m"])) is Step.ARRIVED
    assert step(None, memo(), replace(FINE, asleep=True)) is Step.SLEPT
    assert step(None, memo(), replace(FINE, misses=99)) is Step.NOTHING
    assert step(None, memo(), replace(FINE, pids=(WORKER,))) is Step.NOTHING
    assert step(None, memo(term_at=NOW - 99), FINE) is Step.NOTHING
    assert step(None, memo(), Look()) is Step.CRASHED


def test_a_death_nobody_asked_for_is_a_crash() -> None:
    assert step(wish(), memo(), Look()) is Step.CRASHED
    assert step(wish("drained"), memo(states.ASLEEP), Look()) is Step.CRASHED
    assert step(wish("stopped"), memo(term_at=NOW), Look()) is Step.GONE


def test_missing_once_is_not_gone() -> None:
    assert step(wish(), memo(), Look(unsure=True)) is Step.NOTHING
    assert step(wish(), memo(), replace(FINE, pids=(WORKER,), unsure=True)) is Step.NOTHING


def test_workers_whose_head_died_are_a_crash_and_are_killed() -> None:
    orphaned = replace(FINE, pids=(WORKER,))
    assert step(wish(), memo(), orphaned) is Step.CRASHED
    assert step(wish(), memo(states.FAILED, fault="crashed"), orphaned) is Step.KILL
    assert step(wish("stopped"), memo(stop_at=NOW, term_at=NOW), replace(orphaned, routed=False)) is Step.KILL


def test_silence_is_hung_only_after_enough_probes() -> None:
    silent = replace(FINE, health=Health.SILENT)
    assert step(wish(), memo(), replace(silent, misses=DEFAULT.hung_probes - 1)) is Step.NOTHING
    assert step(wish(), memo(), replace(silent, misses=DEFAULT.hung_probes)) is Step.HUNG
    assert step(wish(), memo(states.LOADING), replace(silent, misses=99)) is Step.NOTHING


def test_an_engine_that_says_it_is_not_well_has_crashed() -> None:
    assert step(wish(), memo(), replace(FINE, health=Health.SICK, sick=DEFAULT.sick_probes)) is Step.CRASHED


def test_a_start_has_a_limit() -> None:
    late = memo(states.LOADING, started_at=NOW - DEFAULT.start_s - 1)
    assert step(wish(), late, replace(FINE, health=Health.REFUSED)) is Step.SLOW


def test_drained_does_nothing_but_keep_the_route() -> None:
    assert step(wish("drained"), memo(), FINE) is Step.NOTHING
    assert step(wish("drained"), memo(), replace(FINE, routed=False)) is Step.ROUTE
    assert phase_of(wish("drained"), memo(), FINE) == ("draining", "")


def test_a_sleep_goes_off_the_door_first_and_waits_for_its_count() -> None:
    want = wish("asleep")
    assert step(want, memo(), FINE) is Step.UNROUTE
    off = replace(FINE, routed=False)
    assert step(want, memo(), replace(off, in_flight=2)) is Step.NOTHING
    assert step(want, memo(), replace(off, in_flight=None)) is Step.NOTHING
    assert step(want, memo(), off) is Step.SLEEP
    assert step(replace(want, force=True), memo(), replace(off, in_flight=2)) is Step.SLEEP
    assert step(want, memo(sleep_mode=False), off) is Step.NOTHING


def test_a_refused_sleep_is_tried_again_later() -> None:
    off = replace(FINE, routed=False, call_failed_at=NOW - 1)
    assert step(wish("asleep"), memo(), off) is Step.NOTHING
    assert step(wish("asleep"), memo(), off, now=NOW + DEFAULT.retry_sleep_s) is Step.SLEEP


def test_a_wake_begins_and_ends() -> None:
    asleep = memo(states.ASLEEP)
    still = replace(FINE, asleep=True, routed=False)
    assert step(wish(), asleep, still) is Step.WAKE
    assert step(wish(), asleep, replace(still, call=Call("wake", NOW))) is Step.NOTHING
    assert step(wish(), asleep, replace(still, call=Call("wake", NOW, ended=True))) is Step.ARRIVED
    assert step(wish(), asleep, replace(still, call=Call("wake", NOW, True, "no memory"))) is Step.CALL_FAILED
    assert step(wish(), asleep, replace(still, call=Call("wake", NOW - DEFAULT.wake_s - 1))) is Step.SLOW
    assert step(wish(), asleep, replace(FINE, asleep=False)) is Step.ARRIVED


def test_the_order_of_a_stop() -> None:
    want = wish("stopped")
    assert step(want, memo(), FINE) is Step.UNROUTE
    off, leaving = replace(FINE, routed=False), memo(stop_at=NOW)
    assert step(want, leaving, replace(off, in_flight=1)) is Step.NOTHING
    assert step(want, leaving, replace(off, in_flight=None)) is Step.NOTHING
    assert step(want, leaving, off) is Step.TERM
    assert step(want, leaving, off, others_turn=True) is Step.NOTHING
    asked = memo(stop_at=NOW, term_at=NOW)
    told = replace(off, last_term_at=NOW)
    assert step(want, asked, told, now=NOW + 1) is Step.NOTHING
    assert step(want, asked, told, now=NOW + DEFAULT.term_repeat_s) is Step.TERM
    assert step(want, asked, told, now=NOW + 5 + DEFAULT.teardown_s) is Step.KILL
    assert step(want, asked, Look()) is Step.GONE


def test_force_waits_neither_for_calls_nor_for_a_turn() -> None:
    off = replace(FINE, routed=False, in_flight=7)
    assert step(wish("stopped", force=True), memo(stop_at=NOW), off, others_turn=True) is Step.TERM


def test_force_kills_sooner() -> None:
    asked, told = memo(stop_at=NOW, term_at=NOW), replace(FINE, routed=False, last_term_at=NOW + 6.9)
    soon = NOW + 5 + DEFAULT.force_teardown_s
    assert step(wish("stopped", force=True), asked, told, now=soon) is Step.KILL
    assert step(wish("stopped"), asked, told, now=soon) is Step.NOTHING


def test_a_start_that_is_called_off_has_no_calls_to_wait_for() -> None:
    loading = replace(FINE, routed=False, health=Health.REFUSED, in_flight=None)
    assert step(wish("stopped"), memo(states.LOADING, stop_at=NOW), loading) is Step.TERM
    asked = memo(states.LOADING, stop_at=NOW, term_at=NOW)
    assert step(wish("stopped"), asked, replace(loading, last_term_at=NOW), now=NOW + DEFAULT.cancel_s) is Step.KILL


def test_there_is_no_way_back_from_a_signal() -> None:
    asked = memo(stop_at=NOW, term_at=NOW)
    assert step(wish("ready"), asked, replace(FINE, routed=False, last_term_at=NOW)) is Step.NOTHING
    assert step(wish("ready"), asked, Look()) is Step.GONE


def test_an_older_attempt_goes_before_the_next_begins() -> None:
    assert step(wish(attempt=2), memo(), FINE) is Step.UNROUTE
    assert phase_of(wish(attempt=2), memo(), FINE) == ("starting", "queued")


@pytest.mark.parametrize(
    ("the_wish", "the_memo", "look", "phase"),
    [
        (wish(), Memo(), Look(), ("starting", "queued")),
        (wish("stopped", attempt=3), Memo(), Look(), ("stopped", "")),
        (wish(), memo(states.LOADING), replace(FINE, stage="weights"), ("starting", "weights")),
        (wish(), memo(), FINE, ("ready", "")),
        (None, memo(), FINE, ("ready", "")),
        (wish("stopped"), memo(stop_at=NOW), FINE, ("draining", "door")),
        (wish("stopped"), memo(stop_at=NOW, term_at=NOW), FINE, ("draining", "term")),
        (wish("asleep"), memo(), replace(FINE, call=Call("sleep", NOW)), ("draining", "sleeping")),
        (wish("asleep"), memo(states.ASLEEP), replace(FINE, asleep=True), ("asleep", "")),
        (wish(), memo(states.ASLEEP), replace(FINE, call=Call("wake", NOW)), ("starting", "waking")),
        (wish(), memo(states.FAILED, fault="crashed"), Look(), ("failed", "")),
        (wish(), memo(states.FAILED, fault="crashed"), FINE, ("draining", "kill")),
        (wish("stopped"), memo(states.STOPPED, fault="crashed"), Look(), ("stopped", "")),
    ],
)
def test_the_phase_it_reports(the_wish: Wish | None, the_memo: Memo, look: Look, phase: tuple[str, str]) -> None:
    assert phase_of(the_wish, the_memo, look) == phase
    assert phase[0] in words.PHASES


def test_a_report_says_why_only_of_what_failed() -> None:
    failed = memo(states.FAILED, fault="hung", fault_text="...", fatal=True)
    said = report(7, wish(), failed, Look(), NOW)
    assert (said.phase, said.fault, said.fatal, said.since) == ("failed", "hung", True, NOW)
    failed.state = states.STOPPED
    said = report(7, wish("stopped"), failed, Look(), NOW + 1)
    assert (said.phase, said.fault, said.fatal, said.since) == ("stopped", "", False, NOW + 1)


def test_a_report_does_not_call_unknown_zero() -> None:
    said = report(7, wish(), memo(), replace(FINE, in_flight=None), NOW)
    assert said.door_in_flight is None
    assert said.measured_mib is None
    assert said.running is None


# An engine that hangs and says that it is well


def test_calls_without_a_token_for_too_long_are_a_stall() -> None:
    still = replace(FINE, moved_at=NOW - 119.0)
    assert step(wish(stall_s=120), memo(), still) is Step.NOTHING
    assert step(wish(stall_s=120), memo(), replace(FINE, moved_at=NOW - 120.0)) is Step.STALLED
    assert step(wish(stall_s=30), memo(), replace(FINE, moved_at=NOW - 30.0)) is Step.STALLED
    assert step(wish(), memo(), replace(FINE, moved_at=None)) is Step.NOTHING


@pytest.mark.parametrize("want", ["drained", "asleep"])
def test_a_drain_whose_calls_hang_ends_in_a_stall_too(want: str) -> None:
    assert step(wish(want, stall_s=60), memo(), replace(FINE, in_flight=1, moved_at=NOW - 61)) is Step.STALLED


def test_a_stop_goes_its_own_way_and_before_its_first_want_nothing_is_killed() -> None:
    still = replace(FINE, moved_at=NOW - 999)
    assert step(wish("stopped"), memo(), still) is Step.UNROUTE
    assert step(None, memo(), still) is Step.NOTHING


@pytest.mark.parametrize(
    ("before", "gauges", "expected"),
    [
        (None, Gauges(1, 0, 1.0, 100), NOW),
        (NOW - 50, Gauges(1, 0, 1.0, 100), NOW - 50),
        (NOW - 50, Gauges(0, 3, 1.0, 100), NOW - 50),
        (NOW - 50, Gauges(1, 0, 1.0, 101), NOW),
        (NOW - 50, Gauges(0, 0, 1.0, 100), None),
        (NOW - 50, Gauges(1, 0, 1.0, None), None),
        (NOW - 50, Gauges(), None),
    ],
)
def test_since_when_it_counts_no_token(before: float | None, gauges: Gauges, expected: float | None) -> None:
    look = Look(gauges=Gauges(1, 0, 1.0, 100), moved_at=before)
    assert moved_at(look, gauges, NOW) == expected
