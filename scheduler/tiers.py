"""Tiers by use: recomputed once a week from seven days of calls, so that neither a burst nor a wobble moves anybody.

Days are whole days of site time; who counts them is the caller's business.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.memory import HUNDRED
from scheduler.policy import Policy
from scheduler.world import Tier

#: The rule's own number: tiers are by calls in seven days.
WEEK = 7
DAY_S, DAY_H = 86400, 24
RANK = {Tier.COLD: 0, Tier.WARM: 1, Tier.HOT: 2}


def tier_of(calls_7d: int, policy: Policy) -> Tier:
    """The plain thresholds, for a service that has no tier yet."""
    if calls_7d > policy.hot_calls_7d:
        return Tier.HOT
    return Tier.WARM if calls_7d > policy.warm_calls_7d else Tier.COLD


def recomputed(tier: Tier | None, days: Sequence[int], policy: Policy) -> Tier:
    """The tier after a week of calls a day (seven numbers); ValueError for any other count.

    Up: the week without its busiest day, taken for seven, must be clearly over a threshold. Down: the whole week must
    be clearly under it.
    """
    if len(days) != WEEK:
        raise ValueError(f"{WEEK} days make a week, not {len(days)}")
    if tier is None:
        return tier_of(sum(days), policy)
    highest = max(RANK[tier], RANK[_promoted(days, policy)])
    if highest > RANK[tier]:
        return _of_rank(highest)
    return _of_rank(min(RANK[tier], RANK[_demoted(sum(days), policy)]))


def _of_rank(rank: int) -> Tier:
    return next(tier for tier, place in RANK.items() if place == rank)


def _promoted(days: Sequence[int], policy: Policy) -> Tier:
    """The highest tier that the week earns: (sum - busiest) * 7 / 6 over the threshold and its band."""
    steady = (sum(days) - max(days)) * WEEK * HUNDRED
    over = (WEEK - 1) * (HUNDRED + policy.tier_band_pct)
    if steady > policy.hot_calls_7d * over:
        return Tier.HOT
    return Tier.WARM if steady > policy.warm_calls_7d * over else Tier.COLD


def _demoted(calls_7d: int, policy: Policy) -> Tier:
    """The lowest tier that the week still pays for."""
    under = HUNDRED - policy.tier_band_pct
    if calls_7d * HUNDRED >= policy.hot_calls_7d * under:
        return Tier.HOT
    return Tier.WARM if calls_7d * HUNDRED >= policy.warm_calls_7d * under else Tier.COLD


def young(age_s: float) -> bool:
    """Has the service less than a week behind it?"""
    return age_s < WEEK * DAY_S


def of_young(tier: Tier, calls: int, age_s: float, policy: Policy) -> Tier:
    """The tier of a service younger than a week, from all its calls so far; until the first day is over what it has."""
    if age_s <= 0 or age_s < policy.tier_first_s:
        return tier
    return tier_of(int(calls * WEEK * DAY_S // age_s), policy)


def hours_since_due(weekday: int, hour: int, policy: Policy, *, weekly: bool) -> int:
    """Whole hours of site time since a recomputation was last due, at this weekday (0 Monday) and hour."""
    since = hour - policy.tiers_hour
    if not weekly:
        return since % DAY_H
    return ((weekday - policy.tiers_weekday) * DAY_H + since) % (WEEK * DAY_H)
