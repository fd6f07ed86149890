"""Six symptoms: found where they are, silent where they are not, each with figures and a cure."""

from __future__ import annotations

from dataclasses import replace

from scheduler.symptoms import (
    DETECTORS,
    Broken,
    Busy,
    Caps,
    Cure,
    Figures,
    Kind,
    Mornings,
    Neighbour,
    PoolUse,
    Remedy,
    Resident,
    Swaps,
    check_up,
    first_call,
    full_idle,
    hold_cap,
    load_failed,
    neighbour,
    swapping,
)
from scheduler.thrash import Hour
from tests.scheduler.build import POLICY
from tests.scheduler.cases import cases

FULL = PoolUse("p", 29, 92.0, 3.0, (Resident("a", 20000, 2), Resident("b", 30000, 0), Resident("busy", 40000, 900)))
SLOW = Mornings("s", (12.0, 14.0, 0.0, 16.0), hour=8)
CAPPED = Caps("s", 12, 40, 15, 22.0)
DEAD = Broken("s", 600, 3, "out_of_memory", 0, calls=17)
SWAPS = Swaps("s", Hour(30, 4, 50), ("t",), slot_fen_h=120, tier_fen_h=30)
BUSY = Busy("s", 9, 2400.0, 800.0, (Neighbour("hog", 7, 4000, 30000), Neighbour("small", 8, 4000, 2000)))


def test_full_and_idle_names_who_could_sleep_and_what_that_gives():
    said = full_idle(FULL, POLICY)
    assert (said.kind, said.pool, said.others) == (Kind.FULL_IDLE, "p", (("b", 30000), ("a", 20000)))
    assert said.numbers == {"cards": 29, "used_pct": 92, "util_pct": 3, "services": 2, "gain_mib": 50000}
    assert said.remedies == (Remedy(Cure.WARM, "b"), Remedy(Cure.WARM, "a"))


@cases(
    "changed",
    [
        {"used_pct": 84.9},
        {"util_pct": 10.1},
        {"util_pct": None},
        {"residents": ()},
        {"residents": (Resident("a", 20000, 2, kept=True),)},
        {"residents": (Resident("a", 20000, 21),)},
        {"residents": (Resident("a", 0, 0),)},
    ],
)
def test_a_pool_that_is_not_full_or_works_or_has_nobody_to_put_asleep(changed):
    assert full_idle(replace(FULL, **changed), POLICY) is None


def test_the_first_call_of_the_day():
    said = first_call(SLOW, POLICY)
    assert said.numbers == {"days": 3, "of_days": 4, "wait_s": 14.0, "hour": 8}
    assert [r.cure for r in said.remedies] == [Cure.AHEAD, Cure.TIER_UP]
    assert [r.cure for r in first_call(replace(SLOW, can_sleep=False), POLICY).remedies] == [Cure.AHEAD]


@cases("waits", [(), (12, 14), (12, 14, 2.0, 0), (9, 9, 9, 0, 0, 0, 0)])
def test_a_first_call_that_is_mostly_fast(waits):
    assert first_call(replace(SLOW, waits_s=waits), POLICY) is None


@cases(("load_s", "first"), [(22.0, Cure.LONGER_HOLD), (10.0, Cure.AHEAD), (None, Cure.AHEAD), (400.0, Cure.AHEAD)])
def test_time_outs_at_the_cap_and_whether_a_longer_hold_would_help(load_s, first):
    said = hold_cap(replace(CAPPED, load_s=load_s), POLICY)
    assert said.remedies[0].cure is first
    assert said.numbers["capped"] == 12
    assert ("load_s" in said.numbers) is (load_s is not None)


@cases("changed", [{"capped": 2}, {"calls": 241}, {"capped": 0, "calls": 0}])
def test_few_time_outs_are_none(changed):
    assert hold_cap(replace(CAPPED, **changed), POLICY) is None


def test_dead_after_a_failed_load():
    said = load_failed(DEAD, POLICY)
    assert said.numbers == {"failures": 3, "failed_s": 600, "fault": "out_of_memory", "calls": 17}
    assert said.remedies == (Remedy(Cure.RETRY),)


@cases("changed", [{"ready": 1}, {"coming": 1}, {"failures": 0}, {"failed_s": 119}])
def test_what_serves_or_is_tried_again_is_not_dead(changed):
    assert load_failed(replace(DEAD, **changed), POLICY) is None


def test_swapping_with_its_partner_and_both_prices():
    said = swapping(SWAPS, POLICY)
    assert said.others == (("t", 0),)
    assert (said.numbers["slot_fen_h"], said.numbers["tier_fen_h"]) == (120, 30)
    unpriced = swapping(replace(SWAPS, slot_fen_h=None, tier_fen_h=None), POLICY)
    assert "slot_fen_h" not in unpriced.numbers


@cases("hour", [Hour(3, 0, 3), Hour(4, 0, 100)])
def test_few_loads_or_many_calls_are_no_swapping(hour):
    assert swapping(replace(SWAPS, hour=hour), POLICY) is None


def test_slow_beside_an_idle_neighbour_that_is_named():
    said = neighbour(BUSY, POLICY)
    assert said.others[0] == ("hog", 30000)
    assert said.remedies[0] == Remedy(Cure.DRAIN, "hog", 7)
    assert said.numbers["p99_ms"] == 2400


@cases(
    "changed",
    [
        {"p99_ms": None},
        {"p99_ms": 800.0},
        {"waiting": 0},
        {"waiting": None},
        {"neighbours": ()},
        {"neighbours": (Neighbour("hog", 7, 1199, 30000),)},
        {"neighbours": (Neighbour("hog", 7, 4000, 0),)},
    ],
)
def test_who_is_fast_or_has_no_idle_neighbour(changed):
    assert neighbour(replace(BUSY, **changed), POLICY) is None


def test_a_check_up_asks_every_detector_in_the_order_of_the_list():
    figures = Figures((FULL,), (SLOW,), (CAPPED, replace(CAPPED, service="a")), (DEAD,), (SWAPS,), (BUSY,))
    assert [s.kind for s in check_up(figures, POLICY)] == [
        Kind.FULL_IDLE, Kind.FIRST_CALL, Kind.HOLD_CAP, Kind.HOLD_CAP, Kind.LOAD_FAILED, Kind.SWAPPING, Kind.NEIGHBOUR
    ]  # fmt: skip
    assert [s.service for s in check_up(figures, POLICY)][2:4] == ["a", "s"]
    assert len(DETECTORS) == len(Kind) == 6
    assert check_up(Figures(), POLICY) == []
