"""S11: two models called in turn every minute, room for one: found, held back by the minimum stay, in batches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from scheduler.decision import Verb
from scheduler.policy import Policy
from scheduler.thrash import Hour, remedies, thrashes
from scheduler.world import Tier
from tests.plays.farm import Farm
from tests.scheduler.build import POLICY, a_card, a_service, a_world

HOUR_S = 3600


@dataclass
class Played:
    """An hour of calls in turn. `answered_in` seconds; `refused` are told at once or past their patience."""

    farm: Farm
    calls: dict[str, int] = field(default_factory=lambda: {"A": 0, "B": 0})
    answered_in: list[float] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    waits: dict[str, int] = field(default_factory=lambda: {"A": 0, "B": 0})
    counted: set[tuple[str, float]] = field(default_factory=set)

    def loads(self, name: str) -> int:
        return len(self.farm.was_ready.get(name, []))

    def hour(self, name: str) -> Hour:
        return Hour(self.loads(name), self.waits[name], self.calls[name])


def an_hour(*, period_s: int, load_s: float, stay_s: int, tier: Tier = Tier.COLD, patience_s: float = 120.0) -> Played:
    """Streams, told their progress: they wait at most `patience_s`."""
    a, b = (a_service(name, 14000, 4000, tier=tier) for name in "AB")
    policy = Policy(min_loaded_s=stay_s, half_empty_pct=0, idle_unload_s=86400)
    farm = Farm(a_world(a_card(total=24576), a, b), policy=policy, load_s={"A": load_s, "B": load_s})
    played = Played(farm)
    waiting: dict[str, list[float]] = {"A": [], "B": []}
    for second in range(HOUR_S):
        if second % period_s == 0:
            name = "AB"[second // period_s % 2]
            played.calls[name] += 1
            waiting[name].append(farm.now)
            farm.call(name, stream=True)
        decisions = farm.step()
        for d in decisions:
            if d.refusal is not None and (d.refusal.code == "anti_swap" or "rest_s" in d.refusal.numbers):
                played.waits[d.service] += newly_counted(played, d.service, waiting)
        settle(played, waiting, patience_s)
    return played


def newly_counted(played: Played, name: str, waiting: dict[str, list[float]]) -> int:
    """Calls that wait for the pair's rest and were not counted before."""
    new = {(name, since) for since in waiting[name]} - played.counted
    played.counted |= new
    return len(new)


def settle(played: Played, waiting: dict[str, list[float]], patience_s: float) -> None:
    farm = played.farm
    for name, since in waiting.items():
        if since and not farm.world.services[name].demand.held:
            played.answered_in += [farm.now - at for at in since]
            played.batches.append(len(since))
            waiting[name] = []
        elif since and farm.now - since[0] > patience_s:
            played.refused += [name] * len(since)
            waiting[name] = []
            farm.hang_up(name)


@pytest.mark.parametrize(("period_s", "load_s"), [(60, 10.0), (45, 5.0), (90, 20.0)])
def test_the_minimum_stay_keeps_the_pair_from_swapping_at_each_call(period_s, load_s):
    played = an_hour(period_s=period_s, load_s=load_s, stay_s=300)
    loads = played.loads("A") + played.loads("B")
    assert loads <= HOUR_S / 300 + 1
    assert loads < sum(played.calls.values()) / 3
    for earlier, later in zip(played.farm.world.swaps, played.farm.world.swaps[1:], strict=False):
        assert later.at - earlier.at >= 300


def test_without_it_they_would_swap_every_minute():
    played = an_hour(period_s=60, load_s=10.0, stay_s=0)
    assert played.loads("A") + played.loads("B") >= 50


@pytest.mark.parametrize("period_s", [60, 45])
def test_it_is_found_and_both_models_ring(period_s):
    played = an_hour(period_s=period_s, load_s=10.0, stay_s=300)
    assert any(thrashes(played.hour(name), POLICY) for name in "AB"), [played.hour(n) for n in "AB"]
    swapping = an_hour(period_s=period_s, load_s=10.0, stay_s=0)
    assert all(thrashes(swapping.hour(name), POLICY) for name in "AB")


def test_a_pair_that_both_fit_rings_nothing():
    a, b = (a_service(name, 14000, 4000) for name in "AB")
    farm = Farm(a_world(a_card(), a, b))
    for minute in range(30):
        farm.call("AB"[minute % 2], stream=True)
        farm.until(lambda f, name="AB"[minute % 2]: not f.world.services[name].demand.held)
        for _ in range(40):
            farm.step()
    assert {name: len(times) for name, times in farm.was_ready.items()} == {"A": 1, "B": 1}
    assert not thrashes(Hour(1, 0, 15), POLICY)


def test_calls_wait_in_batches_and_one_turn_serves_them_all():
    """Patience beyond the minimum stay: every call is answered, several by one load."""
    played = an_hour(period_s=60, load_s=10.0, stay_s=300, patience_s=HOUR_S)
    assert played.refused == []
    assert max(played.batches) >= 2
    assert max(played.answered_in) <= 300 + 5 + 5 + 10 + 60


def test_who_cannot_wait_so_long_is_told_at_once_with_the_rest():
    """A plain caller of 15 s: anti_swap with the seconds to come back in, not a hang."""
    a, b = (a_service(name, 14000, 4000) for name in "AB")
    farm = Farm(a_world(a_card(total=24576), a, b))
    farm.call("A")
    farm.until(lambda f: "A" in f.answered)
    for _ in range(20):
        farm.step()
    farm.call("B")
    farm.step()
    refusal = farm.told["B"][-1][1].refusal
    assert refusal.code == "anti_swap"
    assert 270 <= refusal.numbers["retry_after_s"] <= 300
    assert refusal.numbers["service"] == "A"


def test_the_alarm_has_two_ways_out_each_with_its_price():
    service = a_service("A", 14000, 4000)
    slot, tier = sorted(remedies(service, POLICY, 22009, 1200), key=lambda r: r.kind)
    assert (slot.mib, slot.fen_h) == (19000, -(-19000 * 1200 // 22009))
    assert (tier.tier, tier.fen_h) == (Tier.WARM, -(-1300 * 1200 // 22009))


def test_the_tier_above_ends_it():
    """Warm: the pair sleeps and wakes in 3 s where it loaded in 60; the residue of 1.3 GiB is the price."""
    cold = an_hour(period_s=60, load_s=60.0, stay_s=40, patience_s=HOUR_S)
    warm = an_hour(period_s=60, load_s=60.0, stay_s=40, patience_s=HOUR_S, tier=Tier.WARM)
    assert sum(warm.answered_in) / len(warm.answered_in) < sum(cold.answered_in) / len(cold.answered_in) / 3
    assert len(warm.farm.did("A", Verb.START)) == 1


def test_one_more_slot_ends_it():
    a, b = (a_service(name, 14000, 4000) for name in "AB")
    world = a_world(a_card("c1", total=24576), a_card("c2", total=24576), a, b)
    farm = Farm(replace(world), load_s={"A": 10.0, "B": 10.0})
    for minute in range(20):
        farm.call("AB"[minute % 2], stream=True)
        for _ in range(60):
            farm.step()
    assert {name: len(times) for name, times in farm.was_ready.items()} == {"A": 1, "B": 1}
