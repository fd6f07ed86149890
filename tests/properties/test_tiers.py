"""Tiers over random weeks: no burst promotes, nothing swings, order does not matter."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.policy import Policy
from scheduler.tiers import RANK, WEEK, hours_since_due, recomputed
from scheduler.world import Tier
from tests.scheduler.build import POLICY
from tests.scheduler.test_tiers import HOT, WARM, even

SAME = settings(deadline=None, derandomize=True, database=None, max_examples=300)
WEEKS = st.lists(st.integers(0, 3000), min_size=WEEK, max_size=WEEK)
TIERS = st.sampled_from(list(Tier))


@SAME
@given(WEEKS, TIERS, st.integers(0, 6), st.integers(0, 100_000))
def test_one_busy_day_never_promotes(days, tier, which, burst):
    """What the other six days do not earn, no seventh can."""
    days[which] = burst
    after = recomputed(tier, days, POLICY)
    if RANK[after] > RANK[tier]:
        earned = sum(days) - burst
        assert earned * 7 * 100 > {WARM: 500, HOT: 5000}[after] * 6 * 110


@SAME
@given(WEEKS, TIERS)
def test_the_same_week_again_changes_nothing_more(days, tier):
    once = recomputed(tier, days, POLICY)
    assert recomputed(once, days, POLICY) is once


@SAME
@given(WEEKS, TIERS, st.integers(0, 2000))
def test_more_calls_never_mean_a_lower_tier(days, tier, more):
    assert RANK[recomputed(tier, [d + more for d in days], POLICY)] >= RANK[recomputed(tier, days, POLICY)]


@SAME
@given(WEEKS, TIERS)
def test_the_order_of_days_does_not_matter(days, tier):
    assert recomputed(tier, sorted(days), POLICY) is recomputed(tier, days, POLICY)


@SAME
@given(st.integers(1, 20000), TIERS, st.integers(0, 2**32))
def test_a_wobble_inside_the_band_does_not_swing(level, tier, seed):
    """Weeks of 5 % more or less than a level: after the first, no more than one change, and never back."""
    dice = Random(seed)
    seen = [tier]
    for _ in range(12):
        seen.append(recomputed(seen[-1], even(int(level * dice.uniform(0.95, 1.05))), POLICY))
    changes = [(a, b) for a, b in zip(seen[1:], seen[2:], strict=False) if a is not b]
    assert len(changes) <= 1


@SAME
@given(st.integers(0, 6), st.integers(0, 23), st.integers(0, 6), st.integers(0, 23))
def test_it_was_due_at_the_hour_that_people_set(weekday, hour, at_weekday, at_hour):
    policy = Policy(tiers_weekday=at_weekday, tiers_hour=at_hour)
    for weekly, period in ((True, 7 * 24), (False, 24)):
        ago = hours_since_due(weekday, hour, policy, weekly=weekly)
        due = weekday * 24 + hour - ago
        assert 0 <= ago < period
        assert due % 24 == at_hour
        assert not weekly or due // 24 % 7 == at_weekday
