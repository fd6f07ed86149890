"""S27: a model too large for one card: four cards of one host or none; moved and counted as one; not a whole host."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from scheduler.decision import Code, Reason, Verb
from scheduler.policy import Policy
from scheduler.world import Phase, Profile
from tests.plays.farm import Farm
from tests.scenarios.night import Night
from tests.scheduler.build import NOW, a_card, a_service, a_world

POLICY = Policy(idle_unload_s=86400)


def hosts(count: int = 2, cards: int = 8, **more):
    """Each with two islands of four."""
    return [
        a_card(f"h{h}-{i}", f"h{h}", index=i, group=f"nv{i // 4}", **more) for h in range(count) for i in range(cards)
    ]


def large(weights: int = 50_000, per: int = 4, **more):
    return a_service("large", weights, 12_000, 1000, cards_per_replica=per, **more)


def host_of(farm: Farm, replica) -> set[str]:
    return {farm.world.cards[card].host for card in replica.cards}


@pytest.mark.parametrize("per", [2, 4, 8])
@pytest.mark.parametrize("weights", [20_000, 50_000])
def test_a_call_starts_it_on_one_host_and_is_answered(per, weights):
    farm = Farm(a_world(large(weights, per), *hosts()), policy=POLICY)
    farm.call("large")
    farm.until(lambda f: "large" in f.answered)
    (copy,) = farm.ready("large")
    assert len(copy.cards) == per
    assert len(host_of(farm, copy)) == 1
    assert len(farm.did("large", Verb.START)) == 1


def test_one_island_when_one_holds_it():
    farm = Farm(a_world(large(), *hosts()), policy=POLICY)
    farm.call("large")
    farm.until(lambda f: "large" in f.answered)
    assert {farm.world.cards[c].group for c in farm.ready("large")[0].cards} == {"nv0"}


@pytest.mark.parametrize("seed", range(6))
def test_none_while_no_host_has_four(seed):
    """Three free cards here and three there: nothing begins, and the refusal says what is missing."""
    dice = Random(seed)
    cards = hosts()
    free = {f"h{h}-{i}" for h in range(2) for i in dice.sample(range(8), 3)}
    farm = Farm(a_world(large(), *cards), policy=POLICY)
    farm.foreign = {card.id: 75_000 for card in cards if card.id not in free}
    farm.call("large")
    for _ in range(20):
        farm.step()
    assert farm.did("large") == []
    refusal = [d.refusal for _, d in farm.journal if d.refusal][-1]
    assert (refusal.numbers["cards_needed"], refusal.numbers["cards_that_fit"]) == (4, 3)


def test_small_hosts_never_hold_it():
    farm = Farm(a_world(large(), *hosts(count=4, cards=3)), policy=POLICY)
    farm.call("large")
    farm.step()
    assert farm.refusals("large") == [Code.TOO_FEW_CARDS]


def test_the_host_is_shared_and_so_are_its_cards():
    """The other four cards take others; and beside it, on the same card, whoever fits."""
    small = a_service("small", 4000, 2000, 300, profile=Profile.LOWFREQ)
    other = a_service("other", 60_000, 4000, profile=Profile.LOWFREQ)
    farm = Farm(a_world(large(40_000), small, other, *hosts(count=1)), policy=POLICY)
    for name in ("large", "small", "other"):
        farm.call(name)
        farm.until(lambda f, name=name: name in f.answered)
    assert not set(farm.ready("other")[0].cards) & set(farm.ready("large")[0].cards)
    assert set(farm.ready("small")[0].cards) & set(farm.ready("large")[0].cards)


def test_one_of_its_cards_dies_and_it_is_rebuilt_whole_elsewhere():
    farm = Farm(a_world(large(min_replicas=1), *hosts()), policy=POLICY)
    farm.until(lambda f: len(f.ready("large")) == 1)
    (copy,) = farm.ready("large")
    sick = copy.cards[2]
    cards = {**farm.world.cards, sick: replace(farm.world.cards[sick], healthy=False)}
    farm.world = replace(farm.world, cards=cards)
    farm.change(copy.id, phase=Phase.FAILED, failures_here=1, failed_at=farm.now, fault="device_error")
    farm.until(lambda f: len(f.ready("large")) == 1, limit_s=120)
    (new,) = farm.ready("large")
    assert sick not in new.cards
    assert len(new.cards) == 4
    assert len(host_of(farm, new)) == 1


def test_its_host_dies_and_it_is_rebuilt_on_the_other():
    farm = Farm(a_world(large(min_replicas=1), *hosts()), policy=POLICY)
    farm.until(lambda f: len(f.ready("large")) == 1)
    (copy,) = farm.ready("large")
    farm.dead = host_of(farm, copy)
    farm.until(lambda f: len(f.ready("large")) == 2, limit_s=200)
    new = next(r for r in farm.ready("large") if r.id != copy.id)
    assert not host_of(farm, new) & farm.dead


def test_a_caller_makes_room_on_four_cards_at_once_and_no_more():
    """Six full cards of idle services: four of them go, together, and come back to nobody."""
    idle = [a_service(f"i{n}", 50_000, 4000, profile=Profile.LOWFREQ) for n in range(6)]
    farm = Farm(a_world(large(), *idle, *hosts(count=1, cards=6)), policy=POLICY)
    for service in idle:
        farm.call(service.name)
        farm.until(lambda f, name=service.name: name in f.answered)
    for _ in range(POLICY.min_loaded_s + 10):
        farm.step()
    farm.call("large")
    farm.until(lambda f: "large" in f.answered, limit_s=120)
    assert sum(len(farm.ready(s.name)) for s in idle) == 2


def test_repack_moves_it_as_one():
    """A farm on which 75 GB, a whole card, fit nowhere: the four go to the other island as one move."""
    whole = a_service("whole", 72_000, 500, 300, 300, starts_28d=50)
    fill = [a_service(f"f{i}", 28_000, 2000, profile=Profile.LOWFREQ) for i in range(4)]
    farm = Night(a_world(large(20_000), whole, *fill, *hosts(count=1)), policy=POLICY)
    farm.call("large")
    farm.until(lambda f: "large" in f.answered)
    (old,) = farm.ready("large")
    others = [card for card in farm.world.cards if card not in old.cards]
    for n, card in enumerate(others):
        farm.world = replace(farm.world, replicas={**farm.world.replicas, n: _seat(n, card)})
    proposal = farm.ask()
    assert [(s.replica, len(s.target)) for s in proposal.steps][:1] == [(old.id, 4)]
    farm.until(lambda f: f.over, limit_s=600)
    assert farm.ended[1] == "done"
    (new,) = farm.ready("large")
    assert not set(new.cards) & set(old.cards)
    assert len([d for d in farm.did("large") if d.reason is Reason.REPACK]) == 3


def _seat(number: int, card: str):
    from tests.scheduler.build import a_replica

    return a_replica(number, f"f{number}", card, kv_granted_mib=2000, last_call_at=NOW)
