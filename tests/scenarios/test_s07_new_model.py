"""S07: a model that arrives on a Wednesday is tiered without anybody's setting."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest

from scheduler.tiers import hours_since_due, of_young, recomputed, young
from scheduler.world import Tier
from tests.scheduler.build import POLICY

COLD, WARM, HOT = Tier.COLD, Tier.WARM, Tier.HOT
SITE = ZoneInfo("Asia/Shanghai")
WEDNESDAY = datetime(2026, 12, 2, tzinfo=SITE)


def live(arrived: datetime, per_day: list[int], nights: int) -> list[Tier]:
    """Its tier after each night of its life: nightly while young, then on Mondays; as control does it."""
    tier, seen = WARM, []
    calls = {arrived.date() + timedelta(days=i): count for i, count in enumerate(per_day)}
    for night in range(1, nights + 1):
        now = (arrived + timedelta(days=night)).replace(hour=3, minute=0)
        midnight = now.replace(hour=0)
        days = [calls.get((midnight - timedelta(days=back)).date(), 0) for back in range(7, 0, -1)]
        age_s = (midnight - arrived).total_seconds()
        if young(age_s):
            tier = of_young(tier, sum(days), age_s, POLICY)
        elif hours_since_due(now.weekday(), now.hour, POLICY, weekly=True) == 0:
            tier = recomputed(tier, days, POLICY)
        seen.append(tier)
    return seen


@pytest.mark.parametrize("hour", [0, 9, 15, 23])
@pytest.mark.parametrize(("a_day", "tier"), [(1500, HOT), (200, WARM), (3, COLD), (0, COLD)])
def test_within_three_nights_it_has_the_tier_of_its_calls(hour, a_day, tier):
    first = round(a_day * (24 - hour) / 24)
    seen = live(WEDNESDAY.replace(hour=hour), [first, *[a_day] * 20], 20)
    assert seen[2] is tier
    assert set(seen[2:]) == {tier}


@pytest.mark.parametrize("hour", [1, 9, 15, 23])
def test_the_first_day_is_warm_whatever_comes(hour):
    seen = live(WEDNESDAY.replace(hour=hour), [50_000] * 3, 1)
    assert seen == [WARM]


def test_a_launch_day_of_trying_out_is_corrected_while_it_is_young():
    seen = live(WEDNESDAY, [3000, 40, 40, 10, 10, 40, 40, *[40] * 14], 21)
    assert HOT in seen[:3]
    assert seen[-1] is COLD


@pytest.mark.parametrize("seed", range(6))
def test_any_level_ends_in_its_tier_on_the_second_monday_at_the_latest(seed):
    dice = Random(seed)
    for level in (dice.randint(700, 4000), dice.randint(6000, 60_000), dice.randint(0, 400)):
        per_day = [round(level / 7 * dice.uniform(0.9, 1.1)) for _ in range(20)]
        expected = HOT if level > 5500 else WARM if level > 550 else COLD
        assert live(WEDNESDAY.replace(hour=10), per_day, 13)[-1] is expected, level


def test_once_it_is_a_week_old_only_mondays_move_it():
    """From Wednesday the ninth on nothing happens until Monday the fourteenth, whatever is called."""
    seen = live(WEDNESDAY, [*[100] * 7, *[5000] * 5], 12)
    assert set(seen[6:11]) == {WARM}
    assert seen[11] is HOT
