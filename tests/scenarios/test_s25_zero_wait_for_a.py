"""S25: tenant A pays for zero wait, B does not: A lives in the resident pool, a shortage in B's never touches A."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from scheduler.decision import Code, Verb
from scheduler.policy import Policy
from scheduler.world import Phase, Pool, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import LONG, NOW, a_card, a_replica, a_service, a_world

#: Short times, so that much happens in few steps.
POLICY = Policy(idle_unload_s=60, grace_s=20, min_loaded_s=30)
POOLS = {"resident": Pool("resident", "resident", tenants=frozenset({"A"})), "shared": Pool("shared")}


def the_farm(dice: Random) -> Farm:
    """Two resident cards with room to spare, and one shared card for six services of B that never fit together."""
    cards = [a_card(f"r{i}", f"h{i}", pool="resident") for i in range(2)] + [a_card("b", "h2", pool="shared")]
    mine = [
        a_service(f"a{i}", dice.randint(4, 14) * 1000, 3000, tenant="A", pools=frozenset({"resident"}), tier=Tier.COLD)
        for i in range(3)
    ]
    theirs = [
        a_service(
            f"b{i}", dice.randint(18, 40) * 1000, 4000, tenant="B", tier=Tier.COLD, priority=dice.choice([50, 90, 100])
        )
        for i in range(6)
    ]
    return Farm(a_world(*cards, *mine, *theirs, pools=POOLS), policy=POLICY)


@cache
def played(seed: int) -> Farm:
    """Nobody calls A for half an hour; B calls all it has, at any moment, and never gets enough."""
    dice = Random(seed)
    farm = the_farm(dice)
    for _ in range(60):
        farm.step()
    farm.journal.clear()
    for _ in range(1800):
        if dice.random() < 0.1:
            farm.call(f"b{dice.randrange(6)}")
        farm.step()
    return farm


SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_is_ready_before_anybody_called_and_stays_so(seed):
    farm = played(seed)
    for i in range(3):
        assert len(farm.ready(f"a{i}")) == 1
        assert farm.did(f"a{i}") == []


@pytest.mark.parametrize("seed", SEEDS)
def test_the_shortage_is_real(seed):
    farm = played(seed)
    refused = {code for i in range(6) for code in farm.refusals(f"b{i}")}
    assert refused & {Code.NOT_NOW, Code.ANTI_SWAP, Code.NO_CAPACITY}


@pytest.mark.parametrize("seed", SEEDS)
def test_b_is_never_placed_among_a(seed):
    farm = played(seed)
    starts = [d for i in range(6) for d in farm.did(f"b{i}", Verb.START)]
    assert starts
    assert {card for d in starts for card in d.cards} == {"b"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_call_to_a_waits_for_nothing(seed):
    farm = played(seed)
    before = farm.now
    farm.call("a0")
    farm.step()
    assert farm.answered["a0"] - before <= 1


def test_a_lost_resident_host_is_rebuilt_among_the_resident():
    farm = the_farm(Random(1))
    for _ in range(60):
        farm.step()
    lost = farm.ready("a0")[0].cards[0]
    farm.dead = {farm.world.cards[lost].host}
    farm.until(lambda f: any(r.cards[0] != lost for r in f.ready("a0")), limit_s=200)
    assert farm.ready("a0")[-1].cards[0].startswith("r")


def test_another_company_that_names_the_pool_is_a_stranger_there():
    stranger = a_service("x", tenant="B", pools=frozenset({"resident"}))
    farm = Farm(a_world(stranger, a_card("r0", pool="resident"), pools=POOLS), policy=POLICY)
    for _ in range(10):
        farm.step()
    assert farm.did("x") == []
    assert set(farm.refusals("x")) == {Code.WRONG_POOL}


def test_who_lives_in_both_is_kept_out_of_the_paid_room_unless_it_stays():
    """An on-demand service that also names the resident pool would come and go in it."""
    both = a_service("x", tenant="A", pools=frozenset({"resident", "shared"}))
    seat = a_replica(1, "x", "b", Phase.READY, loaded_at=NOW - LONG)
    cards = [a_card("r0", "h0", pool="resident"), a_card("b", "h1", pool="shared")]
    farm = Farm(a_world(both, seat, *cards, pools=POOLS), policy=POLICY)
    farm.call("x")
    farm.step()
    assert farm.did("x", Verb.START) == []
