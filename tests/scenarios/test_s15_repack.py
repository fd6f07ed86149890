"""S15: many half-used cards; 120 GB are free and 40 GB fit nowhere. The night's repack makes room and drops nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import pytest

from scheduler.decision import Reason, Refusal, Verb
from scheduler.placement import place
from scheduler.policy import Policy
from scheduler.world import Profile, Tier
from tests.scenarios.night import Night
from tests.scheduler.build import NOW, a_card, a_replica, a_service, a_world

#: Nobody is idle by the clock of this story: what moves, moves for repack.
POLICY = Policy(idle_unload_s=86400, grace_s=0)
ROOM = 81920 - 600 - 6554
GB = 1024


def half_used(dice: Random, cards: int, large: int) -> Night:
    """Each card has two or three copies and too little left for the large one; it is a third of what is expected."""
    things: list = [
        a_service("large", large - 4600, 4000, 300, 300, tier=Tier.COLD, starts_28d=34),
        a_service("small", 1500, 400, 50, 50, tier=Tier.COLD, starts_28d=64, profile=Profile.LOWFREQ),
    ]
    number = 0
    for place_no in range(cards):
        left = dice.randint(large * 45 // 100, large * 60 // 100)
        count = dice.choice([2, 3])
        sizes = cut(dice, ROOM - left, count, large)
        for size in sizes:
            number += 1
            name, kv = f"s{number}", size // 5
            profile = dice.choice([Profile.LOWFREQ, Profile.ONLINE])
            things.append(a_service(name, size - kv - 1000, kv, 400, 600, tier=Tier.WARM, profile=profile))
            things.append(a_replica(number, name, f"c{place_no}", kv_granted_mib=kv, last_call_at=NOW))
        things.append(a_card(f"c{place_no}", f"h{place_no // 4}"))
    return Night(a_world(*things), policy=POLICY)


def cut(dice: Random, total: int, count: int, large: int) -> list[int]:
    """So many parts, none of them tiny: one about half as large as the large service is among them."""
    first = dice.randint(large * 40 // 100, large * 52 // 100)
    rest = total - first
    if count == 2:
        return [first, rest]
    half = rest // 2 + dice.randint(-2 * GB, 2 * GB)
    return [first, half, rest - half]


@cache
def night(seed: int):
    """Two copies are in the middle of a call when their turn comes; they last for four minutes."""
    dice = Random(seed)
    farm = half_used(dice, cards=dice.randint(6, 9), large=dice.randint(36, 42) * GB)
    before = farm.stranded()
    fits_before = place(farm.world, POLICY, farm.world.services["large"], farm.now)
    proposal = farm.ask()
    farm.calls = {step.replica: 1 for step in proposal.steps[:2]}
    for _ in range(3600):
        farm.step()
        if farm.now - NOW > 240:
            farm.calls = {}
        if farm.over:
            break
    return farm, before, fits_before, proposal


SEEDS = range(8)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_evening_much_is_free_and_the_large_one_fits_nowhere(seed):
    _, before, fits, proposal = night(seed)
    assert before.free_mib > 100 * GB
    assert isinstance(fits, Refusal)
    assert 30 <= before.pct <= 40
    assert proposal.before == before


@pytest.mark.parametrize("seed", SEEDS)
def test_the_morning_it_fits_and_at_most_12_percent_are_stranded(seed):
    farm, _, _, proposal = night(seed)
    assert set(farm.ended.values()) == {"done"}
    assert farm.stranded().pct <= 12
    assert farm.stranded().pct == pytest.approx(proposal.after.pct, abs=0.1)
    assert not isinstance(place(farm.world, POLICY, farm.world.services["large"], farm.now), Refusal)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bounded_number_of_moves_one_after_the_other(seed):
    farm, _, _, proposal = night(seed)
    assert 0 < len(proposal.steps) <= POLICY.repack_max_moves
    acts = [(at, d.verb) for at, d in farm.journal if d.reason is Reason.REPACK and d.refusal is None]
    verbs = [verb for _, verb in acts]
    assert verbs == [Verb.START, Verb.DRAIN, Verb.STOP] * len(proposal.steps)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_dropped(seed):
    """Every service had somebody ready in every second, nobody with a call was stopped, nothing was forced."""
    farm, _, _, _ = night(seed)
    assert farm.unserved == set()
    assert not any(d.force for _, d in farm.journal)
    stops = [(at, d.replica) for at, d in farm.journal if d.verb is Verb.STOP and d.reason is Reason.REPACK]
    assert stops
    assert all(at - NOW > 240 for at, replica in stops if replica in {s.replica for s in night(seed)[3].steps[:2]})


@pytest.mark.parametrize("seed", SEEDS)
def test_no_card_ever_held_more_than_it_has(seed):
    farm, _, _, _ = night(seed)
    assert max(farm.peak_pct.values()) <= 100 - POLICY.buffer_pct


def test_a_caller_in_the_night_comes_first():
    """The next move waits until he is served."""
    farm = half_used(Random(3), 7, 40 * GB)
    farm.ask()
    farm.call("large")
    for _ in range(5):
        farm.step()
    assert not farm.did("small")
    assert [d for _, d in farm.journal if d.reason is Reason.REPACK] == []


def test_the_first_that_fails_stops_the_rest_and_its_service_serves_on():
    farm = half_used(Random(1), 8, 40 * GB)
    proposal = farm.ask()
    assert len(proposal.steps) > 1
    first = proposal.steps[0]
    farm.fails = {(first.service, first.target[0])}
    farm.until(lambda f: f.over)
    assert farm.ended[1] == "failed"
    assert set(farm.ended.values()) == {"failed", "stopped"}
    assert farm.unserved == set()
    assert [r.cards for r in farm.ready(first.service)] == [first.source]


def test_who_was_whitelisted_since_stays_and_the_others_move():
    farm = half_used(Random(1), 8, 40 * GB)
    first = farm.ask().steps[0]
    farm._service(first.service, whitelisted_until=farm.now + 86400)
    farm.until(lambda f: f.over, limit_s=3600)
    assert farm.ended[1] == "skipped"
    assert farm.ready(first.service)[0].cards == first.source
    assert farm.stranded().free_mib > 0


@pytest.mark.parametrize("hour", [6, 12, 23])
def test_by_day_nothing_moves(hour):
    farm = half_used(Random(1), 8, 40 * GB)
    farm.ask()
    farm.world = replace(farm.world, site_minute=hour * 60)
    for _ in range(30):
        farm.step()
    assert farm.journal == []
