"""Where a service starts, and every reason why it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.decision import Code, Refusal
from scheduler.filters import LASTING
from scheduler.placement import Placement, place
from scheduler.policy import Policy
from scheduler.world import Demand, Phase, Pool, Profile, Quota, Tier
from tests.scheduler.build import (
    NOW,
    POLICY,
    a_card,
    a_draft,
    a_failure,
    a_host,
    a_replica,
    a_service,
    a_world,
)
from tests.scheduler.cases import cases


def placed(service, *things, policy: Policy = POLICY, **more):
    return place(a_world(service, *things, **more), policy, service, NOW)


def on(service, *things, policy: Policy = POLICY, **more) -> str:
    got = placed(service, *things, policy=policy, **more)
    assert isinstance(got, Placement), got
    return got.cards[0]


def why(service, *things, policy: Policy = POLICY, **more) -> Refusal:
    got = placed(service, *things, policy=policy, **more)
    assert isinstance(got, Refusal), got
    return got


FULL = a_card(unavailable_mib=76000)
OTHER = a_service("other", weights=2000, kv=1000)
HERE = a_replica(1, "other", kv_granted_mib=1000)
FOUR = [a_service(f"n{i}", weights=1500, kv=0) for i in range(4)]

LASTINGLY = [
    (Code.WRONG_FAMILY, a_service(family="cann"), [], {}),
    (Code.COMPUTE_CAPABILITY, a_service(min_compute_cap=8.9), [a_card(compute_cap=8.0)], {}),
    (Code.WRONG_CLASS, a_service(card_classes=frozenset({"B"})), [a_card(card_class="A")], {}),
    (Code.WRONG_POOL, a_service(pools=frozenset({"night"})), [], {}),
    (Code.WRONG_POOL, a_service(tenant="t"), [], {"pools": {"default": Pool("default", tenants=frozenset({"u"}))}}),
    (Code.WRONG_POOL, a_service(), [], {"pools": {"default": Pool("default", "resident")}}),
    (Code.WRONG_POOL, a_service(), [], {"pools": {"default": Pool("default", "elastic")}}),
    (Code.HOST_LOST, a_service(), [a_host(seen_at=NOW - 16)], {}),
    (Code.HOST_LOST, a_service(), [a_host(seen_at=None)], {}),
    (Code.PREFLIGHT, a_service(), [a_host(preflight_ok=False)], {}),
    (Code.CARD_UNHEALTHY, a_service(), [a_card(healthy=False)], {}),
    (Code.CORDONED, a_service(), [a_card(cordoned=True)], {}),
    (Code.CORDONED, a_service(), [a_host(cordoned=True)], {}),
    (Code.IMAGE_ABSENT, a_service(), [a_host(images=frozenset())], {}),
    (Code.WEIGHTS_ABSENT, a_service(), [a_host(weights=frozenset({"x"}))], {}),
    (Code.UNMEASURED, a_service(), [a_card(unavailable_mib=None)], {}),
    (Code.UNDER_PRESSURE, a_service(), [a_card(unavailable_mib=70000, pressed_samples=2)], {}),
    (Code.QUOTA_EXCEEDED, a_service(), [], {"quotas": {("t", "default"): Quota(6000, 6999)}}),
    (Code.LOAD_FAILED, a_service(failures=(a_failure("c1", NOW - 299),)), [], {}),
    (Code.SAME_SERVICE, a_service(), [a_replica(1)], {}),
    (Code.SAME_SERVICE, a_service(), [a_replica(1, phase=Phase.ASLEEP)], {}),
    (Code.TENANTS_APART, a_service(tenant="u"), [replace(OTHER, apart_from=frozenset({"u"})), HERE], {}),
    (Code.TENANTS_APART, a_service(apart_from=frozenset({"t"})), [OTHER, HERE], {}),
    (Code.TWO_HOSTS, a_service(min_replicas=2), [a_card(), a_card("c2"), a_replica(1, card="c2")], {}),
    (Code.REPLICA_LIMIT, a_service(), [*FOUR, *(a_replica(i, f"n{i}", kv_granted_mib=0) for i in range(4))], {}),
    (Code.SHORT_OF_MEMORY, a_service(), [FULL], {}),
    (Code.CONTEXT_TOO_LONG, a_service(one_request_mib=4001), [], {}),
    (
        Code.OVERSELL,
        a_service(kv=1000),
        [a_service("other", kv=13500), a_replica(1, "other", kv_granted_mib=10000)],
        {},
    ),
    (Code.LOAD_IN_FLIGHT, a_service(), [OTHER, a_replica(1, "other", phase=Phase.STARTING)], {}),
]


@cases(("code", "service", "things", "more"), LASTINGLY)
def test_each_refusal_has_its_type_and_the_card(code, service, things, more):
    refusal = why(service, *things, **more)
    assert refusal.code is code
    assert refusal.numbers.get("card", "c1") == "c1" or code is Code.QUOTA_EXCEEDED


NEARLY = [
    (a_service(min_compute_cap=8.0), [a_card(compute_cap=8.0)], {}),
    (a_service(card_classes=frozenset({"A", "B"})), [], {}),
    (a_service(pools=frozenset({"default"})), [], {"pools": {"default": Pool("default", "resident")}}),
    (a_service(tenant="u"), [], {"pools": {"default": Pool("default", tenants=frozenset({"u"}))}}),
    (a_service(), [a_host(seen_at=NOW - 15)], {}),
    (a_service(), [a_host(weights=frozenset({"s"}), images=frozenset({"s"}))], {}),
    (a_service(), [], {"quotas": {("t", "default"): Quota(6000, 7000)}}),
    (a_service(), [], {"quotas": {("u", "default"): Quota(1, 0), ("t", "other"): Quota(1, 0)}}),
    (a_service(failures=(a_failure("c1", NOW - 300),)), [], {}),
    (a_service(), [a_replica(1, phase=Phase.STOPPED)], {}),
    (a_service(apart_from=frozenset({"u"})), [OTHER, HERE], {}),
    (a_service(min_replicas=2), [a_card(), a_card("c2", "h2"), a_replica(1, card="c2")], {}),
    (a_service(), [*FOUR[:3], *(a_replica(i, f"n{i}", kv_granted_mib=0) for i in range(3))], {}),
    (a_service(one_request_mib=4000), [], {}),
]


@cases(("service", "things", "more"), NEARLY)
def test_what_is_just_within_a_rule_is_placed(service, things, more):
    assert on(service, *things, **more) == "c1"


def test_weights_absent_says_what_to_copy():
    assert why(a_service(), a_host(weights=frozenset())).numbers["copy_mib"] == 8000


def test_load_in_flight_says_behind_whom_and_how_long():
    refusal = why(a_service(), OTHER, a_replica(7, "other", phase=Phase.STARTING, since=NOW - 2, want_since=NOW - 2))
    assert (refusal.numbers["replica"], refusal.numbers["service"], refusal.passing) == (7, "other", True)
    assert refusal.numbers["wait_s"] == pytest.approx(2000 / 1000 + 6 + 2 - 2)


def test_the_hosts_limit_of_loads_counts_over_its_cards():
    loading = [a_replica(i, f"n{i}", f"c{i}", Phase.STARTING, kv_granted_mib=0) for i in (1, 2)]
    cards = [a_card(f"c{i}") for i in (1, 2, 3)]
    assert why(a_service(), *cards, *FOUR, *loading).code is Code.LOAD_IN_FLIGHT
    assert on(a_service(), *cards, *FOUR, *loading[:1]) in {"c2", "c3"}


def test_without_cards_there_is_no_capacity():
    world = replace(a_world(a_service()), cards={})
    assert place(world, POLICY, a_service(), NOW).code is Code.NO_CAPACITY


def test_a_card_of_an_unknown_host_is_lost():
    world = replace(a_world(a_service()), hosts={})
    assert place(world, POLICY, a_service(), NOW).code is Code.HOST_LOST


def test_the_refusal_is_of_the_card_that_came_nearest():
    sick, small = a_card("c1", healthy=False), a_card("c2", unavailable_mib=75000)
    smaller = a_card("c3", unavailable_mib=75900)
    refusal = why(a_service(), sick, smaller, small)
    assert (refusal.code, refusal.numbers["card"], refusal.numbers["cards"]) == (Code.SHORT_OF_MEMORY, "c2", 3)
    assert refusal.numbers["short_mib"] == 12479 - (81920 - 75000 - 6554)


def test_lasting_refusals_come_before_passing_ones():
    assert [f.__name__ for f in LASTING][0] == "family"
    assert [f.__name__ for f in LASTING][-2:] == ["on_two_hosts", "evicted_here"]


# Scores


def test_ties_go_to_the_first_card():
    assert on(a_service(), a_card("c2"), a_card("c1"), a_card("c3")) == "c1"


def test_a_card_in_use_is_filled_before_an_empty_one():
    used = [a_service("x", profile=Profile.BATCH), a_replica(1, "x", "c2")]
    assert on(a_service(profile=Profile.LOWFREQ), a_card("c1"), a_card("c2"), *used) == "c2"


def test_an_empty_card_is_better_for_an_online_one_than_a_batch_neighbour_and_that_better_than_an_online_one():
    used = [a_service("x"), a_replica(1, "x", "c1"), a_service("y", profile=Profile.BATCH), a_replica(2, "y", "c2")]
    assert on(a_service(), a_card("c1"), a_card("c2"), a_card("c3"), *used) == "c3"
    assert on(a_service(), a_card("c1"), a_card("c2"), *used) == "c2"


def test_online_does_not_sit_beside_online():
    used = [a_service("x"), a_replica(1, "x", "c1")]
    assert on(a_service(), a_card("c1"), a_card("c2"), *used) == "c2"


def test_online_sits_beside_lowfreq():
    used = [a_service("x"), a_replica(1, "x", "c1"), a_service("y", profile=Profile.LOWFREQ), a_replica(2, "y", "c2")]
    assert on(a_service(), a_card("c1"), a_card("c2"), a_card("c3"), *used) == "c2"


def lowfreq(name: str, calls: int, seconds: float | None = 20.0):
    demand = Demand(calls_7d=calls)
    return a_service(name, profile=Profile.LOWFREQ, tier=Tier.WARM, demand=demand, generation_s=seconds)


@pytest.mark.parametrize(("calls", "seconds", "home"), [(604, 20.0, "c1"), (605, 20.0, "c2"), (9000, None, "c1")])
def test_one_declared_lowfreq_and_busy_all_the_same_is_no_neighbour_for_an_online_one(calls, seconds, home):
    """Two percent of a week are 12,096 s."""
    often, seldom = lowfreq("x", calls, seconds), lowfreq("y", 1)
    used = [often, a_replica(1, "x", "c1"), seldom, a_replica(2, "y", "c2")]
    assert on(a_service(), a_card("c1"), a_card("c2"), *used) == home


def test_batch_sits_beside_batch():
    batch = a_service(profile=Profile.BATCH)
    used = [a_service("x", profile=Profile.BATCH), a_replica(1, "x", "c2"), a_service("y"), a_replica(2, "y", "c1")]
    assert on(batch, a_card("c1"), a_card("c2"), *used) == "c2"


def test_the_cheapest_card_that_qualifies_is_taken():
    dear, cheap = a_card("c1", price_fen_h=2000), a_card("c2", price_fen_h=500)
    assert on(a_service(), dear, cheap) == "c2"


def test_a_latency_sensitive_service_never_lands_on_a_class_outside_its_range():
    dear = a_card("c1", card_class="A", price_fen_h=2000)
    cheap = a_card("c2", card_class="B", price_fen_h=5)
    assert on(a_service(card_classes=frozenset({"A"})), dear, cheap) == "c1"


def test_copies_spread_over_hosts():
    cards = [a_card("c1"), a_card("c2"), a_card("c3", "h2")]
    assert on(a_service(), *cards, a_replica(1, card="c1")) == "c3"


def test_the_host_that_reads_faster_is_preferred():
    cards = [a_card("c1"), a_card("c2", "h2")]
    assert on(a_service(), *cards, a_host("h1", bandwidth_mib_s=200), a_host("h2", bandwidth_mib_s=2000)) == "c2"


def test_room_for_large_ones_is_not_broken_up():
    """Two half-used cards: the small one goes where the large one did not fit anyway."""
    large = a_service("large", weights=40000, kv=4000, profile=Profile.BATCH)
    small = a_service("small", weights=4000, kv=1000, profile=Profile.BATCH)
    narrow, wide = a_card("c2", unavailable_mib=50000), a_card("c1", unavailable_mib=30000)
    assert on(small, narrow, wide, large) == "c2"


def test_the_scores_that_decided_are_told():
    got = placed(a_service(), a_card("c1"), a_card("c2"))
    assert got.numbers["cards_that_fit"] == 2
    assert {"score_best_fit", "score_profile", "score_spread"} <= set(got.numbers)


def test_weights_of_scores_are_policy():
    used = [a_service("x"), a_replica(1, "x", "c1")]
    indifferent = Policy(score_profile=0)
    assert on(a_service(), a_card("c1"), a_card("c2"), *used, policy=indifferent) == "c1"


def test_a_draft_is_charged_with_what_was_decided_before():
    service = a_service(tier=Tier.HOT)
    draft = a_draft(service, a_card(total=24576))
    first = place(draft, POLICY, service, NOW)
    assert isinstance(first, Placement)
    draft.promise([draft.phantom("s", ("c1",), 4000)])
    assert place(draft, POLICY, service, NOW).code is Code.SAME_SERVICE


# Slices


@cases(("slice_of", "placed"), [("c0", True), ("", False)])
def test_who_must_not_share_a_chip_goes_to_a_slice_only(slice_of, placed):
    card = a_card("s1", total=20480, slice_of=slice_of)
    found = place(a_world(card), POLICY, a_service(slice_required=True), NOW)
    assert isinstance(found, Placement) is placed
    if not placed:
        assert found.code is Code.SLICE_REQUIRED


def test_of_a_sliced_card_beside_whole_ones_a_slice_is_taken():
    """Larger, emptier and cheaper cards do not matter: a rule is a rule."""
    slices = [a_card(f"g0-{i}", total=20480, slice_of="g0", price_fen_h=900) for i in range(3)]
    world = a_world(a_card("a", price_fen_h=1), *slices, a_service("x"), a_replica(1, "x", "g0-0"))
    found = place(world, POLICY, a_service(slice_required=True), NOW)
    assert found.cards[0].startswith("g0-")


def test_a_slice_is_a_small_card_for_everybody_else():
    found = place(a_world(a_card("g0-0", total=20480, slice_of="g0")), POLICY, a_service(), NOW)
    assert found.cards == ("g0-0",)


def test_a_service_too_large_for_every_slice_is_refused_with_what_is_short():
    world = a_world(a_card("g0-0", total=10240, slice_of="g0"), a_card("a"))
    found = place(world, POLICY, a_service(weights=15000, slice_required=True), NOW)
    assert found.code is Code.SHORT_OF_MEMORY
    assert found.numbers["short_mib"] > 0
