"""Up by what waits and by P99, down after a long quiet time; capacity is learned, a scale-in remembered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.decision import Code, Reason, Verb
from scheduler.looks import Day, Minute, Scaling
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.scaling import carriers, desired
from scheduler.signals import Copies, capacity, copies, due, line, look
from scheduler.world import Phase, Pool, Tier, Want
from tests.scheduler.build import NOW, a_card, a_host, a_replica, a_service, a_world, acting, held
from tests.scheduler.cases import cases

POLICY = Policy()
MINUTE, DAY = int(NOW) // 60, int(NOW) // 86400
HOSTS = [f"h{n}" for n in range(1, 5)]


def cards(count: int = 16, **more):
    return [a_card(f"c{n:02}", host=HOSTS[n % 4], **more) for n in range(count)]


def busy(
    ready: int, *, running: int = 0, waiting: int = 0, known: Scaling | None = None, live: int | None = None, **more
):
    """A service (min 2, max 8, capacity 8) with so many ready copies on as many cards, at its second look over."""
    live = ready if live is None else live
    scaling = known or signalled(ready, live)
    service = a_service(
        "s", min_replicas=2, max_replicas=8, running=running, waiting=waiting, scaling=scaling, tier=Tier.HOT, **more
    )
    replicas = [
        a_replica(
            n + 1,
            "s",
            card=f"c{n:02}",
            phase=Phase.READY if n < ready else Phase.STARTING,
            in_flight=(running or 0) // max(1, ready),
        )
        for n in range(live)
    ]
    return [service, *replicas]


def signalled(ready: int, live: int | None = None, by: str = "queue", **more) -> Scaling:
    at = dict(over=2, over_by=by, over_at=NOW, signalled_at=NOW, looked_at=NOW, changed_at=NOW - 3600) | more
    return Scaling(ready=ready, live=ready if live is None else live, **at)


def starts(*things, policy: Policy = POLICY, **more):
    return [d for d in acting(plan(a_world(*things, **more), policy, NOW)) if d.verb is Verb.START]


# The golden example


def test_golden_morning_comes_back_in_one_step():
    """66 calls / (0.7 x 8) = 12, and 8 are allowed: three live copies become eight in one plan."""
    known = signalled(3, came_from=6, came_from_at=NOW - 10 * 3600)
    things = busy(3, running=48, waiting=18, known=known)
    assert desired(things[0], 3, POLICY, NOW) == 12
    made = starts(*cards(), *things)
    assert len(made) == 5
    assert {d.reason for d in made} == {Reason.QUEUE}
    first = made[0].numbers
    assert (first["running"], first["waiting"], first["capacity"], first["desired"], first["raised_from"]) == (
        48,
        18,
        8.0,
        12,
        3,
    )
    assert len({d.cards for d in made}) == 5
    refused = [d.refusal for d in plan(a_world(*cards(), *things), POLICY, NOW) if d.refusal]
    assert [(r.code, r.numbers["desired"]) for r in refused] == [(Code.MAX_REPLICAS, 12)]


def quiet(copies: int, running: int = 16, waiting: int = 0, minutes: int = 22, **more) -> Scaling:
    """That long with so many calls, ten looks a minute."""
    told = [
        Minute(MINUTE - ago, 10, 10 * copies, 10 * running, 10 * waiting, waiting, 0, 10, 0) for ago in range(minutes)
    ]
    at = dict(looked_at=NOW, ready=copies, live=copies, changed_at=NOW - 3600, minutes=tuple(reversed(told))) | more
    return Scaling(**at)


def drains(*things, policy: Policy = POLICY, now: float = NOW, **more):
    return [d for d in acting(plan(a_world(*things, **more), policy, now)) if d.verb is Verb.DRAIN]


def test_golden_evening_goes_down_in_one_step():
    """16 calls / 5.6 = 3."""
    things = busy(6, running=16, waiting=2, known=quiet(6))
    made = drains(*cards(), *things)
    assert len(made) == 3
    assert {d.reason for d in made} == {Reason.SURPLUS}
    assert {(d.numbers["came_from"], d.numbers["desired"]) for d in made} == {(6, 3)}
    assert all(d.not_before is None for d in made)


# Up


@cases(
    ("running", "waiting", "live", "count"),
    [(48, 18, 3, 12), (0, 17, 1, 4), (8, 17, 1, 5), (10, 17, 5, 6), (56, 0, 3, 10), (0, 0, 2, 3)],
)
def test_desired_carries_the_calls_and_is_one_more_at_least(running, waiting, live, count):
    assert desired(a_service(running=running, waiting=waiting), live, POLICY, NOW) == count


@cases(("came_from", "age_s", "count"), [(6, 3600, 6), (20, 3600, 9), (4, 3600, 6), (8, 86401, 6), (0, 3600, 6)])
def test_the_first_scale_up_goes_back_to_where_a_scale_in_came_from(came_from, age_s, count):
    """Needed are 6; half as much again at most; only within a day."""
    known = Scaling(came_from=came_from, came_from_at=NOW - age_s)
    assert desired(a_service(running=30, waiting=0, scaling=known), 2, POLICY, NOW) == count


def test_carriers_are_not_one_more_for_a_rounding_error():
    assert carriers(5.6, a_service(), POLICY, NOW) == 1
    assert carriers(16.8, a_service(), POLICY, NOW) == 3
    assert carriers(16.9, a_service(), POLICY, NOW) == 4
    assert carriers(0, a_service(), POLICY, NOW) == 0


def test_one_look_is_no_signal():
    assert (
        starts(*cards(), *busy(3, running=48, waiting=18, known=Scaling(over=1, ready=3, live=3, looked_at=NOW))) == []
    )


@cases("age_s", [0, 30])
def test_a_signal_holds_for_its_time(age_s):
    known = signalled(3, signalled_at=NOW - age_s)
    assert starts(*cards(), *busy(3, running=48, waiting=18, known=known))


@cases(
    "known",
    [
        signalled(3, signalled_at=NOW - 31),
        signalled(3, changed_at=NOW + 1),  # its copies changed after it
        signalled(2),  # and since the last look
        signalled(3, raised_to=3, raised_at=NOW),  # it was answered
    ],
)
def test_an_old_signal_raises_nothing(known):
    assert starts(*cards(), *busy(3, running=48, waiting=18, known=known)) == []


def test_p99_over_its_target_raises_by_its_own_reason():
    known = signalled(3, by="p99")
    made = starts(*cards(), *busy(3, running=12, waiting=0, known=known, p99_ms=1200.0, p99_samples=80))
    assert [(d.reason, d.numbers["p99_ms"], d.numbers["target_ms"]) for d in made] == [(Reason.P99, 1200.0, 800)]


def pending(waiting: int, ready: int = 3, **more):
    known = signalled(ready, 4, raised_to=6, raised_waiting=20, raised_at=NOW - 6, **more)
    return starts(*cards(), *busy(ready, live=4, running=24, waiting=waiting, known=known))


def test_while_a_start_is_pending_the_raise_stands():
    assert [d.numbers["desired"] for d in pending(20)] == [6, 6]
    assert all("raised_from" not in d.numbers for d in pending(29)), "nothing new to remember"


def test_and_is_raised_again_only_when_half_as_much_again_waits():
    made = pending(30)
    assert made[0].numbers["desired"] == 10  # 54 / 5.6
    assert made[0].numbers["raised_from"] == 4


def test_a_raise_that_nobody_needs_any_more_falls():
    known = Scaling(
        looked_at=NOW, ready=3, live=4, over_at=NOW - 31, raised_to=8, raised_at=NOW - 60, changed_at=NOW - 60
    )
    assert starts(*cards(), *busy(3, live=4, known=known)) == []


def test_a_raise_before_a_scale_in_is_history():
    known = Scaling(looked_at=NOW, ready=3, live=3, raised_to=8, raised_at=NOW - 20, came_from=8, came_from_at=NOW - 10)
    assert starts(*cards(), *busy(3, known=known)) == []


def test_at_its_maximum_it_says_so_and_starts_nothing():
    made = plan(a_world(*cards(), *busy(8, running=128, waiting=90)), POLICY, NOW)
    assert [(d.refusal.code, d.reason) for d in made if d.refusal] == [(Code.MAX_REPLICAS, Reason.QUEUE)]
    assert not acting(made)


def test_sleepers_wake_before_anything_starts():
    things = busy(3, running=24, waiting=18)
    asleep = [a_replica(n, "s", card=f"c{n:02}", phase=Phase.ASLEEP, residue_mib=1300) for n in (5, 6)]
    made = [d for d in acting(plan(a_world(*cards(), *things, *asleep), POLICY, NOW)) if d.reason is Reason.QUEUE]
    assert [d.verb for d in made] == [Verb.WAKE, Verb.WAKE, Verb.START, Verb.START, Verb.START]


def test_who_waits_for_its_first_copy_comes_before_further_copies():
    """One card is free: it goes to the caller of a service that has none."""
    things = busy(3, running=48, waiting=18)
    full = [a_replica(20 + n, "t", card=f"c{n:02}", in_flight=1) for n in range(3)]
    other = a_service("t", weights=70_000, kv=1000)
    cold = a_service("cold", weights=60_000, demand=held(3))
    made = starts(*cards(4), *things, other, cold, *full)
    assert [d.service for d in made][:1] == ["cold"]


def test_a_scale_out_takes_an_idle_neighbours_room_and_nobodys_in_use():
    """S05 in small: two cards, the second held by a model that nobody called for a week."""
    hot = busy(1, running=16, waiting=20)
    hot[0] = replace(hot[0], claim=replace(hot[0].claim, weights_mib=50_000), min_replicas=1, priority=60)
    world = [a_card("c00"), a_card("c01", host="h2"), *hot, a_service("idle", weights=60_000)]
    idle = a_replica(9, "idle", card="c01", last_call_at=NOW - 7 * 86400)
    made = acting(plan(a_world(*world, idle), POLICY, NOW))
    assert [(d.verb, d.reason, d.replica, d.numbers["room_for"]) for d in made] == [(Verb.DRAIN, Reason.ROOM, 9, "s")]
    assert acting(plan(a_world(*world, replace(idle, in_flight=1)), POLICY, NOW)) == []


def test_scale_outs_may_borrow_elastic_cards_and_give_them_back_first():
    lent = [a_card("e1", host="h3", pool="lent"), a_card("e2", host="h4", pool="lent")]
    pools = {"default": Pool("default"), "lent": Pool("lent", "elastic")}
    things = busy(2, running=12, waiting=20)
    full = [replace(card, unavailable_mib=81920) for card in cards(2)]
    made = starts(*full, *lent, *things, pools=pools)
    assert {d.cards for d in made} == {("e1",), ("e2",)}

    things = busy(3, running=8, waiting=0, known=quiet(3, running=8))
    there = [*things[:3], replace(things[3], cards=("e1",))]
    made = drains(*cards(2), *lent, *there, pools=pools)
    assert [d.replica for d in made] == [3], "the lent one, though all are as busy"


# Down


def down(known: Scaling, ready: int = 6, now: float = NOW, **more) -> int:
    more = dict(running=16, waiting=0) | more
    return len(drains(*cards(), *busy(ready, known=known, **more), now=now))


def test_down_only_after_the_whole_time():
    assert down(quiet(6, minutes=21)) == 3, "20 min that are over, and the one that runs"
    assert down(quiet(6, minutes=20)) == 0
    assert down(quiet(6, changed_at=NOW - 1199)) == 0
    assert down(quiet(6, changed_at=NOW - 1200)) == 3


def spoiled(ago: int, **fields) -> Scaling:
    known = quiet(6)
    minutes = [m._replace(**fields) if m.number == MINUTE - ago else m for m in known.minutes]
    return replace(known, minutes=tuple(minutes))


@cases("ago", [0, 1, 20])
@cases("fields", [{"most_waiting": 3}, {"unknown": 1}, {"running": 400}])
def test_one_minute_that_was_not_quiet_keeps_all(ago, fields):
    assert down(spoiled(ago, **fields)) == 0


@cases("fields", [{"most_waiting": 3}, {"unknown": 1}])
def test_what_was_before_does_not_count(fields):
    assert down(spoiled(21, **fields)) == 3


def test_a_minute_nobody_looked_at_is_unknown():
    known = quiet(6)
    assert down(replace(known, minutes=tuple(m for m in known.minutes if m.number != MINUTE - 7))) == 0


@cases("now", [{"running": None}, {"waiting": 3}, {"waiting": None}, {"p99_ms": 900.0}, {"p99_ms": 801.0}])
def test_busy_or_unknown_now_keeps_all(now):
    assert down(quiet(6), **now) == 0


@cases("p99_ms", [None, 300.0])
def test_a_p99_that_is_well_or_has_too_few_calls_is_no_obstacle(p99_ms):
    assert down(quiet(6), p99_ms=p99_ms) == 3


@cases(("running", "left"), [(0, 2), (6, 2), (11, 2), (12, 3), (22, 4), (28, 5), (29, 6)])
def test_the_rest_carries_the_load_and_never_less_than_the_minimum(running, left):
    assert 6 - down(quiet(6, running=running), running=running) == left


def test_the_peak_of_the_time_counts_not_the_load_of_now():
    known = quiet(6)
    minutes = [m._replace(running=10 * 27) if m.number == MINUTE - 15 else m for m in known.minutes]
    assert down(replace(known, minutes=tuple(minutes)), running=2) == 1


def test_those_with_nothing_in_flight_go_and_a_long_stream_stays():
    things = busy(6, running=3, known=quiet(6, running=3))
    calls = {1: 0, 2: 1, 3: 0, 4: 2, 5: 0, 6: 0}
    things = [things[0], *(replace(r, in_flight=calls[r.id]) for r in things[1:])]
    assert sorted(d.replica for d in drains(*cards(), *things)) == [1, 3, 5, 6]


def test_the_least_busy_go_when_none_is_free():
    things = busy(4, running=10, known=quiet(4, running=10))
    things = [things[0], *(replace(r, in_flight=5 - r.id) for r in things[1:])]
    assert sorted(d.replica for d in drains(*cards(), *things)) == [3, 4]


@cases("keeps", [{"in_flight": None}, {"left_alone_until": NOW + 1}, {"external": True}, {"drain_at": NOW + 100}])
def test_some_stay_out_of_it(keeps):
    things = busy(6, running=0, known=quiet(6, running=0))
    things = [things[0], *(replace(r, **keeps) if r.id < 4 else r for r in things[1:])]
    assert all(d.replica >= 4 for d in drains(*cards(), *things) if d.reason is Reason.SURPLUS)


def test_a_whitelisted_service_keeps_all():
    assert down(quiet(6), whitelisted_until=NOW + 60) == 0
    assert down(quiet(6), whitelisted_until=NOW - 60) == 3


def test_two_hosts_stay_two():
    """Five copies on one host, one on another: that one stays, however idle."""
    there = [a_card(f"c{n:02}", host="h1" if n < 5 else "h2") for n in range(6)]
    things = busy(6, running=0, known=quiet(6, running=0))
    made = drains(*there, *things)
    assert len(made) == 4
    assert 6 not in {d.replica for d in made}


def test_copies_that_drain_are_taken_back_when_calls_come_again():
    things = busy(3, running=40, waiting=20, known=signalled(3))
    draining = [a_replica(n, "s", card=f"c{n:02}", phase=Phase.DRAINING, reason="surplus", in_flight=2) for n in (5, 6)]
    made = acting(plan(a_world(*cards(), *things, *draining), POLICY, NOW))
    assert [d.replica for d in made if d.verb is Verb.WAKE] == [5, 6]


# Looks


def test_lines():
    calm = dict(running=6, waiting=0)
    assert line(a_service(**calm), 2, POLICY) is None
    assert line(a_service(running=0, waiting=16), 2, POLICY) is None
    assert line(a_service(running=0, waiting=17), 2, POLICY) is Reason.QUEUE
    assert line(a_service(**calm, p99_ms=800.0), 2, POLICY) is None
    assert line(a_service(**calm, p99_ms=801.0), 2, POLICY) is Reason.P99
    assert line(a_service(**calm, p99_ms=801.0, p99_target_ms=900), 2, POLICY) is None
    assert line(a_service(**calm, p99_ms=901.0, p99_target_ms=900), 2, POLICY) is Reason.P99
    assert line(a_service(running=2, waiting=0, p99_ms=9000.0), 2, POLICY) is None, "a call each: more would not help"


def test_only_services_that_may_have_more_than_one_copy_are_looked_at():
    assert not due(a_service(max_replicas=1), POLICY, NOW)
    assert due(a_service(max_replicas=2), POLICY, NOW)
    assert not due(a_service(max_replicas=2, scaling=Scaling(looked_at=NOW - 4)), POLICY, NOW)
    assert due(a_service(max_replicas=2, scaling=Scaling(looked_at=NOW - 5)), POLICY, NOW)


def test_copies_on_their_way_are_live_and_leaving_ones_are_not():
    seen = [
        a_replica(1),
        a_replica(2, phase=Phase.STARTING),
        a_replica(3, phase=Phase.DRAINING),
        a_replica(4, phase=Phase.ASLEEP),
        a_replica(5, phase=Phase.STARTING, want=Want.STOPPED),
        a_replica(6, phase=Phase.FAILED),
    ]
    assert copies(seen) == Copies(1, 2)


def looked(*states, start: Scaling | None = None, ready: int = 2, every: float = 5.0, now: float = NOW) -> Scaling:
    """A look at each state of the service in turn."""
    service = a_service("s", max_replicas=8, scaling=start or Scaling(looked_at=now, ready=ready, live=ready))
    for state in states:
        now += every
        seen = Copies(*state.pop("copies", (ready, ready)))
        service = replace(service, **state)
        service = replace(service, scaling=look(service, seen, POLICY, now))
    return service.scaling


OVER, CALM = {"running": 32, "waiting": 20}, {"running": 4, "waiting": 0}


def test_two_looks_in_a_row_signal():
    assert looked(OVER.copy()).signalled_at is None
    assert looked(OVER.copy(), OVER.copy()).signalled_at == NOW + 10
    assert looked(OVER.copy(), CALM.copy(), OVER.copy()).signalled_at is None
    assert looked(OVER.copy(), OVER.copy(), CALM.copy()).over == 0


def test_a_change_of_copies_begins_the_count_anew():
    known = looked(OVER.copy(), {**OVER, "copies": (2, 3)})
    assert (known.over, known.signalled_at, known.changed_at) == (1, None, NOW + 10)
    known = looked(OVER.copy(), OVER.copy(), {**OVER, "copies": (3, 3)}, start=Scaling(looked_at=NOW, ready=2, live=2))
    assert (known.over, known.changed_at) == (1, NOW + 15)


def test_a_look_after_a_long_silence_is_a_first_one():
    assert looked(OVER.copy(), OVER.copy(), every=61).over == 1


def test_minutes_are_sums_of_their_looks():
    at = MINUTE * 60.0
    known = looked({"running": 4, "waiting": 1}, {"running": 6, "waiting": 3}, CALM.copy(), now=at)
    assert known.minutes == (Minute(MINUTE, 3, 6, 14, 4, 3, 0, 0, 0),)
    known = looked(*[CALM.copy() for _ in range(400)], now=at)
    assert len(known.minutes) == 22, "the twenty that count, the one that runs, one to spare"


@cases("state", [{"running": None, "waiting": 0}, {"running": 4, "waiting": None}])
def test_a_look_that_cannot_count_is_an_unknown_one(state):
    assert looked(state).minutes[-1].unknown == 1


def a_minute_of(running: int, ready: int = 2, days: tuple[Day, ...] = (), **more) -> Scaling:
    """A whole minute of it, and the first look of the next."""
    at = MINUTE * 60.0 - 0.5
    start = Scaling(looked_at=at, ready=ready, live=ready, days=days)
    states = [dict(running=running, waiting=0, **more) for _ in range(13)]
    return looked(*states, start=start, ready=ready, now=at)


def test_a_minute_within_the_target_teaches_what_a_copy_carries():
    assert a_minute_of(24, p99_ms=700.0).days == (Day(DAY, 12.0),)
    assert a_minute_of(24, p99_ms=700.0, days=(Day(DAY, 13.0),)).days == (Day(DAY, 13.0),)


def test_a_minute_over_the_target_teaches_what_is_too_much():
    assert a_minute_of(12, p99_ms=900.0).days == (Day(DAY, 0.0, 6.0),)
    assert a_minute_of(12, p99_ms=900.0, days=(Day(DAY, 5.0, 4.0),)).days == (Day(DAY, 5.0, 4.0),)


@cases("unknown", [{"p99_ms": None}, {"p99_ms": 700.0, "ready": 0}])
def test_an_unknown_minute_teaches_nothing(unknown):
    assert a_minute_of(24, **unknown).days == ()


def test_days_are_forgotten_after_a_week():
    old = (Day(DAY - 7, 20.0), Day(DAY - 6, 10.0))
    assert a_minute_of(8, p99_ms=None, days=old).days == (Day(DAY - 6, 10.0),)


@cases(
    ("days", "expected"),
    [
        ((), 8.0),
        ((Day(DAY, 14.0),), 14.0),
        ((Day(DAY - 1, 14.0),), 13.3),
        ((Day(DAY - 2, 14.0), Day(DAY, 12.0)), 12.635),
        ((Day(DAY, 5.0),), 8.0),  # never below the first value ...
        ((Day(DAY, 5.0, 9.0),), 8.0),  # (over the target at more than it says nothing)
        ((Day(DAY, 5.0, 7.0),), 5.0),  # ... until a minute at less was over the target
        ((Day(DAY, 0.0, 6.0),), 6.0),
        ((Day(DAY, 0.0, 0.2),), 1.0),
    ],
)
def test_capacity_is_the_best_of_the_week(days, expected):
    service = a_service(max_num_seqs=16, scaling=Scaling(days=days))
    assert capacity(service, POLICY, NOW) == pytest.approx(expected)


def test_capacity_of_an_unknown_service_is_half_of_what_its_engine_takes():
    assert capacity(a_service(max_num_seqs=32), POLICY, NOW) == 16
    assert capacity(a_service(max_num_seqs=1), POLICY, NOW) == 1


def test_a_frozen_farm_scales_nothing():
    assert acting(plan(a_world(*cards(), *busy(3, running=48, waiting=18), frozen=True), POLICY, NOW)) == []


def test_a_host_that_is_silent_gives_nobody_away():
    things = busy(6, running=0, known=quiet(6, running=0))
    dark = [a_host(name, seen_at=NOW - 20) for name in HOSTS]
    assert drains(*cards(), *things, *dark) == []
