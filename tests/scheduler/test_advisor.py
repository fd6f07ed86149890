"""Resident, warm or on demand: the sums, the boundary cases before them, and how many residents a card carries."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import pytest

from scheduler.advisor import (
    Habit,
    Mode,
    Waiter,
    advise,
    call_mib,
    holding_fen,
    lost_concurrency,
    prices,
    residents,
    share_of,
    switches_h,
    waiting_s,
)
from scheduler.policy import Policy
from scheduler.world import Claim
from tests.scheduler.build import POLICY, a_card
from tests.scheduler.cases import cases

#: S12: 20 yuan a card-hour, 0.4 of the card (0.06 asleep), 40 % of the time somebody wants it, 15 s to load, 3 to wake.
S12 = Habit(switches_h=6, load_s=15, wake_s=3, price_fen_h=2000, share=0.4, residue_share=0.06, contended=0.4)


@cases(
    ("switches", "mode", "fen"),
    [
        (6, Mode.WARM, {Mode.RESIDENT: 320, Mode.WARM: 228, Mode.ON_DEMAND: 900}),
        (3 / 24, Mode.ON_DEMAND, {Mode.RESIDENT: 320, Mode.WARM: 51.75, Mode.ON_DEMAND: 18.75}),
        (300 / 24, Mode.RESIDENT, {Mode.RESIDENT: 320, Mode.WARM: 423, Mode.ON_DEMAND: 1875}),
    ],
)
def test_the_golden_story(switches, mode, fen):
    said = advise(replace(S12, switches_h=switches), POLICY)
    assert (said.mode, said.why) == (mode, "")
    assert {p.mode: pytest.approx(p.fen) for p in said.prices} == fen


def test_both_prices_stand_apart():
    resident, warm, demand = prices(S12, POLICY)
    assert (resident.waiting_s, resident.holding_fen) == (0, 320)
    assert (warm.waiting_s, warm.waiting_fen, warm.holding_fen) == (18, 180, 48)
    assert (demand.waiting_s, demand.holding_fen) == (90, 0)


@cases(("waiter", "share"), [(Waiter.PERSON, 1.0), (Waiter.BACKGROUND, 0.1), (Waiter.TIMER, 0.0)])
def test_who_waits_counts(waiter, share):
    assert waiting_s(Mode.ON_DEMAND, replace(S12, waiter=waiter), POLICY) == pytest.approx(90 * share)


def test_a_timer_is_never_worth_memory():
    assert advise(replace(S12, waiter=Waiter.TIMER, switches_h=1000), POLICY).mode is Mode.ON_DEMAND


@cases(("hit", "mode"), [(0.0, Mode.WARM), (0.75, Mode.WARM), (0.95, Mode.ON_DEMAND)])
def test_what_is_loaded_ahead_is_not_waited_for(hit, mode):
    assert advise(replace(S12, preload_hit=hit), POLICY).mode is mode


@cases("switches", [0, 0.01, 6, 500])
def test_memory_nobody_wants_is_free_to_hold(switches):
    said = advise(replace(S12, contended=0.0, switches_h=switches), POLICY)
    assert said.mode is Mode.RESIDENT
    assert all(p.holding_fen == 0 for p in said.prices)


def test_warm_is_not_offered_to_an_engine_that_cannot_sleep():
    said = advise(replace(S12, can_sleep=False), POLICY)
    assert [p.mode for p in said.prices] == [Mode.RESIDENT, Mode.ON_DEMAND]
    assert said.mode is Mode.RESIDENT


@cases("why", ["minimum", "hot", "whitelisted", "first_token", "small", "resident", "alone"])
def test_boundary_cases_come_before_the_sums(why):
    said = advise(replace(S12, switches_h=0, kept=why), POLICY)
    assert (said.mode, said.why) == (Mode.RESIDENT, why)
    assert len(said.prices) == 3, "both prices are shown all the same"


def test_holding_goes_by_what_is_held():
    assert holding_fen(Mode.RESIDENT, S12) / holding_fen(Mode.WARM, S12) == pytest.approx(0.4 / 0.06)
    assert holding_fen(Mode.ON_DEMAND, S12) == 0


def test_what_a_second_is_worth_is_policy():
    assert advise(S12, Policy(wait_fen_per_s=0.1)).mode is Mode.ON_DEMAND
    assert advise(S12, Policy(wait_fen_per_s=100)).mode is Mode.RESIDENT


@cases(
    ("calls", "expected"),
    [([], 0), ([0, 0], 0), ([1], exp(-1200 / 3600)), ([600], 0.0), ([1, 0, 0, 0], exp(-1 / 3) / 4)],
)
def test_how_often_callers_would_find_it_gone(calls, expected):
    assert switches_h(calls, 1200) == pytest.approx(expected, abs=1e-9)


def test_switches_are_most_where_calls_come_about_once_in_the_idle_time():
    rates = [switches_h([n], 1200) for n in (0.1, 1, 3, 10, 30)]
    assert max(rates) == rates[2]


@cases(
    ("total", "weights", "kv", "fits", "plain"),
    [(24576, 7168, 0, 2, 3), (24576, 7168, 1024, 2, 3), (24576, 7168, 6000, 1, 3), (81920, 7168, 2048, 4, 11)],
)
def test_how_many_stay_loaded_on_a_card(total, weights, kv, fits, plain):
    said = residents(a_card(total=total, reserved=450), Claim(weights, kv, 512, 600), POLICY)
    assert (said.fits, said.plain) == (fits, plain)
    assert said.allocatable_mib + said.buffer_mib + said.reserved_mib == total
    assert said.fits * said.each_mib + said.left_mib == said.allocatable_mib


def test_what_one_more_would_lack():
    said = residents(a_card(total=24576, reserved=450), Claim(7168, 1024, 512, 600), POLICY)
    assert said.short_mib == said.each_mib - said.left_mib > 0
    assert residents(a_card(), Claim(1000, 0, 0, 0), POLICY).short_mib == 0


@cases(
    ("free_kv", "held", "call", "lost"), [(4000, 4000, 1000, 4), (4000, 400, 1000, 0), (0, 9000, 1000, 9), (1, 1, 0, 0)]
)
def test_lost_concurrency(free_kv, held, call, lost):
    assert lost_concurrency(free_kv, held, call) == lost


def test_small_parts():
    assert share_of(4000, 10000) == 0.4
    assert share_of(20000, 10000) == 1.0
    assert share_of(1, 0) == 1.0
    assert call_mib(57344, 2048) == 112
    assert call_mib(1, 1) == 1
