"""S17: an experimental model takes the pool: its card budget stops it, announced, lowest first; nobody else notices."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from scheduler.budget import Standing, forecast_fen, standing
from scheduler.decision import Reason, Verb
from scheduler.policy import Policy
from scheduler.world import Budget, Demand, Phase, Profile, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world

QUICK = Policy(grace_s=30, min_loaded_s=30)
LIMIT = 100_000


def a_farm(seed: int) -> Farm:
    """A lab's three services hold much of the pool; an airline's hotline lives beside them, busy."""
    dice = Random(seed)
    cards = [a_card(f"c{i}", f"h{i % 4}") for i in range(8)]
    wild = a_service(
        "wild", 9000, tenant="lab", profile=Profile.BATCH, priority=dice.randint(5, 40), max_replicas=6, tier=Tier.WARM
    )
    chat = a_service("chat", 9000, tenant="lab", priority=60, min_replicas=1, max_replicas=4, tier=Tier.HOT)
    rare = a_service("rare", 3000, tenant="lab", profile=Profile.LOWFREQ, priority=50)
    hotline = a_service("hotline", 12000, tenant="air", min_replicas=2, max_replicas=4, tier=Tier.HOT, priority=90)
    called = Demand(last_call_at=NOW)
    services = [replace(s, demand=called) for s in (wild, chat, rare, hotline)]
    count = dice.randint(3, 6)
    copies = [a_replica(i, "wild", f"c{i}", kv_granted_mib=4000) for i in range(count)]
    copies += [a_replica(10 + i, "chat", f"c{i}") for i in range(dice.randint(2, 4))]
    copies += [a_replica(20, "rare", "c6"), a_replica(30, "hotline", "c0"), a_replica(31, "hotline", "c5")]
    farm = Farm(a_world(*cards, *services, *copies), policy=QUICK)
    farm.calls = dict.fromkeys((30, 31), 4)
    return farm


def spend(farm: Farm, spent_fen: int, forecast: int | None = None) -> Budget:
    budget = Budget("lab", LIMIT, spent_fen, forecast)
    farm.world = replace(farm.world, budgets=(budget,))
    return budget


def of_budget(farm: Farm) -> list[tuple[float, str, bool]]:
    """(when, service, was it the notice) of every drain for the budget."""
    return [
        (at, d.service, d.not_before is not None)
        for at, d in farm.journal
        if d.reason is Reason.BUDGET and d.verb is Verb.DRAIN and d.refusal is None
    ]


@pytest.mark.parametrize("seed", range(5))
def test_warned_at_eighty_percent_or_when_more_is_foreseen_and_nothing_moves(seed):
    farm = a_farm(seed)
    assert standing(spend(farm, LIMIT * 79 // 100), POLICY) is Standing.FINE
    assert standing(spend(farm, LIMIT * 80 // 100), POLICY) is Standing.WARNED
    foreseen = forecast_fen(LIMIT // 2, LIMIT // 2, 15 * 24, 16 * 24)
    assert standing(spend(farm, LIMIT // 2, foreseen), POLICY) is Standing.WARNED
    for _ in range(100):
        farm.step()
    assert of_budget(farm) == []


@pytest.mark.parametrize("seed", range(5))
def test_spent_it_shrinks_low_priority_first_one_notice_ahead(seed):
    farm = a_farm(seed)
    spend(farm, LIMIT)
    for _ in range(600):
        farm.step()
    told = of_budget(farm)
    notices, drains = [t for t in told if t[2]], [t for t in told if not t[2]]
    order = list(dict.fromkeys(service for _, service, _ in notices))
    assert order[0] == "wild"
    assert order.index("chat") < order.index("rare"), "first all shrink, then batch and lowfreq go whole"
    first_notice, first_drain = notices[0][0], drains[0][0]
    assert first_drain - first_notice >= QUICK.grace_s
    assert farm.ready("wild") == farm.ready("rare") == []
    assert len(farm.ready("chat")) == 1, "online keeps its minimum, though the money is spent"


@pytest.mark.parametrize("seed", range(5))
def test_nobody_else_notices(seed):
    farm = a_farm(seed)
    spend(farm, LIMIT * 3)
    for _ in range(600):
        farm.step()
        assert {r.id for r in farm.ready("hotline")} == {30, 31}
    assert farm.did("hotline") == []


@pytest.mark.parametrize("seed", range(3))
def test_calls_in_flight_are_finished_and_a_new_call_is_served(seed):
    farm = a_farm(seed)
    busy = next(r.id for r in farm.world.replicas.values() if r.service == "rare")
    farm.calls[busy] = 1
    spend(farm, LIMIT)
    farm.until(lambda f: f.world.replicas[busy].phase is Phase.DRAINING, 900)
    for _ in range(60):
        farm.step()
    assert farm.world.replicas[busy].phase is Phase.DRAINING, "the call goes on"
    farm.calls.pop(busy)
    farm.until(lambda f: not f.ready("rare") and busy not in f.world.replicas, 60)
    farm.call("rare")
    farm.until(lambda f: f.ready("rare"), 60)
    assert not any(d.refusal for _, d in farm.journal if d.service == "rare" and d.order is None)


def test_next_month_it_may_grow_again():
    farm = a_farm(0)
    spend(farm, LIMIT)
    for _ in range(300):
        farm.step()
    spend(farm, 0)
    farm.call("wild")
    farm.until(lambda f: f.ready("wild"), 60)
    for _ in range(100):
        farm.step()
    assert farm.ready("wild")
