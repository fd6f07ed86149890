"""The memory rules line by line where they are rarely walked: cards without process memory, host memory, regrant."""

from __future__ import annotations

import pytest

from scheduler.bar import bar_of
from scheduler.decision import Code, Reason, Refusal, Verb
from scheduler.elastic import elastic_fits, elastic_oversell_pct
from scheduler.memory import (
    allocatable_mib,
    book_limit_pct,
    external_mib,
    kv_sums,
    oversell_pct,
    room_mib,
    start_grant,
    within_oversell,
)
from scheduler.placement import place
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.sleep import host_room_mib, may_sleep, why_no_sleep
from scheduler.world import Phase, Pool, Profile, Tier
from tests.scheduler.build import NOW, POLICY, a_card, a_draft, a_host, a_replica, a_service, a_world, acting, held
from tests.scheduler.cases import cases

LOW, BATCH = Profile.LOWFREQ, Profile.BATCH


def book(*things, policy: Policy = POLICY, **more):
    return a_draft(*things, policy=policy, **more).book("c1")


# Cards without per-process memory


@cases(
    ("unavailable", "ledger", "expected"),
    [
        (3000, 0, 0),
        (3000 + 12600, 12600, 0),
        (3000 + 12600 + 1600, 12600, 0),  # under 2 % of 81,920: the ledger's error
        (3000 + 12600 + 1700, 12600, 1700),
        (3000 + 12600 - 900, 12600, 0),
        (None, 12600, None),
    ],
)
def test_without_process_memory_external_is_what_baseline_and_ledger_leave(unavailable, ledger, expected):
    card = a_card(unavailable_mib=unavailable, baseline_mib=3000)
    assert external_mib(card, ledger, POLICY.release_tolerance_pct) == expected


def test_the_same_difference_is_a_stranger_where_processes_are_measured():
    assert external_mib(a_card(unavailable_mib=600 + 1600), 0, POLICY.release_tolerance_pct) == 1600


def test_what_the_empty_card_shows_is_not_given_away():
    there = book(a_card(unavailable_mib=3000, baseline_mib=3000))
    assert allocatable_mib(there) == 81920 - 3000 - 6554


def test_a_baseline_below_the_drivers_own_reserve_does_not_lower_it():
    assert allocatable_mib(book(a_card(baseline_mib=0))) == 81920 - 600 - 6554


def test_such_a_card_counts_ours_by_the_ledger_and_its_bar_adds_up():
    there = book(a_card(unavailable_mib=3000 + 12600, baseline_mib=3000), a_service(), a_replica())
    assert there.external_mib == 0
    assert room_mib(there) == 81920 - 3000 - 6554 - 13000
    bar = bar_of(there)
    assert bar.sum_mib == bar.total_mib
    assert bar.driver_reserved_mib == 3000


# Imported engines


def test_an_imported_engine_is_its_own_segment_not_the_grey_external_one():
    there = book(a_card(unavailable_mib=600 + 9000), a_service(), a_replica(external=True, measured_mib=9000))
    assert there.external_mib == 0
    assert [s.held_mib for s in bar_of(there).segments] == [9000]


def test_an_imported_engine_is_never_stopped_whoever_waits():
    world = a_world(
        a_card(total=24576),
        a_service("a", tier=Tier.COLD),
        a_service("b", weights=12000, demand=held()),
        a_replica(1, "a", external=True, measured_mib=14000),
    )
    assert acting(plan(world, POLICY, NOW)) == []


def test_an_imported_engine_counts_as_awake_and_in_no_sum_of_kv():
    there = book(a_card(), a_service(), a_replica(external=True, measured_mib=9000))
    assert kv_sums(there) == (0, 0)
    assert oversell_pct(there) == 0.0


# Elastic pools


def elastic_pool():
    return {"pools": {"default": Pool("default", kv="elastic")}}


def test_a_pool_that_wants_kv_by_the_page_refuses_with_its_type_and_says_whether_it_would_fit():
    roomy = place(a_world(a_card(), a_service(), **elastic_pool()), POLICY, a_service(), NOW)
    assert roomy == Refusal(Code.ELASTIC, {"card": "c1", "pool": "default", "would_fit": 1, "cards": 1})
    tight = place(a_world(a_card(total=8192), a_service(), **elastic_pool()), POLICY, a_service(), NOW)
    assert tight.numbers["would_fit"] == 0


@cases(("kv", "fits"), [(60000, True), (76000, True), (77000, False)])
def test_the_formula_of_an_elastic_pool(kv, fits):
    """74,766 allocatable; fixed 9,000; one online: limit 15 %."""
    assert elastic_fits(book(a_card(), a_service()), a_service(kv=kv)) is (9000 + -(-kv * 100 // 115) <= 74766)
    assert elastic_fits(book(a_card(), a_service()), a_service(kv=kv)) is (fits and kv < 75631)


def test_an_elastic_newcomer_counts_the_caps_of_all_and_what_sleepers_hold():
    things = [a_card(), a_service("a", kv=40000), a_service("b", kv=30000, profile=LOW)]
    awake = book(*things, a_replica(1, "a", kv_granted_mib=10000))
    asleep = book(*things, a_replica(1, "a", phase=Phase.ASLEEP, kv_granted_mib=10000))
    newcomer = a_service("b", kv=30000, profile=LOW)
    # 9,000 + 9,000 + 70,000 / 1.35 = 69,852; asleep 1,300 + 9,000 + 51,852
    assert elastic_fits(awake, newcomer)
    assert not elastic_fits(awake, a_service("b", kv=37000, profile=LOW))
    assert elastic_fits(asleep, a_service("b", kv=37000, profile=LOW))


def test_an_elastic_newcomer_fits_no_unmeasured_card():
    assert not elastic_fits(book(a_card(unavailable_mib=None)), a_service())


@cases(("pool", "expected"), [(8000, 0.0), (4000, 0.0), (2000, 100.0), (0, float("inf"))])
def test_elastic_oversell_is_caps_over_the_shared_pool(pool, expected):
    assert elastic_oversell_pct(book(a_card(), a_service(kv=4000), a_replica()), pool) == expected


# Regrant


def squeezed_card():
    """An online copy that got 20,000 of a cap of 30,000, beside which 34,766 are free."""
    online = a_service("a", weights=10000, kv=30000, headroom=400, overhead=600)
    return a_card(), online, a_replica(1, "a", kv_granted_mib=26090)


def test_beside_an_online_copy_short_of_its_cap_a_lowfreq_newcomer_takes_the_least_the_limit_allows():
    """(30,000 + 6,000) / 1.35 = 26,667; 26,090 are granted; alone its own cap needs 4,445."""
    newcomer = a_service("b", kv=6000, profile=LOW)
    grant = start_grant(book(*squeezed_card()), newcomer)
    assert grant == -(-6000 * 100 // 135)
    assert within_oversell(36000, 26090 + grant, 35)


def test_one_request_is_more_than_the_least():
    newcomer = a_service("b", kv=6000, profile=LOW, one_request_mib=5000)
    assert start_grant(book(*squeezed_card()), newcomer) == 5000


@cases("profile", [Profile.ONLINE, BATCH])
def test_only_lowfreq_gives(profile):
    assert start_grant(book(*squeezed_card()), a_service("b", kv=6000, profile=profile)) == 6000


@cases(("granted", "gives"), [(26999, True), (27000, False), (30000, False)])
def test_ninety_percent_of_the_cap_is_enough(granted, gives):
    card, online, _ = squeezed_card()
    there = book(card, online, a_replica(1, "a", kv_granted_mib=granted))
    assert (start_grant(there, a_service("b", kv=6000, profile=LOW)) < 6000) is gives


def test_an_online_newcomer_short_of_its_cap_names_who_gives_at_its_next_start():
    neighbour = a_service("low", weights=40000, kv=20000, profile=LOW)
    online = a_service("a", weights=2000, kv=12000, demand=held())
    world = a_world(a_card(), neighbour, online, a_replica(1, "low", kv_granted_mib=20000))
    (start,) = [d for d in acting(plan(world, POLICY, NOW)) if d.verb is Verb.START]
    assert start.kv_granted_mib == 74766 - 61000 - 3000
    assert start.numbers["regrants"] == "low"
    assert start.numbers["kv_cap_mib"] == 12000


def test_one_that_gets_its_cap_asks_nobody():
    world = a_world(a_card(), a_service("a", demand=held()))
    (start,) = acting(plan(world, POLICY, NOW))
    assert "regrants" not in start.numbers
    assert "kv_cap_mib" not in start.numbers


# Grandfathered cards


def test_a_card_over_its_limit_because_a_neighbour_left_stays_as_it_is():
    """30 % of oversell was legal beside a lowfreq copy; it left, all are online, 15 % would be the limit."""
    online = a_service("a", kv=13000, tier=Tier.HOT)
    world = a_world(a_card(), online, a_replica(1, "a", kv_granted_mib=10000))
    there = a_draft(a_card(), online, a_replica(1, "a", kv_granted_mib=10000)).book("c1")
    assert oversell_pct(there) == pytest.approx(30.0)
    assert book_limit_pct(there) == 15
    assert acting(plan(world, POLICY, NOW)) == []


@cases(
    ("profile", "kv", "admitted"),
    [(BATCH, 1000, True), (Profile.ONLINE, 1000, False), (Profile.ONLINE, 11000, True)],
)
def test_a_newcomer_of_such_a_card_is_judged_with_itself(profile, kv, admitted):
    """13,000 of 10,000: a batch newcomer widens the limit to 35 %; an online one must bring KV enough for 15 %."""
    there = book(a_card(), a_service("a", kv=13000), a_replica(1, "a", kv_granted_mib=10000))
    grant = start_grant(there, a_service("b", kv=kv, profile=profile))
    assert (grant == kv) is admitted
    if not admitted:
        assert grant.code is Code.OVERSELL


# Host memory


def sleepy(memory_mib: int, *replicas, **more):
    services = [a_service(n, weights=20000, tier=Tier.WARM) for n in "abcdef"]
    cards = [a_card("c1"), a_card("c2")]
    return a_draft(*cards, a_host(memory_mib=memory_mib, **more), *services, *replicas)


@cases(("memory", "floor"), [(64 * 1024, 16384), (80 * 1024, 16384), (100 * 1024, 20480), (512 * 1024, 104857)])
def test_the_floor_of_a_hosts_memory_is_16_gib_or_a_fifth(memory, floor):
    draft = sleepy(memory)
    assert host_room_mib(draft, draft.world.hosts["h1"]) == memory - floor


def test_sleepers_of_all_cards_of_the_host_count_with_their_weights():
    draft = sleepy(
        128 * 1024,
        a_replica(1, "a", "c1", Phase.ASLEEP),
        a_replica(2, "b", "c2", Phase.ASLEEP),
        a_replica(3, "c", "c2"),
    )
    assert host_room_mib(draft, draft.world.hosts["h1"]) == 131072 - 26214 - 40000


def test_one_whose_weights_do_not_fit_beside_them_stops_and_says_why():
    asleep = [a_replica(i, n, "c1", Phase.ASLEEP) for i, n in enumerate("abc", 1)]
    leaving = a_replica(9, "d", "c2", Phase.DRAINING, quiet=True, reason="idle")
    draft = sleepy(96 * 1024, *asleep, leaving)
    refusal = why_no_sleep(draft, leaving)
    assert refusal.code is Code.HOST_MEMORY
    assert refusal.numbers == {"host": "h1", "short_mib": 20000 - (98304 - 19660 - 60000), "host_room_mib": 18644}
    (stop,) = [d for d in acting(plan(draft.world, POLICY, NOW)) if d.replica == 9]
    assert stop.verb is Verb.STOP
    assert stop.numbers["no_sleep"] == "host_memory"
    assert stop.numbers["short_mib"] == 1356


def test_two_that_fall_asleep_at_once_are_counted_together():
    """Room for one more: the second of the same plan stops."""
    going = [
        a_replica(i, n, c, Phase.DRAINING, quiet=True, reason="idle") for i, n, c in ((1, "a", "c1"), (2, "b", "c2"))
    ]
    draft = sleepy(48 * 1024, *going)
    verbs = {d.replica: d.verb for d in acting(plan(draft.world, POLICY, NOW))}
    assert verbs == {1: Verb.SLEEP, 2: Verb.STOP}


@cases(
    ("replica", "service", "code"),
    [({"can_sleep": False}, {}, Code.CANNOT_SLEEP), ({}, {"can_sleep": False}, Code.CANNOT_SLEEP)],
)
def test_what_cannot_sleep_says_so(replica, service, code):
    leaving = a_replica(1, "s", phase=Phase.DRAINING, quiet=True, reason="idle", **replica)
    draft = a_draft(a_card(), a_service(tier=Tier.WARM, **service), leaving)
    assert why_no_sleep(draft, leaving).code is code
    (stop,) = acting(plan(draft.world, POLICY, NOW))
    assert (stop.verb, stop.numbers["no_sleep"]) == (Verb.STOP, code)


def test_the_fifth_sleeper_of_a_card_stops_and_says_why():
    asleep = [a_replica(i, n, "c1", Phase.ASLEEP) for i, n in enumerate("abcd", 1)]
    leaving = a_replica(9, "e", "c1", Phase.DRAINING, quiet=True, reason="idle")
    draft = sleepy(512 * 1024, *asleep, leaving)
    assert why_no_sleep(draft, leaving) == Refusal(Code.SLEEPER_LIMIT, {"card": "c1", "asleep": 4})
    assert not may_sleep(draft, leaving)


def test_a_cold_one_stops_without_an_excuse():
    leaving = a_replica(1, "s", phase=Phase.DRAINING, quiet=True, reason="idle")
    (stop,) = acting(plan(a_world(a_card(), a_service(tier=Tier.COLD), leaving), POLICY, NOW))
    assert (stop.verb, stop.reason, dict(stop.numbers)) == (Verb.STOP, Reason.IDLE, {})


def test_a_warm_one_that_cannot_sleep_is_idle_twice_as_long():
    def idle(seconds: float, can_sleep: bool):
        copy = a_replica(1, "s", last_call_at=NOW - seconds, can_sleep=can_sleep)
        hot = a_replica(2, "h", "c1", measured_mib=60000)
        world = a_world(a_card(), a_service(tier=Tier.WARM), a_service("h", tier=Tier.HOT), copy, hot)
        return [d.verb for d in acting(plan(world, POLICY, NOW))]

    assert idle(1300, True) == [Verb.DRAIN]
    assert idle(1300, False) == []
    assert idle(2500, False) == [Verb.DRAIN]
