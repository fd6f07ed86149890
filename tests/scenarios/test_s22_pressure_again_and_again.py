"""S22: 47 pressures of random mixes in a month: nobody is killed; the buffer or one eviction absorbs each."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from scheduler.decision import Reason, Verb
from scheduler.policy import Policy
from scheduler.world import Profile, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import a_card, a_replica, a_service, a_world

POLICY = Policy(idle_unload_s=86400)
PRESSURES = 47
MOST_GROWTH_MIB_S = 190  # from the pressure line to the end of an 80 GB card in the 30 s that relief may take
LOW = [Profile.BATCH, Profile.LOWFREQ]


def a_mix(dice: Random) -> Farm:
    """A card filled to its last MiB by one online and two or three other services, and empty ones beside it."""
    count = dice.choice([2, 3])
    share = 74766 // (count + 1)
    sizes = [share + dice.randint(-3000, 3000) for _ in range(count)]
    sizes = [74766 - sum(sizes), *sizes]
    services, seats = [], []
    for i, size in enumerate(sizes):
        kv = dice.randint(2000, size // 3)
        profile = dice.choice(LOW) if i else Profile.ONLINE
        services.append(a_service(f"s{i}", size - kv - 1000, kv, 400, 600, tier=Tier.WARM, profile=profile))
        seats.append(a_replica(i + 1, f"s{i}", kv_granted_mib=kv))
    cards = [a_card("c1", "h1"), a_card("c2", "h2"), a_card("c3", "h3")]
    farm = Farm(a_world(*cards, *services, *seats), policy=POLICY)
    farm.grown = {i + 1: size - 400 for i, size in enumerate(sizes)}  # all but the headroom
    return farm


@cache
def played(seed: int) -> Farm:
    """One of the others grows beyond its claim until it stops or is stopped; it may be in the middle of a call."""
    dice = Random(seed)
    farm = a_mix(dice)
    grower = dice.randint(2, len(farm.world.services))
    farm.calls[grower] = dice.choice([0, 0, 1, 3])
    growth = dice.randint(1000, 9000)
    rate = dice.randint(growth // 60, MOST_GROWTH_MIB_S)
    start = farm.grown[grower]
    for second in range(100):
        farm.grown[grower] = start + min(growth, rate * second)
        farm.step()
    return farm


@pytest.mark.parametrize("seed", range(PRESSURES))
def test_each_is_absorbed_by_the_buffer_or_by_one_eviction(seed):
    farm = played(seed)
    assert max(farm.peak_pct.values()) <= 100, "an engine would have been killed"
    evicted = [d for _, d in farm.journal if d.reason is Reason.PRESSURE and d.verb is Verb.DRAIN and not d.refusal]
    assert len(evicted) <= 1
    assert all(farm.ready(name) for name in farm.world.services), farm.phases()
    assert farm.did("s0") == []
    assert all(c.pressed_samples == 0 for c in farm.world.cards.values())


def test_the_month_has_pressures_of_both_kinds():
    """Else the test above would say little."""
    kinds = {"buffer": 0, "eviction": 0}
    for seed in range(PRESSURES):
        evicted = any(d.reason is Reason.PRESSURE for _, d in played(seed).journal)
        kinds["eviction" if evicted else "buffer"] += 1
    assert min(kinds.values()) >= 10, kinds
