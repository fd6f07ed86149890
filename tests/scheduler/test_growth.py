"""Wishes: who wishes, in which order, what is done, and what callers are told meanwhile."""

from __future__ import annotations

from dataclasses import replace

from scheduler.decision import Code, Reason, Verb
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.wishes import wishes
from scheduler.world import Demand, Phase, Swap, Tier, Want
from tests.scheduler.build import NOW, POLICY, a_card, a_draft, a_failure, a_host, a_replica, a_service, a_world, held
from tests.scheduler.cases import cases

SMALL = a_card(total=24576)  # room for one of the builders' services, and a half


def planned(*things, policy: Policy = POLICY, **more):
    return plan(a_world(*things, **more), policy, NOW)


def decided(*things, **more):
    return [(d.verb, d.service, d.reason) for d in planned(*things, **more) if d.refusal is None]


def refusal(service, *things, **more):
    (found,) = [d.refusal for d in planned(*things, **more) if d.refusal and d.service == service]
    return found


def sleeper(id=1, service="s", **more):
    return a_replica(id, service, phase=Phase.ASLEEP, **more)


HELD = a_service(demand=held())


@cases(
    ("service", "reason"),
    [
        (HELD, Reason.HOLD),
        (a_service(demand=Demand(expected_until=NOW + 1)), Reason.HOLD),
        (a_service(tier=Tier.HOT), Reason.MINIMUM),
        (a_service(min_replicas=1), Reason.MINIMUM),
        (a_service(wished_at=NOW), Reason.OPERATOR),
        (a_service(wished_at=NOW - 10, last_reclaimed_at=NOW - 11), Reason.OPERATOR),
    ],
)
def test_who_wishes_is_started(service, reason):
    assert decided(service) == [(Verb.START, "s", reason)]


@cases(
    "service",
    [
        a_service(),
        a_service(tier=Tier.WARM),
        a_service(demand=Demand(last_call_at=NOW - 1)),
        a_service(demand=Demand(expected_until=NOW)),
        a_service(wished_at=NOW + 1),
        a_service(wished_at=NOW - 10, last_reclaimed_at=NOW - 10),
    ],
)
def test_who_does_not_wish_is_left(service):
    assert planned(service) == []


@cases("phase", [Phase.STARTING, Phase.READY])
def test_one_load_serves_all_who_wait(phase):
    assert planned(a_service(demand=held(50)), a_replica(phase=phase)) == []


def test_a_start_that_is_cancelled_is_not_in_hand():
    got = decided(a_card("c1"), a_card("c2"), HELD, a_replica(phase=Phase.STARTING, want=Want.STOPPED))
    assert got == [(Verb.START, "s", Reason.HOLD)]


def test_callers_come_first_by_priority_and_then_by_who_waits_longest():
    services = [
        a_service("minimum", min_replicas=1, priority=99),
        a_service("late", demand=held(since=NOW - 1)),
        a_service("early", demand=held(since=NOW - 9)),
        a_service("important", demand=held(since=NOW), priority=90),
    ]
    order = [w.service.name for w in wishes(a_draft(*services))]
    assert order == ["important", "early", "late", "minimum"]


def test_a_minimum_of_two_starts_on_two_hosts_at_once():
    cards = [a_card("c1"), a_card("c2"), a_card("c3", "h2")]
    starts = planned(*cards, a_service(min_replicas=2, max_replicas=2))
    assert {d.cards for d in starts} == {("c1",), ("c3",)}


def test_with_one_host_the_second_is_refused():
    cards = [a_card("c1"), a_card("c2")]
    assert refusal("s", *cards, a_service(min_replicas=2, max_replicas=2)).code is Code.TWO_HOSTS


def test_racks_count_as_hosts_where_they_are_set():
    hosts = [a_host("h1", rack="r1"), a_host("h2", rack="r1"), a_host("h3", rack="r2")]
    cards = [a_card("c1", "h1"), a_card("c2", "h2"), a_card("c3", "h3")]
    starts = planned(*hosts, *cards, a_service(min_replicas=2, max_replicas=2))
    assert {d.cards for d in starts} == {("c1",), ("c3",)}


@cases("service", [a_service(max_replicas=0, demand=held()), a_service(max_replicas=0, wished_at=NOW)])
def test_no_more_than_the_maximum(service):
    assert refusal("s", service).code is Code.MAX_REPLICAS


def test_a_frozen_farm_refuses_and_moves_nothing():
    got = planned(
        HELD, a_service("x", tier=Tier.WARM), a_replica(2, "x", phase=Phase.DRAINING, quiet=True), frozen=True
    )
    assert [d.refusal and d.refusal.code for d in got] == [Code.FROZEN]


# Waking


def test_a_sleeper_is_woken_rather_than_another_started():
    (wake,) = planned(a_card(), a_card("c2"), HELD, sleeper())
    assert (wake.verb, wake.replica) == (Verb.WAKE, 1)


def test_a_sleeper_on_a_broken_card_is_not_woken():
    (start,) = planned(a_card(healthy=False), a_card("c2"), HELD, sleeper())
    assert (start.verb, start.cards) == (Verb.START, ("c2",))


def test_a_sleeper_on_a_silent_host_is_not_woken():
    hosts = [a_host("h1", seen_at=NOW - 20), a_host("h2")]
    (start,) = planned(*hosts, a_card(), a_card("c2", "h2"), HELD, sleeper())
    assert (start.verb, start.cards) == (Verb.START, ("c2",))


def test_a_sleeper_that_does_not_fit_makes_room_first():
    idle = [a_service("x"), a_replica(2, "x")]
    got = decided(SMALL, a_card("c2", total=24576), HELD, *idle, sleeper())
    assert got == [(Verb.DRAIN, "x", Reason.ROOM)]


def test_a_sleeper_that_cannot_make_room_is_started_elsewhere():
    kept = [a_service("x", min_replicas=1), a_replica(2, "x")]
    (start,) = planned(SMALL, a_card("c2", total=24576), HELD, *kept, sleeper())
    assert (start.verb, start.cards) == (Verb.START, ("c2",))


def test_who_is_falling_asleep_is_waited_for():
    falling = a_replica(phase=Phase.DRAINING, want=Want.ASLEEP, want_since=NOW - 2)
    got = refusal("s", a_card("c1"), a_card("c2"), HELD, falling)
    assert (got.code, got.numbers["wait_s"]) == (Code.NOT_NOW, 3)


def test_a_wake_waits_its_turn_and_keeps_its_room():
    loading = [a_service("x", demand=held()), a_replica(2, "x", phase=Phase.STARTING)]
    third = a_service("y", weights=60000, kv=0, tier=Tier.HOT)
    got = planned(a_card(), HELD, *loading, sleeper(), third)
    assert [(d.service, d.refusal.code) for d in got] == [("s", Code.LOAD_IN_FLIGHT), ("y", Code.SHORT_OF_MEMORY)]


def test_an_imported_sleeper_is_not_woken():
    got = decided(a_card(), a_card("c2"), HELD, sleeper(external=True))
    assert got == [(Verb.START, "s", Reason.HOLD)]


# Turns


def test_a_caller_takes_a_card_that_can_load_now():
    loading = [a_service("x", demand=held()), a_replica(2, "x", phase=Phase.STARTING)]
    (start,) = planned(a_card("c1"), a_card("c2"), HELD, *loading)
    assert start.cards == ("c2",)


def test_two_that_queue_behind_one_load_wait_one_after_the_other():
    loading = [a_service("x", demand=held()), a_replica(9, "x", phase=Phase.STARTING)]
    services = [a_service(n, demand=held(since=NOW - i)) for i, n in enumerate("ba")]
    got = {d.service: d.refusal for d in planned(a_card(), *loading, *services)}
    assert {r.code for r in got.values()} == {Code.LOAD_IN_FLIGHT}
    first, second = got["a"].numbers["wait_s"], got["b"].numbers["wait_s"]
    assert (first, second) == (16, 32)


def test_a_queued_one_keeps_its_place_on_the_card():
    loading = [a_service("x", demand=held()), a_replica(9, "x", phase=Phase.STARTING)]
    big = [a_service(n, weights=38000, demand=held(since=NOW - i)) for i, n in enumerate("ba")]
    got = {d.service: d.refusal.code for d in planned(a_card(), *loading, *big)}
    assert got == {"a": Code.LOAD_IN_FLIGHT, "b": Code.NO_CAPACITY}


# Room


#: Idle, but not for so long that it would get a notice anyway.
IDLE = [a_service("x"), a_replica(2, "x", last_call_at=NOW - 600)]


def test_an_idle_one_gets_a_short_notice():
    (notice, told) = planned(SMALL, HELD, *IDLE)
    assert (notice.verb, notice.replica, notice.not_before) == (Verb.DRAIN, 2, NOW + 5)
    assert notice.numbers["room_for"] == "s"
    assert (told.refusal.code, told.refusal.numbers["wait_s"]) == (Code.NOT_NOW, 10)


@cases("service", [a_service(tier=Tier.HOT), a_service(min_replicas=1), a_service(wished_at=NOW)])
def test_room_is_made_for_callers_only(service):
    assert decided(SMALL, service, *IDLE) == []
    assert refusal("s", SMALL, service, *IDLE).code is Code.SHORT_OF_MEMORY


@cases(
    "other",
    [
        a_service("x", priority=51),
        a_service("x", min_replicas=1),
        a_service("x", tier=Tier.HOT),
        a_service("x", whitelisted_until=NOW + 9),
        a_service("x", first_token_s=0.2),
    ],
)
def test_who_may_not_go_stays_and_the_caller_is_told(other):
    there = [other, a_replica(2, "x", last_call_at=NOW - 600)]
    assert decided(SMALL, HELD, *there) == []
    got = refusal("s", SMALL, HELD, *there)
    assert got.code is Code.NO_CAPACITY
    assert got.numbers["short_mib"] > 0


@cases("fields", [{"in_flight": 1}, {"in_flight": None}, {"left_alone_until": NOW + 1}, {"external": True}])
def test_what_is_in_use_or_left_alone_stays(fields):
    assert decided(SMALL, HELD, a_service("x"), a_replica(2, "x", measured_mib=13000, **fields)) == []


def test_one_in_use_goes_for_strictly_higher_priority_without_a_cut():
    service = a_service(priority=60, demand=held())
    drain, told = planned(SMALL, service, a_service("x", generation_s=10.0), a_replica(2, "x", in_flight=3))
    assert (drain.verb, drain.replica, drain.not_before, drain.force) == (Verb.DRAIN, 2, None, False)
    assert told.refusal.numbers["wait_s"] == 5 + 45
    assert told.refusal.numbers["wait_low_s"] == 5


def room_on(total: int, *others, caller=HELD, **more):
    """Who is asked to go, on one card of this size."""
    return [d.service for d in planned(a_card(total=total), caller, *others, **more) if d.refusal is None]


def four(*specs):
    """Services n0.. with fields, each with a replica of 13,000 MiB that was called ten minutes ago."""
    found = []
    for i, (service, replica) in enumerate(specs):
        found += [a_service(f"n{i}", **service), a_replica(10 + i, f"n{i}", **{"last_call_at": NOW - 600, **replica})]
    return found


def test_the_lowest_priority_goes_first():
    assert room_on(50000, *four(({"priority": 50}, {}), ({"priority": 10}, {}), ({"priority": 30}, {}))) == ["n1"]


def test_of_one_priority_the_least_recently_used_goes_first():
    calls = [({}, {"last_call_at": NOW - ago}) for ago in (400, 900, 600)]
    assert room_on(50000, *four(*calls)) == ["n1"]


#: Holds one idle and one sleeper, and lacks less than a sleeper holds.
TIGHT = 28700


def test_sleepers_go_before_the_idle():
    sleeping = [a_service("z", tier=Tier.WARM), sleeper(5, "z")]
    got = planned(a_card(total=TIGHT), HELD, *IDLE, *sleeping)
    assert [(d.verb, d.service) for d in got if d.refusal is None] == [(Verb.STOP, "z")]


def test_a_kept_sleeper_stays():
    kept = [a_service("z", tier=Tier.WARM, whitelisted_until=NOW + 9), sleeper(5, "z")]
    assert room_on(TIGHT, *IDLE, *kept) == ["x"]


def test_a_load_nobody_waits_for_is_cancelled_only_when_its_memory_is_needed():
    loading = [a_service("x"), a_replica(2, "x", phase=Phase.STARTING)]
    assert decided(a_card(total=40960), HELD, *loading) == []
    assert decided(SMALL, HELD, *loading) == [(Verb.STOP, "x", Reason.ROOM)]


def test_a_load_somebody_waits_for_is_not_cancelled():
    loading = [a_service("x", demand=held()), a_replica(2, "x", phase=Phase.STARTING)]
    assert decided(SMALL, HELD, *loading) == []


def test_as_few_go_as_are_needed():
    small = [a_service(f"n{i}", 2000, 1000) for i in range(3)]
    small += [a_replica(10 + i, f"n{i}", kv_granted_mib=1000, last_call_at=NOW - 900 + i) for i in range(3)]
    large = [a_service("big", 9000, 4000), a_replica(20, "big", last_call_at=NOW - 400)]
    card = 600 + 3 * 4000 + 14000 + 2400
    assert room_on(card, *small, *large, caller=a_service(weights=8000, demand=held())) == ["big"]


def test_the_card_where_the_least_is_lost_is_chosen():
    cards = [a_card("c1", total=24576), a_card("c2", total=24576)]
    recent = [a_service("x"), a_replica(2, "x", "c1", last_call_at=NOW - 400)]
    older = [a_service("y"), a_replica(3, "y", "c2", last_call_at=NOW - 900)]
    assert decided(*cards, HELD, *recent, *older) == [(Verb.DRAIN, "y", Reason.ROOM)]


def test_room_that_is_coming_anyway_is_waited_for():
    leaving = [a_service("x"), a_replica(2, "x", phase=Phase.DRAINING, want=Want.STOPPED, want_since=NOW - 2)]
    assert decided(SMALL, HELD, *leaving) == []
    got = refusal("s", SMALL, HELD, *leaving)
    assert (got.code, got.numbers["wait_s"]) == (Code.NOT_NOW, 3)


def test_memory_in_release_is_waited_for_and_given_to_nobody():
    got = refusal("s", a_card(total=24576, unavailable_mib=600 + 13000, releasing_mib=13000), HELD)
    assert (got.code, got.numbers["wait_s"]) == (Code.NOT_NOW, 5)


def test_a_standing_notice_for_idleness_is_shortened():
    idle = [a_service("x"), a_replica(2, "x", drain_at=NOW + 200, reason="idle")]
    (notice, _) = planned(SMALL, HELD, *idle)
    assert (notice.reason, notice.not_before) == (Reason.ROOM, NOW + 5)


def test_a_standing_notice_for_room_is_not_repeated():
    asked = [a_service("x"), a_replica(2, "x", drain_at=NOW + 3, reason="room")]
    assert decided(SMALL, HELD, *asked) == []
    assert refusal("s", SMALL, HELD, *asked).numbers["wait_s"] == 3 + 5


@cases(
    "asked",
    [a_replica(2, "x", drain_at=NOW + 3, reason="room"), a_replica(2, "x", phase=Phase.DRAINING, reason="room")],
)
def test_room_nobody_needs_any_more_is_given_back(asked):
    assert decided(SMALL, a_service(), a_service("x"), asked) == [(Verb.WAKE, "x", Reason.UNNEEDED)]


def test_two_callers_do_not_count_on_the_same_room():
    card = a_card(total=40960)
    first, second = (a_service(n, demand=held(since=NOW - i)) for i, n in enumerate("ba"))
    got = planned(card, first, second, *four(({}, {}), ({}, {})))
    assert sorted(d.service for d in got if d.refusal is None) == ["n0", "n1"]
    assert {d.refusal.code for d in got if d.refusal} == {Code.NOT_NOW}


def test_kept_room_is_not_taken_by_a_smaller_wish():
    waiting = a_service("a", weights=12000, demand=held())
    small = a_service("z", weights=6000, kv=500, min_replicas=1)
    got = {d.service: d.refusal.code for d in planned(SMALL, waiting, small, *IDLE) if d.refusal}
    assert got == {"a": Code.NOT_NOW, "z": Code.SHORT_OF_MEMORY}


# Anti-swap


@cases(("loaded_ago", "rest"), [(299, 1), (100, 200), (10, 290)])
def test_who_was_loaded_just_now_stays_a_while(loaded_ago, rest):
    got = refusal(
        "s",
        SMALL,
        a_service(hold_cap_s=0.0, demand=held()),
        a_service("x"),
        a_replica(2, "x", loaded_at=NOW - loaded_ago),
    )
    assert (got.code, got.numbers["retry_after_s"], got.numbers["service"]) == (Code.ANTI_SWAP, rest, "x")


def test_a_pair_swaps_once_per_minimum_stay():
    swapped = {"swaps": (Swap("x", "s", NOW - 100),)}
    assert refusal("s", SMALL, HELD, *IDLE, **swapped).code is Code.ANTI_SWAP
    other_way = {"swaps": (Swap("s", "x", NOW - 100),)}
    assert refusal("s", SMALL, HELD, *IDLE, **other_way).code is Code.NOT_NOW


@cases(
    ("demand", "code"),
    [(held(), Code.ANTI_SWAP), (held(2, streams=1), Code.NOT_NOW), (held(streams=1), Code.NOT_NOW)],
)
def test_a_caller_whose_hold_outlasts_the_rest_waits(demand, code):
    got = refusal("s", SMALL, a_service(demand=demand), a_service("x"), a_replica(2, "x", loaded_at=NOW - 200))
    assert got.code is code
    if code is Code.NOT_NOW:
        assert (got.numbers["wait_s"], got.numbers["wait_low_s"]) == (110, 110)


# Lost hosts


def test_a_lost_hosts_replica_is_rebuilt_elsewhere_and_stays_booked():
    hosts = [a_host("h1", seen_at=NOW - 61), a_host("h2")]
    (start,) = planned(*hosts, a_card("c1"), a_card("c2", "h2"), a_service(), a_replica())
    assert (start.verb, start.reason, start.cards) == (Verb.START, Reason.REBUILD, ("c2",))


@cases("host", [a_host(seen_at=NOW - 59), a_host(seen_at=NOW - 900, serving=True)])
def test_a_host_that_is_not_lost_yet_or_still_serves_is_left_alone(host):
    assert planned(host, a_host("h2"), a_card("c1"), a_card("c2", "h2"), a_service(), a_replica()) == []


def test_callers_of_a_silent_host_are_held_until_it_is_lost():
    got = refusal("s", a_host(seen_at=NOW - 20), HELD, a_replica())
    assert (got.code, got.numbers["wait_s"]) == (Code.NOT_NOW, 40)


def test_a_rebuilt_one_is_not_rebuilt_again():
    hosts = [a_host("h1", seen_at=NOW - 99), a_host("h2")]
    cards = [a_card("c1"), a_card("c2", "h2")]
    rebuilt = a_replica(2, card="c2", last_call_at=NOW)
    assert planned(*hosts, *cards, a_service(max_replicas=4), a_replica(), rebuilt) == []


def test_what_a_lost_host_leaves_behind_may_be_on_one_host():
    hosts = [a_host("h1", seen_at=NOW - 99), a_host("h2")]
    cards = [a_card("c1"), a_card("c2", "h2"), a_card("c3", "h2")]
    service = a_service(min_replicas=2, max_replicas=2)
    assert decided(*hosts, *cards, service, a_replica()) == [(Verb.START, "s", Reason.REBUILD)]
    assert refusal("s", *hosts, *cards, service, a_replica()).code is Code.TWO_HOSTS


# Faults


def failed(times=1, ago=0.0, **more):
    more = {"fault": "crashed", **more}
    return a_replica(phase=Phase.FAILED, failures_here=times, failed_at=NOW - ago, **more)


@cases(
    ("times", "ago", "again"),
    [(1, 0, True), (2, 9, False), (2, 10, True), (3, 29, False), (3, 30, True)],
)
def test_a_failed_one_is_tried_again_on_its_card_after_a_pause(times, ago, again):
    got = planned(HELD, failed(times, ago))
    if again:
        (start,) = got
        assert (start.verb, start.replica, start.cards, start.kv_granted_mib) == (Verb.START, 1, ("c1",), 4000)
    else:
        assert [d.refusal.code for d in got] == [Code.BACK_OFF]


@cases("replica", [failed(4), failed(want=Want.DRAINED)])
def test_it_is_given_up_and_started_on_another_card(replica):
    got = planned(a_card("c1"), a_card("c2"), HELD, replica)
    assert [(d.verb, d.reason) for d in got] == [(Verb.STOP, Reason.FAULT), (Verb.START, Reason.HOLD)]
    assert got[1].cards == ("c2",)


def test_where_another_card_would_not_help_the_service_is_down_in_the_same_plan():
    stop, told = planned(a_card("c1"), a_card("c2"), HELD, failed(1, fatal=True))
    assert (stop.verb, told.refusal.code) == (Verb.STOP, Code.LOAD_FAILED)


def test_after_a_power_cut_whom_somebody_needs_loads_first():
    unneeded = [a_service("x"), failed(id=1, service="x")]
    got = planned(a_card(), *unneeded, HELD, failed(id=2))
    assert [(d.verb, d.replica) for d in got if d.refusal is None] == [(Verb.START, 2)]


def test_a_new_try_that_does_not_fit_any_more_goes_elsewhere():
    got = planned(a_card("c1", unavailable_mib=75000), a_card("c2"), HELD, failed())
    assert [d.verb for d in got] == [Verb.STOP, Verb.START]


def test_a_new_try_waits_its_turn():
    loading = [a_service("x", demand=held()), a_replica(2, "x", phase=Phase.STARTING)]
    got = planned(a_card("c1"), HELD, failed(), *loading)
    assert [d.refusal.code for d in got] == [Code.BACK_OFF]


def failures(*cards, ago=10.0, **more):
    return tuple(a_failure(c, NOW - ago, **more) for c in cards)


def test_after_three_cards_the_service_is_down_and_says_why():
    cards = [a_card(f"c{i}") for i in range(1, 6)]
    got = refusal("s", *cards, replace(HELD, failures=failures("c1", "c2", "c3", code="bad_weights")))
    assert got.code is Code.LOAD_FAILED
    assert not got.passing
    assert (got.numbers["fault"], got.numbers["cards"], got.numbers["retry_after_s"]) == ("bad_weights", 3, 290)


def test_a_fatal_failure_takes_it_down_at_once():
    cards = [a_card("c1"), a_card("c2")]
    assert refusal("s", *cards, replace(HELD, failures=failures("c1", fatal=True))).code is Code.LOAD_FAILED


def test_after_a_while_it_is_tried_again():
    service = replace(HELD, failures=failures("c1", "c2", "c3", ago=300.0))
    assert decided(service) == [(Verb.START, "s", Reason.HOLD)]


def test_two_failed_cards_are_passed_over():
    cards = [a_card(f"c{i}") for i in (1, 2, 3)]
    (start,) = planned(*cards, replace(HELD, failures=failures("c1", "c2")))
    assert start.cards == ("c3",)


def test_one_that_is_failed_already_told_to_stop_is_left():
    assert decided(a_card("c1"), a_service(), failed(want=Want.STOPPED)) == []


def test_failed_ones_of_unknown_services_are_cleared_away():
    assert decided(a_card("c1"), failed()) == [(Verb.STOP, "s", Reason.FAULT)]
