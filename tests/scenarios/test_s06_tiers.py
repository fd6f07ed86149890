"""S06: thresholds, a burst that moves nothing, a season that shifts tiers by itself; and what a tier then means."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from scheduler.decision import Verb
from scheduler.policy import Policy
from scheduler.tiers import recomputed
from scheduler.world import Demand, Phase, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world

COLD, WARM, HOT = Tier.COLD, Tier.WARM, Tier.HOT


def a_week(dice: Random, total: int, noise: float = 0.1) -> list[int]:
    """Workdays alike, weekends at a third, each day a little off."""
    shape = [dice.uniform(1 - noise, 1 + noise) * (1.0 if day < 5 else 0.33) for day in range(7)]
    return [round(total * part / sum(shape)) for part in shape]


def weeks(tier: Tier, totals: list[int], seed: int = 0) -> list[Tier]:
    """The tier after each week's recomputation."""
    dice, seen = Random(seed), [tier]
    for total in totals:
        seen.append(recomputed(seen[-1], a_week(dice, total), POLICY))
    return seen[1:]


@pytest.mark.parametrize(("calls", "tier"), [(5001, HOT), (5000, WARM), (501, WARM), (500, COLD)])
def test_the_four_counts_of_the_story(calls, tier):
    assert recomputed(None, [calls, 0, 0, 0, 0, 0, 0], POLICY) is tier


@pytest.mark.parametrize("day", range(7))
@pytest.mark.parametrize("rest", [0, 10, 60])
@pytest.mark.parametrize("burst", [6000, 60_000])
def test_a_burst_of_one_day_in_a_cold_week_moves_nothing(day, rest, burst):
    days = [rest] * 7
    days[day] = burst
    assert recomputed(COLD, days, POLICY) is COLD


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("start", "before", "after"), [(3000, WARM, HOT), (300, COLD, WARM), (900, WARM, WARM)])
def test_a_season_that_doubles_all_over_three_weeks_shifts_tiers_within_two_recomputations(start, before, after, seed):
    growing = [round(start * 2 ** (week / 3)) for week in range(4)]
    seen = weeks(before, [start, start, *growing, *[start * 2] * 2], seed)
    assert seen[1] is before
    assert seen[-1] is after
    assert sum(a is not b for a, b in pairwise(seen)) <= 1
    assert seen[5 + 1] is after, "two recomputations after the season has come"


@pytest.mark.parametrize("seed", range(5))
def test_after_the_season_it_goes_back_once(seed):
    up, down = [7500] * 3, [7000, 5200, 4000, 3600, 3600]
    seen = weeks(WARM, [3700, *up, *down], seed)
    assert seen[1:4] == [HOT] * 3
    assert seen[-1] is WARM
    assert sum(a is not b for a, b in pairwise(seen)) == 2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [505, 495, 4950, 5050])
def test_weeks_around_a_threshold_do_not_swing(level, seed):
    dice = Random(seed)
    for start in Tier:
        seen = weeks(start, [round(level * dice.uniform(0.96, 1.04)) for _ in range(10)], seed)
        assert sum(a is not b for a, b in pairwise(seen)) == 0, (start, seen)


@pytest.mark.parametrize(("tier", "phases"), [(HOT, ["ready@c1"]), (WARM, ["asleep@c1"]), (COLD, None)])
def test_what_the_tier_means_to_an_idle_replica(tier, phases):
    policy = Policy(idle_unload_s=60, grace_s=10, min_loaded_s=10, half_empty_pct=0)
    idle = a_service("idle", tier=tier, demand=Demand(last_call_at=NOW - 30))
    other = a_service("other", tier=HOT)
    farm = Farm(a_world(a_card("c1"), a_card("c2"), idle, other, a_replica(1, "idle")), policy=policy)
    for _ in range(200):
        farm.step()
    assert farm.phases().get("idle") == phases
    assert bool(farm.did("idle", Verb.DRAIN)) is (tier is not HOT)
    assert farm.world.replicas.get(1) is None or farm.world.replicas[1].phase in (Phase.READY, Phase.ASLEEP)
