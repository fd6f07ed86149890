"""S10: somebody asks for three, or a fourth, to stay resident on a small card: answered with the arithmetic."""

from __future__ import annotations

from random import Random

import pytest

from scheduler.advisor import residents
from scheduler.decision import Verb
from scheduler.draft import Draft
from scheduler.memory import room_mib
from scheduler.planner import plan
from scheduler.world import Claim, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_draft, a_service, a_world, acting

SMALL = a_card(total=24576, reserved=450)


def sevens(count: int, weights: int = 7168, kv: int = 1024, headroom: int = 512) -> list:
    return [a_service(f"m{i}", weights, kv, headroom, tier=Tier.HOT) for i in range(count)]


def test_three_by_plain_sums_two_in_truth():
    said = residents(SMALL, Claim(7168, 1024, 512, 600), POLICY)
    assert (said.plain, said.fits) == (3, 2)
    assert said.each_mib == 7168 + 600 + 512 + 1024
    assert said.reserved_mib + said.buffer_mib + said.fits * said.each_mib + said.left_mib == 24576
    assert said.short_mib == said.each_mib - said.left_mib


@pytest.mark.parametrize("asked", [2, 3, 4])
def test_as_many_load_as_the_arithmetic_says_and_none_half(asked):
    farm = Farm(a_world(SMALL, *sevens(asked)))
    for _ in range(120):
        farm.step()
        assert room_mib(a_draft_of(farm).book("c1")) >= 0
        assert farm.peak_pct["c1"] <= 100 - POLICY.buffer_pct
    ready = [name for name, phases in farm.phases().items() if phases == ["ready@c1"]]
    assert len(ready) == min(asked, 2)
    if asked > 2:
        assert farm.refusals(f"m{asked - 1}"), "told, with the reason"


def a_draft_of(farm: Farm) -> Draft:
    return Draft(farm.world, POLICY, farm.now)


@pytest.mark.parametrize("seed", range(20))
def test_the_arithmetic_is_the_planners_own(seed):
    """Whatever the card and the model: what the page says fits is what is started, one after the other."""
    dice = Random(seed)
    card = a_card(total=dice.choice([16384, 24576, 40960, 49152]), reserved=dice.choice([300, 450, 700]))
    weights, kv, headroom = dice.randint(2000, 20000), dice.randint(0, 6000), dice.randint(0, 1500)
    said = residents(card, Claim(weights, kv, headroom, 600), POLICY)
    farm = Farm(a_world(card, *sevens(said.fits + 1, weights, kv, headroom)), load_s={})
    for _ in range(150):
        farm.step()
    ready = [r for r in farm.world.replicas.values() if r.phase == "ready"]
    granted_whole = [r for r in ready if r.kv_granted_mib == kv]
    assert len(granted_whole) == said.fits, "each with all of its KV"


def test_a_fourth_is_refused_in_the_same_tick_it_asks():
    there = sevens(3)
    world = a_world(SMALL, *there)
    assert len([d for d in acting(plan(world, POLICY, NOW)) if d.verb is Verb.START]) == 1, "one load at a time"
    assert a_draft(SMALL).book("c1").seats == ()
