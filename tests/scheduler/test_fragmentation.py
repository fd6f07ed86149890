"""F: the share of free memory that the expected mix cannot use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.fragmentation import Mix, Stranded, mix_of, together, weight_of
from scheduler.memory import least_start_mib, room_mib
from scheduler.world import Phase, Pool, Tier
from tests.scheduler.build import POLICY, a_card, a_draft, a_replica, a_service
from tests.scheduler.cases import cases


def claim(name: str, mib: int, **more):
    """A service whose copy needs exactly so much."""
    return a_service(name, weights=mib, kv=0, headroom=0, overhead=0, **more)


def left(card: str, mib: int, **more):
    """A card with so much room left."""
    return a_card(card, unavailable_mib=81920 - 6554 - mib, **more)


def share(*things, pool: str = "default", **more) -> float:
    return a_draft(*things, **more).stranded()[pool].share


@cases(
    ("tier", "starts", "weight"),
    [(Tier.COLD, 0, 1), (Tier.COLD, 7, 8), (Tier.WARM, 7, 7), (Tier.WARM, 0, 0), (Tier.HOT, 0, 0), (Tier.HOT, 3, 3)],
)
def test_starts_of_28_days_and_cold_ones_once_more(tier, starts, weight):
    assert weight_of(a_service(tier=tier, starts_28d=starts)) == weight


def test_nothing_free_is_no_fragmentation():
    assert share(claim("x", 1000), left("c1", 0)) == 0
    assert Stranded().share == 0


def test_room_for_everybody_is_no_fragmentation():
    assert share(claim("x", 1000), claim("y", 30_000), left("c1", 30_000), left("c2", 60_000)) == 0


def test_exactly_enough_fits_and_one_mib_less_does_not():
    assert share(claim("x", 30_000), left("c1", 30_000)) == 0
    assert share(claim("x", 30_000), left("c1", 29_999)) == 1


def test_the_share_is_weighed_by_how_often_each_comes():
    """10,000 free: a quarter of all starts are of a claim that does not fit."""
    rare, often = (
        claim("rare", 20_000, tier=Tier.WARM, starts_28d=5),
        claim("often", 5000, tier=Tier.WARM, starts_28d=15),
    )
    assert share(rare, often, left("c1", 10_000)) == pytest.approx(0.25)


def test_cards_are_weighed_by_what_is_free_on_them():
    only = claim("x", 20_000)
    assert share(only, left("c1", 30_000), left("c2", 10_000)) == pytest.approx(0.25)


def test_a_card_at_its_limit_of_replicas_is_unusable():
    tiny = claim("tiny", 100)
    seats = [a_replica(i, "tiny", "c1", kv_granted_mib=0) for i in range(1, 5)]
    draft = a_draft(tiny, *seats, left("c1", 10_000), left("c2", 10_000))
    there = draft.stranded()["default"]
    assert there.stranded_mib == room_mib(draft.book("c1"))
    assert there.free_mib > there.stranded_mib


@cases("state", [{"healthy": False}, {"cordoned": True}, {"unavailable_mib": None}])
def test_what_takes_nobody_is_not_free(state):
    card = replace(left("c2", 50_000), **state)
    found = a_draft(claim("x", 60_000), left("c1", 10_000), card).stranded()["default"]
    assert (found.free_mib, found.cards) == (10_000, 1)


def test_by_pool_and_only_who_may_live_there():
    pools = {"a": Pool("a"), "b": Pool("b", tenants=frozenset({"u"}))}
    small, large = claim("small", 1000, tenant="u"), claim("large", 60_000, pools=frozenset({"a"}))
    draft = a_draft(small, large, left("c1", 20_000, pool="a"), left("c2", 20_000, pool="b"), pools=pools)
    found = draft.stranded()
    assert found["a"].share == pytest.approx(0.5)
    assert found["b"].share == 0
    assert together(found.values()).share == pytest.approx(0.25)


@cases("limit", [{"card_classes": frozenset({"B"})}, {"min_compute_cap": 9.0}, {"family": "cann"}])
def test_who_can_never_run_on_the_card_does_not_count(limit):
    assert share(claim("never", 60_000, **limit), claim("can", 1000), left("c1", 20_000)) == 0


def test_where_nothing_is_known_every_claim_counts_once():
    hot = [claim("x", 10_000, tier=Tier.HOT), claim("y", 30_000, tier=Tier.HOT)]
    assert share(*hot, left("c1", 20_000)) == pytest.approx(0.5)


def test_a_mix_of_nobody_strands_nothing():
    assert mix_of([], POLICY) == Mix()
    assert Mix().unfit_share(0) == 0


def test_a_claim_counts_with_the_least_it_starts_with():
    service = a_service("x", weights=10_000, kv=4000)
    assert mix_of([service], POLICY).sizes_mib == (least_start_mib(service, POLICY.oversell_mixed_pct),)


def test_a_claim_over_several_cards_counts_as_what_it_needs_of_one():
    one, four = a_service("x"), a_service("x", cards_per_replica=4)
    assert mix_of([one], POLICY) == mix_of([four], POLICY)


def test_a_sleeper_takes_its_residue_and_no_place_among_the_awake():
    sleepers = [a_replica(i, f"s{i}", "c1", Phase.ASLEEP) for i in range(4)]
    services = [claim(f"s{i}", 1000) for i in range(4)]
    found = a_draft(*services, *sleepers, a_card("c1")).stranded()["default"]
    assert found.stranded_mib == 0
    assert found.free_mib == 81920 - 600 - 6554 - 4 * POLICY.default_residue_mib
