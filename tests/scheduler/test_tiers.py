"""Tiers from calls: thresholds, the week without its busiest day, the band, young services, and when it is due."""

from __future__ import annotations

import pytest

from scheduler.policy import Policy
from scheduler.tiers import DAY_S, WEEK, hours_since_due, of_young, recomputed, tier_of, young
from scheduler.world import Tier
from tests.scheduler.build import POLICY
from tests.scheduler.cases import cases

COLD, WARM, HOT = Tier.COLD, Tier.WARM, Tier.HOT


def even(total: int) -> list[int]:
    """A week of equal days (the rest on the first)."""
    return [total - 6 * (total // WEEK), *[total // WEEK] * 6]


@cases(
    ("calls", "tier"),
    [(0, COLD), (500, COLD), (501, WARM), (5000, WARM), (5001, HOT), (1_000_000, HOT)],
)
def test_thresholds_are_taken_plainly_by_who_has_no_tier(calls, tier):
    assert tier_of(calls, POLICY) is tier
    assert recomputed(None, even(calls), POLICY) is tier


@cases(
    ("tier", "days", "after"),
    [
        (COLD, [78] * 7, COLD),  # 546: over the threshold, not over its band
        (COLD, [79] * 7, WARM),  # 553 > 550
        (WARM, [785] * 7, WARM),  # 5495
        (WARM, [786] * 7, HOT),  # 5502 > 5500
        (COLD, [786] * 7, HOT),  # both at once
        (COLD, [0, 0, 6000, 0, 0, 0, 0], COLD),
        (WARM, [80, 80, 6000, 80, 80, 80, 80], WARM),
        (HOT, [0, 0, 6000, 0, 0, 0, 0], HOT),  # the whole sum counts against it
        (HOT, [4500, 0, 0, 0, 0, 0, 0], HOT),
        (HOT, [4499, 0, 0, 0, 0, 0, 0], WARM),
        (HOT, [449, 0, 0, 0, 0, 0, 0], COLD),
        (WARM, [450, 0, 0, 0, 0, 0, 0], WARM),
        (WARM, [449, 0, 0, 0, 0, 0, 0], COLD),
        (COLD, [0] * 7, COLD),
        (WARM, [200, 200, 200, 200, 200, 0, 0], WARM),  # no calls at weekends
        (COLD, [110, 110, 110, 110, 110, 0, 0], COLD),  # 440 * 7 / 6 = 513
        (COLD, [120, 120, 120, 120, 120, 0, 0], WARM),  # 480 * 7 / 6 = 560
    ],
)
def test_a_week_moves_a_tier_only_when_it_is_clear(tier, days, after):
    assert recomputed(tier, days, POLICY) is after


@cases("count", [0, 6, 8])
def test_anything_but_a_week_is_an_error(count):
    with pytest.raises(ValueError, match="7 days"):
        recomputed(WARM, [1] * count, POLICY)


def test_the_figures_are_the_policys():
    strict = Policy(hot_calls_7d=100, warm_calls_7d=10, tier_band_pct=0)
    assert [tier_of(n, strict) for n in (10, 11, 100, 101)] == [COLD, WARM, WARM, HOT]
    assert recomputed(COLD, [2] * 7, strict) is WARM
    assert recomputed(WARM, [1] * 7, strict) is COLD


@cases(
    ("tier", "calls", "days", "after"),
    [
        (WARM, 100_000, 0.9, WARM),  # a first day says little
        (WARM, 0, 0, WARM),
        (WARM, 0, -0.5, WARM),  # registered after midnight
        (COLD, 0, 0.5, COLD),
        (WARM, 715, 1.0, HOT),  # 5005 a week
        (WARM, 714, 1.0, WARM),
        (WARM, 100, 1.5, COLD),  # 466
        (WARM, 108, 1.5, WARM),  # 504
        (HOT, 300, 6.0, COLD),  # 350
        (COLD, 4500, 6.0, HOT),  # 5250
    ],
)
def test_a_young_service_is_tiered_by_what_a_week_of_it_would_be(tier, calls, days, after):
    assert of_young(tier, calls, days * DAY_S, POLICY) is after


def test_a_week_makes_it_old():
    assert young(7 * DAY_S - 1)
    assert not young(7 * DAY_S)


@cases(
    ("weekday", "hour", "weekly", "hours"),
    [
        (0, 3, True, 0),
        (0, 2, True, 7 * 24 - 1),
        (0, 4, True, 1),
        (6, 23, True, 6 * 24 + 20),
        (1, 2, True, 23),
        (1, 2, False, 23),
        (1, 3, False, 0),
        (5, 0, False, 21),
    ],
)
def test_it_is_due_on_mondays_at_three_and_for_the_young_every_night(weekday, hour, weekly, hours):
    assert hours_since_due(weekday, hour, POLICY, weekly=weekly) == hours
