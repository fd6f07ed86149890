"""S24: 29 cards full at 03:00, the chips at 2 to 5 %: the symptom is named, with who could sleep and the gain."""

from __future__ import annotations

from random import Random

import pytest

from scheduler.memory import allocatable_mib, room_mib
from scheduler.policy import Policy
from scheduler.symptoms import Cure, Figures, Kind, PoolUse, Resident, check_up
from scheduler.world import Demand, Phase, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_draft, a_replica, a_service, a_world


def a_night(seed: int, cards: int = 29) -> tuple[PoolUse, dict[str, int]]:
    """Residents as applications left them, each on a card of its own; a few are called, most are not."""
    dice = Random(seed)
    calls = {f"s{i}": dice.choice([0, 0, 0, 3, 12, 600, 4000]) for i in range(cards)}
    gains = {name: dice.randint(20_000, 70_000) for name in calls}
    residents = tuple(Resident(name, gains[name], calls[name]) for name in calls)
    return PoolUse("shared", cards, dice.uniform(88, 99), dice.uniform(2, 5), residents), calls


@pytest.mark.parametrize("seed", range(10))
def test_the_symptom_is_named_with_the_list_and_the_gain(seed):
    use, calls = a_night(seed)
    (said,) = check_up(Figures(pools=[use]), POLICY)
    assert (said.kind, said.pool) == (Kind.FULL_IDLE, "shared")
    quiet = {name for name, n in calls.items() if n <= POLICY.few_calls_24h}
    assert {name for name, _ in said.others} == quiet
    assert said.numbers["gain_mib"] == sum(mib for _, mib in said.others)
    assert [r.cure for r in said.remedies] == [Cure.WARM] * len(quiet)
    gains = [mib for _, mib in said.others]
    assert gains == sorted(gains, reverse=True), "what frees most is first"


def test_following_the_advice_frees_what_was_said():
    """The named services, resident before, are warm now: asleep by morning, and the memory is there."""
    quick = Policy(idle_unload_s=60, grace_s=10, min_loaded_s=10, half_empty_pct=0)
    count = 12
    cards = [a_card(f"c{i}", f"h{i // 4}") for i in range(count)]
    services = [
        a_service(f"s{i}", 40_000, 20_000, tier=Tier.WARM, demand=Demand(last_call_at=NOW - 9000)) for i in range(count)
    ]
    copies = [a_replica(i + 1, f"s{i}", f"c{i}", kv_granted_mib=20_000) for i in range(count)]
    farm = Farm(a_world(*cards, *services, *copies), policy=quick)
    before = a_draft(*cards, *services, *copies)
    held = sum(allocatable_mib(before.book(c.id)) - room_mib(before.book(c.id)) for c in cards)
    for _ in range(200):
        farm.step()
    asleep = [r for r in farm.world.replicas.values() if r.phase is Phase.ASLEEP]
    assert len(asleep) == count
    after = a_draft(*farm.world.cards.values(), *services, *farm.world.replicas.values(), policy=quick)
    now_held = sum(allocatable_mib(after.book(c)) - room_mib(after.book(c)) for c in farm.world.cards)
    gain = sum(s.claim.fixed_mib + 20_000 - POLICY.default_residue_mib for s in services)
    assert held - now_held == gain
