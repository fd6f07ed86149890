"""S16: a large model that must answer fast never runs on a cheap old card; small and test models prefer it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from scheduler.decision import Code, Refusal, Verb
from scheduler.placement import Placement, place
from scheduler.world import Profile, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_service, a_world, held

OLD = {"card_class": "t40-48", "compute_cap": 7.5, "total": 49152, "price_fen_h": 90}
NEW = {"card_class": "a800-80", "compute_cap": 8.0, "total": 81920, "price_fen_h": 515}


def cards(old: int = 2, new: int = 2):
    there = [a_card(f"old{i}", f"h-old{i}", **OLD) for i in range(old)]
    return [*there, *(a_card(f"new{i}", f"h-new{i}", **NEW) for i in range(new))]


def large(**more):
    """Fits on the old card: only the rule keeps it from there."""
    more.setdefault("first_token_s", 0.8)
    return a_service("large", 28_000, 8000, 1000, profile=Profile.ONLINE, **more)


RANGES = [{}, {"card_classes": frozenset({"a800-80"}), "first_token_s": 3.0}, {"card_classes": frozenset({"a800-80"})}]


@pytest.mark.parametrize("ranged", RANGES)
def test_it_goes_to_the_new_card_though_the_old_is_cheaper(ranged):
    service = large(**ranged)
    found = place(a_world(service, *cards()), POLICY, service, NOW)
    assert found.cards[0].startswith("new")


@pytest.mark.parametrize("ranged", RANGES)
def test_where_only_old_ones_have_room_it_is_refused_and_never_placed(ranged):
    service = large(demand=held(), **ranged)
    farm = Farm(a_world(service, *cards(new=0)))
    for _ in range(60):
        farm.step()
    assert farm.did("large", Verb.START) == []
    assert set(farm.refusals("large")) == {Code.WRONG_CLASS}


def test_full_new_cards_do_not_push_it_onto_an_old_one():
    service = large(demand=held(), priority=10)
    full = [a_card("new0", "h-new0", unavailable_mib=80_000, **NEW)]
    farm = Farm(a_world(service, *cards(new=0), *full))
    farm.foreign = {"new0": 79_000}
    for _ in range(60):
        farm.step()
    assert farm.did("large", Verb.START) == []


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("profile", list(Profile))
def test_small_and_test_models_prefer_the_cheap_card(seed, profile):
    """Whatever their size, and whichever is empty."""
    dice = Random(seed)
    service = a_service("small", dice.randint(1500, 7500), dice.randint(500, 3000), 300, profile=profile)
    found = place(a_world(service, *cards(dice.randint(1, 3), dice.randint(1, 3))), POLICY, service, NOW)
    assert isinstance(found, Placement)
    assert found.cards[0].startswith("old")


def test_a_small_one_goes_to_the_dear_card_rather_than_nowhere():
    service = a_service("small", 3000, 1000, 300)
    busy = [replace(card, unavailable_mib=48_000) for card in cards(new=0)]
    found = place(a_world(service, *busy, *cards(old=0)), POLICY, service, NOW)
    assert found.cards[0].startswith("new")


def test_what_needs_a_newer_precision_is_no_matter_of_price():
    service = a_service("small", 3000, 1000, 300, min_compute_cap=8.0)
    assert place(a_world(service, *cards()), POLICY, service, NOW).cards[0].startswith("new")
    assert isinstance(place(a_world(service, *cards(new=0)), POLICY, service, NOW), Refusal)


def test_a_slow_large_one_may_save_money():
    service = large(first_token_s=None, tier=Tier.COLD)
    found = place(a_world(service, *cards()), POLICY, service, NOW)
    assert found.cards[0].startswith("old")
