"""S23: three cards and five low-risk services act, the rest is observed for 30 days: only the pilot moves."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import pytest

from scheduler.decision import Reason, Verb
from scheduler.modes import subject
from scheduler.policy import Policy
from scheduler.world import Phase, Pool, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import LONG, NOW, a_card, a_replica, a_service, a_world

DAYS, STEP_S = 30, 1800
POLICY = Policy(half_empty_pct=0)
PILOT = [f"p{i}" for i in range(5)]
REST = [f"r{i}" for i in range(9)]
POOLS = {
    "pilot": Pool("pilot", purpose="pilot", mode="enforce"),
    "default": Pool("default", mode="observe"),
}


def the_farm() -> Farm:
    """Everybody resident, as before: each of the rest on a card with two others, idle or not."""
    pilot = [a_card(f"p{i}", f"h{i % 2}", pool="pilot") for i in range(3)]
    rest = [a_card(f"c{i}", f"h{i}") for i in range(3)]
    wanted = [a_service(n, 20000, 4000, tier=Tier.COLD, pools=frozenset({"pilot"})) for n in PILOT]
    wanted += [a_service(n, 15000, 4000, tier=Tier.COLD) for n in REST]
    seats = [a_replica(i + 1, n, f"p{i % 3}", since=NOW - LONG) for i, n in enumerate(PILOT)]
    seats += [a_replica(20 + i, n, f"c{i % 3}") for i, n in enumerate(REST)]
    return Farm(a_world(*pilot, *rest, *wanted, *seats, pools=POOLS), policy=POLICY)


@cache
def played(seed: int) -> Farm:
    """Thirty days: each service is called now and then by day, hardly by night."""
    dice, farm = Random(seed), the_farm()
    rates = {name: dice.choice([0.5, 3, 20]) / 86400 for name in [*PILOT, *REST]}
    for tick in range(DAYS * 86400 // STEP_S):
        by_day = 8 <= tick * STEP_S / 3600 % 24 < 20
        for name, rate in rates.items():
            if dice.random() < rate * STEP_S * (1.8 if by_day else 0.2):
                farm.call(name, stream=True)
        farm.step(STEP_S)
    return farm


def of(farm: Farm, names: list[str]) -> list[object]:
    return [d for _, d in farm.journal if d.refusal is None and d.service in names]


@pytest.mark.parametrize("seed", [1, 2])
def test_only_the_pilot_moves(seed):
    farm = played(seed)
    assert of(farm, REST) == []
    assert {r.cards[0] for r in farm.world.replicas.values() if r.service in REST} == {"c0", "c1", "c2"}
    assert len([r for r in farm.world.replicas.values() if r.service in REST and r.phase is Phase.READY]) == len(REST)
    verbs = {d.verb for d in of(farm, PILOT)}
    assert {Verb.DRAIN, Verb.STOP, Verb.START} <= verbs


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_of_the_pilot_leaves_its_cards(seed):
    farm = played(seed)
    cards = {c for d in of(farm, PILOT) if d.verb is Verb.START for c in d.cards}
    assert cards
    assert all(card.startswith("p") for card in cards)


@pytest.mark.parametrize("seed", [1, 2])
def test_what_the_rest_would_have_gained_is_told_as_standing_advice(seed):
    """The same wish is one advice for as long as it stands, not one a second."""
    farm = played(seed)
    advised = [d for _, d, why in farm.advised if why == "not_managed"]
    assert advised
    assert {d.service for d in advised} <= set(REST)
    assert {(d.verb, d.reason) for d in advised} == {(Verb.DRAIN, Reason.IDLE)}
    subjects = {(subject(d, farm.world, 0), d.verb, d.reason) for d in advised}
    assert len(subjects) <= len(REST)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_caller_of_the_rest_was_served_at_once(seed):
    farm = played(seed)
    assert not [told for name in REST for _, told in farm.told.get(name, []) if told.state != "ready"]


def test_with_one_click_the_pilot_returns_to_being_observed():
    farm = the_farm()
    for _ in range(5):
        farm.step()
    pools = {**POOLS, "pilot": Pool("pilot", purpose="pilot", mode="observe")}
    farm.world = replace(farm.world, pools=pools)
    before = len(of(farm, PILOT))
    for _ in range(400):
        farm.step(30)
    assert len(of(farm, PILOT)) == before
