"""The least cards that traffic can be served on: what is hot or called must be loaded, and claims take their memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.stories_bound import least_cards
from benchmarks.stories_farm import BEGAN, DAY_S, habits, world
from scheduler.simulation import Call
from scheduler.world import Tier

HOUR_S = 3600


def services(tier: Tier, count: int, like: str = "contracts"):
    """`contracts`: 7 GB of weights and what belongs to it; `search`: a small one."""
    one = next(h.service for h in habits(1) if h.service.name == like)
    return [replace(one, name=f"s{i}", tier=tier) for i in range(count)]


def least(found, *calls, keep_s=0.0):
    (cards,) = least_cards(world(found), [Call(BEGAN + at, n, False, 1, 1) for at, n in calls], 1, [keep_s])
    return cards


@pytest.mark.parametrize(("count", "cards"), [(3, 1), (4, 2), (24, 7)])
def test_hot_ones_are_always_there_three_to_the_largest_card(count, cards):
    assert least(services(Tier.HOT, count)) == cards


def test_others_only_while_they_are_called():
    assert least(services(Tier.COLD, 1)) == 0.0
    assert least(services(Tier.COLD, 1), (HOUR_S, "s0")) == pytest.approx(600 / DAY_S)
    assert least(services(Tier.COLD, 1), (HOUR_S, "s0"), keep_s=1200) == pytest.approx(1800 / DAY_S)


def test_no_card_has_more_awake_than_it_may():
    assert least(services(Tier.HOT, 9, "search")) == 3
