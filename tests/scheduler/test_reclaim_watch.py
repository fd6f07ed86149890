"""Who is about to go, how full a pool is, swapping, regrets, fitted tiers, resident slots: asked, not acted upon."""

from __future__ import annotations

from scheduler.fitted import Fitted, Used, fit, sleeping_room_mib, used
from scheduler.policy import Policy
from scheduler.regret import harmful, longer_idle_s, regrets
from scheduler.slots import resident_slots
from scheduler.thrash import Hour, remedies, thrashes
from scheduler.waterline import ahead, levels
from scheduler.world import Demand, Pool, Tier
from tests.scheduler.build import NOW, POLICY, a_card, a_draft, a_host, a_replica, a_service
from tests.scheduler.build import held as waiting
from tests.scheduler.cases import cases

FULL = Policy(half_empty_pct=0)


def going(*things, policy=FULL, **more):
    other = a_service("other", tier=Tier.HOT)
    return [
        (a.replica.id, round(a.at - NOW), a.noticed)
        for a in ahead(a_draft(a_card(), other, *things, policy=policy, **more))
    ]


# Who goes next


@cases(
    ("idle_s", "expected"),
    [
        (599, []),  # half of its idle limit is not behind it: each call would tell anew
        (600, [(1, 900, False)]),
        (1100, [(1, 400, False)]),
        (1200, [(1, 300, False)]),
        (5000, [(1, 300, False)]),
    ],
)
def test_an_idle_copy_is_told_of_before_its_notice(idle_s, expected):
    assert going(a_service(), a_replica(last_call_at=NOW - idle_s)) == expected


def test_a_longer_limit_than_the_notice_waits_until_the_notice_reaches():
    slow = Policy(half_empty_pct=0, idle_unload_s=7200)
    assert going(a_service(), a_replica(last_call_at=NOW - 5000), policy=slow) == []
    assert going(a_service(), a_replica(last_call_at=NOW - 6000), policy=slow) == [(1, 1500, False)]


def test_a_standing_notice_says_its_own_instant():
    copy = a_replica(drain_at=NOW + 77, reason="idle", last_call_at=NOW - 1500)
    assert going(a_service(), copy) == [(1, 77, True)]


def test_a_copy_loaded_a_moment_ago_has_its_minimum_stay_before_it():
    policy = Policy(half_empty_pct=0, idle_unload_s=60, min_loaded_s=300)
    copy = a_replica(loaded_at=NOW - 100, last_call_at=NOW - 50)
    assert going(a_service(), copy, policy=policy) == [(1, 500, False)]


@cases(
    "kept",
    [
        {"tier": Tier.HOT},
        {"whitelisted_until": NOW + 60},
        {"min_replicas": 1},
        {"first_token_s": 0.5},
        {"weights": 500},
        {"demand": waiting()},
    ],
)
def test_who_is_kept_or_waited_for_is_not_about_to_go(kept):
    assert going(a_service(**kept), a_replica(last_call_at=NOW - 5000)) == []


def test_nor_is_an_imported_or_busy_one_or_one_on_a_silent_host():
    assert going(a_service(), a_replica(last_call_at=NOW - 5000, external=True)) == []
    assert going(a_service(), a_replica(last_call_at=NOW - 5000, in_flight=1)) == []
    assert going(a_service(), a_replica(last_call_at=NOW - 5000, in_flight=None)) == []
    assert going(a_host("h1", seen_at=NOW - 30), a_service(), a_replica(last_call_at=NOW - 5000)) == []


def test_a_half_empty_card_keeps_it_unless_somebody_was_refused_of_late():
    copy = a_replica(last_call_at=NOW - 5000)
    assert going(a_service(), copy, policy=POLICY) == []
    scarce = {"pools": {"default": Pool("default", refused_at=NOW - 10)}}
    assert going(a_service(), copy, policy=POLICY, **scarce) == [(1, 300, False)]


def test_the_first_to_go_comes_first():
    things = [a_service(n) for n in "ab"]
    copies = [a_replica(1, "a", last_call_at=NOW - 700), a_replica(2, "b", last_call_at=NOW - 1100)]
    assert [one[0] for one in going(*things, *copies)] == [2, 1]


def test_it_says_what_comes_back():
    (one,) = ahead(a_draft(a_card(), a_service(), a_service("o"), a_replica(last_call_at=NOW - 5000), policy=FULL))
    assert (one.held_mib, one.service.name, one.idle_s) == (13000, "s", 5000)


# How full a pool is


@cases(("measured", "over"), [(69031, False), (69033, True), (80000, True)])
def test_a_pool_is_over_the_line_from_85_percent(measured, over):
    """600 + held >= 85 % of 81,920 = 69,632."""
    (level,) = levels(a_draft(a_card(), a_service(), a_replica(measured_mib=measured)))
    assert (level.pool, level.total_mib, level.over) == ("default", 81920, over)


def test_pools_are_counted_apart_and_unmeasured_cards_not_at_all():
    cards = [a_card("c1", pool="a"), a_card("c2", pool="b"), a_card("c3", pool="b", unavailable_mib=None)]
    found = {one.pool: one for one in levels(a_draft(*cards, a_service(), a_replica(card="c2")))}
    assert (found["a"].used_mib, found["a"].used_pct) == (600, 0.7)
    assert (found["b"].used_mib, found["b"].total_mib) == (13600, 81920)


def test_others_memory_and_what_is_being_released_count_as_used():
    (level,) = levels(a_draft(a_card(unavailable_mib=600 + 5000 + 3000, releasing_mib=3000)))
    assert level.used_mib == 8600


# Swapping


@cases(
    ("loads", "waits", "calls", "rings"),
    [(30, 0, 60, True), (29, 0, 60, False), (20, 10, 60, True), (3, 0, 3, False), (4, 0, 4, True), (2, 2, 0, True)],
)
def test_half_the_calls_and_at_least_four_are_swapping(loads, waits, calls, rings):
    assert thrashes(Hour(loads, waits, calls), POLICY) is rings


def test_remedies_have_their_prices_by_the_share_they_would_hold():
    """13,000 of 65,000 is a fifth; the residue 1,300 a fiftieth; 20 yuan a card-hour."""
    slot, tier = sorted(remedies(a_service(), POLICY, 65000, 2000), key=lambda r: r.kind)
    assert (slot.kind, slot.mib, slot.fen_h, slot.tier) == ("slot", 13000, 400, None)
    assert (tier.kind, tier.mib, tier.fen_h, tier.tier) == ("tier", 1300, 40, Tier.WARM)


@cases(
    ("service", "to"),
    [({"tier": Tier.WARM}, Tier.HOT), ({"can_sleep": False}, Tier.HOT), ({"tier": Tier.HOT}, None)],
)
def test_the_tier_above_is_advised_where_there_is_one(service, to):
    found = remedies(a_service(**service), POLICY, 65000, 2000)
    assert {r.tier for r in found if r.kind == "tier"} == ({to} if to else set())
    assert all(r.fen_h == 400 for r in found)


def test_the_cheapest_comes_first_and_a_card_without_room_costs_nothing_known():
    assert [r.kind for r in remedies(a_service(), POLICY, 65000, 2000)] == ["tier", "slot"]
    assert {r.fen_h for r in remedies(a_service(), POLICY, 0, 2000)} == {0}


# What it cost


@cases(("after_s", "blamed"), [(-1, False), (0, True), (86399, True), (86400, False), (None, False)])
def test_a_failed_cold_call_blames_a_reclaim_of_the_last_day(after_s, blamed):
    reclaimed = None if after_s is None else NOW - after_s
    assert harmful(NOW, reclaimed, POLICY) is blamed


@cases(
    ("reclaims", "starts", "expected"),
    [
        ([0], [899], [899]),
        ([0], [900], []),
        ([0], [100, 200], [100]),
        ([0, 1000], [1500], [500]),
        ([0, 400], [500], [100]),
        ([0, 600], [100, 700], [100, 100]),
        ([100], [50], []),
        ([], [50], []),
    ],
)
def test_a_cold_start_within_15_minutes_of_a_reclaim_is_a_regret_and_one_at_most(reclaims, starts, expected):
    assert regrets(reclaims, starts, POLICY) == expected


@cases(("gaps", "expected"), [([], 1260), ([59], 1260), ([60], 1320), ([100, 899], 2100)])
def test_the_longer_idle_time_would_have_spared_them_all(gaps, expected):
    assert longer_idle_s(1200, gaps) == expected
    assert all(expected > 1200 + gap for gap in gaps)


# Fitted tiers


def a_use(name, calls, awake=10000, weights=8000):
    return Used(name, calls, awake, weights)


def test_hot_are_the_most_called_that_fill_their_share_warm_the_next_that_fit_host_memory():
    """Half of 60,000 takes three of 10,000; 20,000 of host memory two of 8,000."""
    ranked = [a_use(n, c) for n, c in zip("abcdefgh", (900, 800, 700, 60, 50, 4, 3, 0), strict=True)]
    fitted = fit(ranked, 60000, 20000, POLICY)
    assert fitted == Fitted(60, 4, ("a", "b", "c"), ("d", "e"))
    assert [fitted.tier_of(s.calls_7d) for s in ranked] == [Tier.HOT] * 3 + [Tier.WARM] * 2 + [Tier.COLD] * 3


def test_a_threshold_never_parts_services_with_the_same_calls():
    same = [a_use(n, 500) for n in "abcd"]
    assert fit(same, 60000, 10**6, POLICY) == Fitted(500, 0, (), tuple("abcd"))


def test_where_all_fit_all_who_are_called_are_hot_and_who_is_not_stays_cold():
    fitted = fit([a_use("a", 5), a_use("b", 0)], 10**6, 10**6, POLICY)
    assert (fitted.hot, fitted.warm, fitted.hot_calls_7d, fitted.warm_calls_7d) == (("a",), (), 0, 0)
    assert fitted.tier_of(0) is Tier.COLD


def test_the_first_that_does_not_fit_ends_the_tier():
    """A large one in the middle is not passed over: thresholds go by calls alone."""
    ranked = [a_use("a", 900), a_use("b", 800, awake=50000), a_use("c", 700)]
    assert fit(ranked, 60000, 0, POLICY) == Fitted(800, 800, ("a",), ())


def test_the_share_of_the_pool_is_the_policys():
    ranked = [a_use(n, 100 - i) for i, n in enumerate("abcdef")]
    assert len(fit(ranked, 60000, 0, Policy(hot_memory_pct=100)).hot) == 6
    assert len(fit(ranked, 60000, 0, Policy(hot_memory_pct=20)).hot) == 1


def test_fitted_thresholds_take_the_place_of_the_plain_ones():
    policy = Fitted(60, 4, (), ()).into(POLICY)
    assert (policy.hot_calls_7d, policy.warm_calls_7d) == (60, 4)


def test_a_service_fills_the_tier_with_all_the_copies_it_keeps():
    assert used(a_service(min_replicas=2)).awake_mib == 26000
    assert used(a_service()).awake_mib == 13000


def test_host_memory_for_sleepers_leaves_each_hosts_floor():
    hosts = [a_host("a", memory_mib=64 * 1024), a_host("b", memory_mib=512 * 1024), a_host("c", memory_mib=1024)]
    assert sleeping_room_mib(hosts, POLICY) == 65536 - 16384 + 524288 - 104857


# Resident slots


def slots(*things, pool="default", **more):
    return resident_slots(a_draft(*things, **more), pool)


def called(name, **more):
    return a_service(name, demand=Demand(calls_7d=5, last_call_at=more.pop("at", NOW)), **more)


def test_n_is_how_many_fit_by_whole_claims():
    """24,576 - 600 - 1,967 = 22,009: one of 13,000 on each of two cards."""
    cards = [a_card("c1", total=24576), a_card("c2", total=24576)]
    found = slots(*cards, *(called(n) for n in "abcd"), a_replica(1, "a"))
    assert (found.n, found.awake, found.services) == (2, 1, 4)


def test_a_card_takes_no_more_than_its_limit_of_replicas():
    assert slots(a_card(), *(called(n, weights=1000, kv=500) for n in "abcdef")).n == 4


def test_higher_priority_then_the_lately_used_come_first():
    """One place for a small one beside the large: the large has priority, else the lately used small ones take it."""
    things = [called("large", weights=60000, priority=90), *(called(n, weights=20000) for n in "abc")]
    assert slots(a_card(), *things).n == 1
    assert slots(a_card(), called("large", weights=60000, priority=10), *things[1:]).n == 2


def test_only_services_that_may_use_the_pool_count():
    cards = [a_card("c1", pool="p"), a_card("c2", pool="q")]
    pools = {"p": Pool("p", purpose="resident"), "q": Pool("q", tenants=frozenset({"u"}))}
    things = [called("any"), called("named", pools=frozenset({"p"}), tier=Tier.HOT), called("mine", tenant="u")]
    assert slots(*cards, *things, pool="p", pools=pools).services == 1
    assert slots(*cards, *things, pool="q", pools=pools).services == 1
    assert slots(*cards, *things, pool="gone", pools=pools).services == 2


def test_who_is_neither_called_nor_awake_needs_no_slot_and_a_broken_card_has_none():
    assert slots(a_card(), a_service("a")).services == 0
    assert slots(a_card(healthy=False), called("a")).n == 0
    assert slots(a_card(unavailable_mib=None), called("a")).n == 0
