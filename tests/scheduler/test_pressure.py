"""Who goes from a card under pressure, what happens to it, and what is said when nobody may go."""

from __future__ import annotations

from dataclasses import replace

from scheduler.decision import Code, Reason, Verb
from scheduler.draft import Draft
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.pressure import recent_calls
from scheduler.wishes import evicted
from scheduler.world import Act, Demand, Eviction, Order, Phase, Profile, Tier, Want
from tests.scheduler.build import NOW, POLICY, a_card, a_failure, a_host, a_replica, a_service, a_world, held
from tests.scheduler.cases import cases

ALERT = (Verb.DRAIN, Reason.PRESSURE)
LOW = {"profile": Profile.LOWFREQ}


def gb(value):
    return round(value * 1024)


def service(name, fixed, kv, **more):
    """Fixed and KV in GB; its overhead and headroom are within the fixed part."""
    more.setdefault("profile", Profile.LOWFREQ)
    return a_service(name, gb(fixed) - 1000, gb(kv), 400, 600, **more)


def seat(id, name, measured, granted, card="c1", phase=Phase.READY, **more):
    more.setdefault("loaded_at", NOW - 10)  # too short for a notice of idleness
    return a_replica(id, name, card, phase, measured_mib=gb(measured), kv_granted_mib=gb(granted), **more)


def pressed(used, id="c1", **more):
    """Used in GB, reserve included; two samples over the line already."""
    return a_card(id, reserved=614, unavailable_mib=gb(used), pressed_samples=2, **more)


def planned(*things, now=NOW, policy=POLICY, **more):
    return plan(a_world(*things, **more), policy, now)


def evictions(decisions):
    return [(d.verb, d.service) for d in decisions if d.reason is Reason.PRESSURE and d.refusal is None]


def alerts(decisions):
    return [d for d in decisions if d.refusal is not None and d.refusal.code is Code.NO_VICTIM]


# The golden fixtures

A = service("a", 16.2, 40, profile=Profile.ONLINE)


def elastic():
    b = service("b", 7.0, 6, demand=Demand(last_call_at=NOW - 60))
    return [
        pressed(74.8),
        a_card("c2", "h2"),
        *(A, b, service("c", 4.2, 4)),
        seat(1, "a", 54.6, 38.4),
        seat(2, "b", 12.5, 6.0, in_flight=3),
        seat(3, "c", 7.1, 4.0),
    ]


def static():
    return [
        pressed(74.8),
        a_card("c2", "h2"),
        *(A, service("b", 7.0, 6), service("c", 4.2, 4)),
        seat(1, "a", 50.9, 34.7),
        seat(2, "b", 16.2, 6.0),
        seat(3, "c", 7.1, 4.0),
    ]


def test_elastic_the_one_that_nobody_called_goes_and_67_7_are_left():
    (drain,) = planned(*elastic())
    assert (drain.verb, drain.service, drain.reason, drain.not_before) == (Verb.DRAIN, "c", Reason.PRESSURE, None)
    assert (drain.numbers["frees_mib"], drain.numbers["calls"], drain.numbers["cause"]) == (gb(7.1), 0, "claims")
    left = gb(74.8) - drain.numbers["frees_mib"]
    assert round(left / 1024, 1) == 67.7
    assert round(left * 100 / 81920, 1) == 84.6


def test_static_the_one_above_its_claim_goes_and_58_6_are_left():
    (drain,) = planned(*static())
    assert (drain.verb, drain.service) == (Verb.DRAIN, "b")
    assert (drain.numbers["used_pct"], drain.numbers["over_mib"], drain.numbers["cause"]) == (93.5, gb(3.2), "drift")
    left = gb(74.8) - drain.numbers["frees_mib"]
    assert round(left / 1024, 1) == 58.6
    assert round(left * 100 / 81920, 1) == 73.2  # 73.25: the fixture's 73.3


# The order

FULL = [pressed(75), A, seat(9, "a", 50, 34)]


def choose(*others, spare=(), **more):
    return evictions(planned(*FULL, *others, *spare, **more))


def test_lower_priority_goes_first():
    got = choose(
        service("x", 7, 6, priority=60),
        service("y", 7, 6, priority=20),
        seat(1, "x", 12, 6),
        seat(2, "y", 12, 6, in_flight=5),
    )
    assert got == [(Verb.DRAIN, "y")]


def test_of_equals_the_less_called_goes_first():
    got = choose(service("x", 7, 6), service("y", 7, 6), seat(1, "x", 12, 6, in_flight=2), seat(2, "y", 12, 6))
    assert got == [(Verb.DRAIN, "y")]


def test_of_those_the_smallest_that_is_enough():
    sizes = {"x": 3, "y": 9, "z": 12}
    services = [service(n, s, 4) for n, s in sizes.items()]
    got = choose(*services, *(seat(i, n, s, 4) for i, (n, s) in enumerate(sizes.items(), 1)))
    assert got == [(Verb.DRAIN, "y")]


def test_where_none_is_enough_the_largest_goes_and_then_the_next():
    sizes = {"x": 3, "y": 4.5, "z": 5}
    services = [service(n, s, 4) for n, s in sizes.items()]
    got = choose(*services, *(seat(i, n, s, 4) for i, (n, s) in enumerate(sizes.items(), 1)))
    assert got == [(Verb.DRAIN, "z"), (Verb.DRAIN, "x")]


def test_who_proves_unnecessary_stays():
    small, large = service("x", 3, 1, priority=10), service("y", 8, 4, priority=50)
    assert choose(small, large, seat(1, "x", 3, 1), seat(2, "y", 11, 4)) == [(Verb.DRAIN, "y")]


def test_the_one_most_above_its_claim_goes_before_all_priorities():
    got = choose(
        service("x", 4, 2, priority=90),
        service("y", 4, 2, priority=90),
        service("z", 7, 2, priority=1),
        *(seat(1, "x", 6.1, 2), seat(2, "y", 9, 2), seat(3, "z", 9, 2)),
    )
    assert got == [(Verb.DRAIN, "y")]


def test_an_online_one_above_its_claim_is_not_touched():
    grower = a_service("g", gb(6), gb(2), profile=Profile.ONLINE)
    got = choose(grower, service("z", 7, 2), seat(1, "g", 14, 2), seat(2, "z", 9, 2))
    assert got == [(Verb.DRAIN, "z")]


def test_a_load_is_called_off_and_a_sleeper_stopped():
    got = choose(
        service("x", 3, 1, tier=Tier.WARM),
        service("y", 6, 4),
        seat(1, "x", 1.3, 1, phase=Phase.ASLEEP),
        seat(2, "y", 8, 4, phase=Phase.STARTING),
    )
    assert got == [(Verb.STOP, "y")]
    got = choose(service("x", 3, 1, tier=Tier.WARM), seat(1, "x", 1.3, 1, phase=Phase.ASLEEP))
    assert got == [(Verb.STOP, "x")]


@cases("unknown", [{"external": True}, {"phase": Phase.FAILED}])
def test_imported_and_failed_ones_are_no_victims(unknown):
    decisions = planned(*FULL, service("x", 7, 6), seat(1, "x", 13, 6, **unknown))
    assert evictions(decisions) == []
    assert len(alerts(decisions)) == 1


def test_calls_of_late_are_those_in_flight_or_one():
    x = service("x", 7, 6, demand=Demand(last_call_at=NOW - 299))
    draft = Draft(a_world(x, service("y", 7, 6)), POLICY, NOW)
    assert recent_calls(draft, seat(1, "x", 7, 6)) == 1
    assert recent_calls(draft, seat(1, "x", 7, 6, in_flight=4)) == 4
    assert recent_calls(draft, seat(1, "y", 7, 6, in_flight=None)) == 1
    assert recent_calls(draft, seat(1, "y", 7, 6, last_call_at=NOW - 300)) == 0


# Who is kept

KEPT = {"whitelisted_until": NOW + 999}


def test_a_whitelisted_one_goes_last_and_only_where_another_card_takes_it_now():
    x, z = service("x", 7, 6, priority=0, **KEPT), service("z", 7, 6, priority=90)
    both = [x, z, seat(1, "x", 12, 6), seat(2, "z", 12, 6, in_flight=9)]
    assert choose(*both, spare=[a_card("c2")]) == [(Verb.DRAIN, "z")]
    alone = [x, seat(1, "x", 12, 6)]
    assert choose(*alone, spare=[a_card("c2")]) == [(Verb.DRAIN, "x")]
    assert choose(*alone) == []
    assert len(alerts(planned(*FULL, *alone))) == 1


def test_a_whitelisted_one_stays_while_the_other_card_loads():
    x, y = service("x", 7, 6, **KEPT), service("y", 7, 6)
    loading = [a_card("c2"), y, a_replica(5, "y", "c2", Phase.STARTING)]
    assert choose(x, seat(1, "x", 12, 6), spare=loading) == []


@cases(("room_gb", "moved"), [(73, 2), (11, 2), (8, 1), (4, 0)])
def test_two_whitelisted_ones_do_not_count_on_the_same_room(room_gb, moved):
    """Each claims 5 GB of the room that the other card has."""
    x, y = service("x", 4, 1, **KEPT), service("y", 4, 1, **KEPT)
    seats = [seat(1, "x", 5, 1), seat(2, "y", 5, 1)]
    spare = a_card("c2", unavailable_mib=81920 - gb(room_gb) - 6554)
    assert len(choose(x, y, *seats, spare=[spare])) == moved


def test_a_whitelisted_one_does_not_count_on_the_room_of_who_must_be_rebuilt():
    x, y = service("x", 7, 6, **KEPT), service("y", 7, 6)
    spare = a_card("c2", unavailable_mib=81920 - gb(20) - 6554)
    moved = [x, y, seat(1, "x", 12, 6), spare]
    for is_open, count in ((False, 1), (True, 0)):
        went = Eviction("y", "c9", NOW - 5, open=is_open)
        assert len(evictions(planned(*FULL, *moved, evictions=(went,)))) == count


def test_one_of_two_on_two_hosts_goes_only_where_the_second_host_stays():
    x = service("x", 7, 6, min_replicas=2, max_replicas=2)
    pair = [x, seat(1, "x", 12, 6), seat(2, "x", 12, 6, card="c2"), a_card("c2", "h2")]
    assert choose(*pair) == []
    assert choose(*pair, spare=[a_card("c3", "h3")]) == [(Verb.DRAIN, "x")]


# What is under way counts


@cases(
    "going",
    [
        {"phase": Phase.DRAINING, "reason": "pressure"},
        {"phase": Phase.DRAINING, "reason": "idle", "quiet": True},
        {"phase": Phase.DRAINING, "want": Want.STOPPED, "reason": "room"},
        {"phase": Phase.DRAINING, "want": Want.ASLEEP, "reason": "idle"},
        {"phase": Phase.STARTING, "want": Want.STOPPED, "reason": "pressure"},
    ],
)
def test_nobody_else_goes_while_enough_is_leaving(going):
    x, y = service("x", 7, 6, tier=Tier.WARM), service("y", 7, 6)
    decisions = planned(*FULL, x, y, seat(1, "x", 12, 6, want_since=NOW - 1, **going), seat(2, "y", 12, 6))
    assert "y" not in [d.service for d in decisions]
    assert alerts(decisions) == []


def test_memory_on_its_way_back_counts():
    card = replace(pressed(75), releasing_mib=gb(8))
    assert evictions(planned(card, A, seat(9, "a", 50, 34), service("y", 7, 6), seat(2, "y", 12, 6))) == []


def test_a_drain_for_our_convenience_is_cut_when_the_short_bound_is_over():
    x = service("x", 7, 6, generation_s=100)
    one = {"phase": Phase.DRAINING, "reason": "idle", "in_flight": 1}
    early = planned(*FULL, x, seat(1, "x", 12, 6, want_since=NOW - 19, **one))
    assert evictions(early) == []
    assert alerts(early) == []
    (late,) = planned(*FULL, x, seat(1, "x", 12, 6, want_since=NOW - 20, **one))
    assert (late.verb, late.reason, late.force) == (Verb.STOP, Reason.PRESSURE, True)


def test_a_victims_calls_have_the_short_bound():
    x = service("x", 7, 6, generation_s=100)
    one = {"phase": Phase.DRAINING, "reason": "pressure", "in_flight": 1}
    assert planned(*FULL, x, seat(1, "x", 12, 6, want_since=NOW - 19, **one)) == []
    (cut,) = planned(*FULL, x, seat(1, "x", 12, 6, want_since=NOW - 20, **one))
    assert (cut.verb, cut.force, cut.numbers["lasted_s"]) == (Verb.STOP, True, 20)


def test_a_victim_that_is_quiet_stops_at_once_beside_a_start_and_does_not_sleep():
    x, y = service("x", 7, 6, tier=Tier.WARM), a_service("y", demand=held())
    loading = [y, a_replica(5, "y", phase=Phase.STARTING)]
    one = seat(1, "x", 12, 6, phase=Phase.DRAINING, reason="pressure", quiet=True)
    (stop,) = planned(*FULL, x, one, *loading)
    assert (stop.verb, stop.service, stop.reason, stop.force) == (Verb.STOP, "x", Reason.PRESSURE, False)


# Nobody comes


@cases("state", [{}, {"phase": Phase.ASLEEP}])
def test_nothing_starts_or_wakes_on_a_card_under_pressure(state):
    caller = a_service("n", 500, 100, 100, profile=Profile.ONLINE, tier=Tier.WARM, demand=held())
    sleeper = [a_replica(5, "n", kv_granted_mib=100, residue_mib=900, **state)] if state else []
    refused = [d for d in planned(*FULL, caller, *sleeper) if d.service == "n"]
    assert [d.refusal.code for d in refused] == [Code.UNDER_PRESSURE]
    started = [d for d in planned(*FULL, caller, *sleeper, a_card("c2")) if d.service == "n"]
    assert [(d.verb, d.cards) for d in started if d.verb is Verb.START] == [(Verb.START, ("c2",))]


def test_an_order_to_wake_there_is_refused():
    x = a_service("n", 500, 100, 100, tier=Tier.WARM, profile=Profile.ONLINE)
    order = Order(1, Act.WAKE, "n", NOW + 60, replica=5)
    told = [d for d in planned(*FULL, x, a_replica(5, "n", phase=Phase.ASLEEP), orders=(order,)) if d.order]
    assert [d.refusal.code for d in told] == [Code.UNDER_PRESSURE]


def test_a_failed_start_is_not_tried_again_there():
    x = a_service("n", 500, 100, 100, tier=Tier.HOT, failures=(a_failure(),))
    failed = a_replica(5, "n", phase=Phase.FAILED, failures_here=1, failed_at=NOW - 99)
    decisions = planned(*FULL, x, failed, a_card("c2"))
    assert [(d.verb, d.cards) for d in decisions if d.service == "n"] == [(Verb.STOP, ()), (Verb.START, ("c2",))]


# What is rebuilt

EVICTED = Eviction("x", "c1", NOW - 3, open=True)
GOING = seat(1, "x", 12, 6, phase=Phase.DRAINING, reason="pressure", want_since=NOW - 3, in_flight=1)


def test_the_plan_that_evicts_does_not_rebuild_yet_not_even_for_a_minimum():
    """Where the pool is only advised the eviction never happens, and a copy a tick would be started elsewhere."""
    x = service("x", 7, 6, min_replicas=1)
    assert evictions(planned(*FULL, x, seat(1, "x", 12, 6), a_card("c2"))) == [(Verb.DRAIN, "x")]
    assert len(planned(*FULL, x, seat(1, "x", 12, 6), a_card("c2"))) == 1


def test_the_next_plan_rebuilds_elsewhere_while_the_victim_still_drains():
    x = service("x", 7, 6)
    (start,) = planned(*FULL, x, GOING, a_card("c2"), evictions=(EVICTED,))
    assert (start.verb, start.reason, start.cards) == (Verb.START, Reason.REBUILD, ("c2",))


def test_it_is_rebuilt_when_it_is_gone_already_and_not_where_it_came_from():
    x = service("x", 7, 6)
    later = [a_card("c1"), a_card("c2", healthy=False), x]
    (refused,) = planned(*later, evictions=(EVICTED,))
    assert refused.refusal.code is Code.UNDER_PRESSURE
    assert refused.refusal.numbers["retry_after_s"] == POLICY.evicted_apart_s - 3
    long_ago = replace(EVICTED, at=NOW - POLICY.evicted_apart_s)
    (start,) = planned(*later, evictions=(long_ago,))
    assert start.cards == ("c1",)


def test_a_rebuild_never_asks_others_to_go():
    x, y = service("x", 7, 6), service("y", 60, 6, profile=Profile.BATCH)
    (refused,) = planned(a_card("c1"), a_card("c2"), x, y, seat(5, "y", 66, 6, card="c2"), evictions=(EVICTED,))
    assert (refused.verb, refused.refusal.code) == (Verb.START, Code.SHORT_OF_MEMORY)


@cases(
    ("evicted_ago", "copies", "count"),
    [
        ([3], [], 1),
        ([3, 2], [], 2),
        ([3, 2], [Phase.READY], 3),
        ([3, 2], [Phase.STARTING], 2),
        ([3, 2], [Phase.STARTING, Phase.STARTING], 2),
        ([3, 2, 1], [Phase.READY], 3),  # never more than its maximum
        ([1801], [], 0),
        ([], [Phase.READY], 0),
    ],
)
def test_as_many_are_rebuilt_as_went(evicted_ago, copies, count):
    x = service("x", 7, 6, max_replicas=3)
    there = [a_replica(i, "x", f"c{i}", phase) for i, phase in enumerate(copies, 1)]
    cards = [a_card(f"c{i}") for i in range(1, 4)]
    went = tuple(Eviction("x", "c9", NOW - ago, open=True) for ago in evicted_ago)
    assert evicted(Draft(a_world(*cards, x, *there, evictions=went), POLICY, NOW), x) == count


def test_what_is_settled_is_not_rebuilt():
    x = service("x", 7, 6)
    assert planned(a_card("c2"), x, evictions=(replace(EVICTED, open=False),)) == []


# When nobody may go


def test_an_alert_says_the_card_the_figures_and_that_others_are_the_cause():
    card = pressed(75)
    (alert,) = planned(card, A, seat(9, "a", 40, 24))
    assert (alert.verb, alert.reason, alert.service, alert.cards) == (*ALERT, "", ("c1",))
    assert alert.refuses_wish is None
    numbers = alert.refusal.numbers
    assert (numbers["cause"], numbers["external_mib"]) == ("external", gb(75) - 614 - gb(40))
    assert numbers["short_mib"] == gb(75) - (81920 * 85 // 100) + 1


def test_a_card_that_others_fill_without_us_is_no_alert_and_takes_nobody():
    caller = a_service("n", 500, 100, 100, demand=held())
    (refused,) = planned(pressed(79), caller)
    assert (refused.verb, refused.refusal.code) == (Verb.START, Code.UNDER_PRESSURE)


def test_what_little_can_go_goes_and_the_rest_is_said():
    decisions = planned(*FULL, service("x", 2, 1), seat(1, "x", 3, 1))
    assert evictions(decisions) == [(Verb.DRAIN, "x")]
    (alert,) = alerts(decisions)
    assert alert.refusal.numbers["evicted"] == 1
    assert alert.refusal.numbers["short_mib"] == gb(75) - gb(3) - 69632 + 1


def test_each_card_has_its_own():
    cards = [pressed(75, f"c{i}") for i in (1, 2)]
    decisions = planned(*cards, A, seat(8, "a", 50, 34), seat(9, "a", 50, 34, card="c2"))
    assert [d.cards for d in alerts(decisions)] == [("c1",), ("c2",)]


@cases("quiet", [{"unavailable_mib": None}, {"pressed_samples": 1}])
def test_without_two_samples_or_a_measurement_nothing_happens(quiet):
    card = replace(pressed(75), **quiet)
    assert planned(card, A, seat(9, "a", 50, 34), service("x", 7, 6), seat(1, "x", 12, 6)) == []


def test_a_silent_host_and_a_frozen_farm_are_left_alone():
    things = [*FULL, service("x", 7, 6), seat(1, "x", 12, 6)]
    assert planned(*things, a_host(seen_at=NOW - 30)) == []
    assert planned(*things, frozen=True) == []


def test_nearly_full_is_acted_on_at_the_first_sample():
    card = replace(pressed(77), pressed_samples=0)
    got = planned(card, A, seat(9, "a", 50, 34), service("x", 7, 6), seat(1, "x", 12, 6))
    assert evictions(got) == [(Verb.DRAIN, "x")]


def test_the_relief_line_is_the_policys():
    low = Policy(relief_pct=50)
    got = planned(
        *FULL, *(service(n, 7, 6) for n in "xyz"), *(seat(i, n, 10, 6) for i, n in enumerate("xyz", 1)), policy=low
    )
    assert len(evictions(got)) == 3
