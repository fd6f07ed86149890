"""Who is kept, who gets a notice, what a call during it does, and what happens when time is up."""

from __future__ import annotations

from scheduler.decision import Reason, Verb
from scheduler.kept import why_kept
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.reclaim import idle_limit_s
from scheduler.world import Demand, Phase, Pool, Tier, Want
from tests.scheduler.build import NOW, POLICY, a_card, a_draft, a_host, a_replica, a_service, a_world, held
from tests.scheduler.cases import cases

#: Cards are mostly full in these tests, so that being little used is no reason to keep.
BUSY = a_card(total=24576)


def decided(*things, policy: Policy = POLICY, **more):
    """(verb, reason, replica) of what is done."""
    decisions = plan(a_world(*things, **more), policy, NOW)
    return [(d.verb, d.reason, d.replica) for d in decisions if d.refusal is None]


def kept(service, *things, for_room=False, **more):
    on = [t for t in things if not isinstance(t, Pool)]
    draft = a_draft(service, a_service("neighbour"), a_replica(), *(on or [BUSY]), **more)
    return why_kept(draft, draft.replicas[1], for_room=for_room)


NOTICE = [(Verb.DRAIN, Reason.IDLE, 1)]


@cases(
    ("service", "why"),
    [
        (a_service(), None),
        (a_service(min_replicas=1), "minimum"),
        (a_service(tier=Tier.HOT), "hot"),
        (a_service(tier=Tier.WARM), None),
        (a_service(whitelisted_until=NOW + 1), "whitelisted"),
        (a_service(whitelisted_until=NOW), None),
        (a_service(first_token_s=0.5), "first_token"),
        (a_service(first_token_s=1.0), None),
        (a_service(weights=1023, overhead=9000), "small"),
        (a_service(weights=1024, overhead=9000), None),
    ],
)
def test_who_is_always_kept(service, why):
    assert kept(service) == why


def test_a_resident_pool_keeps():
    assert kept(a_service(), pools={"default": Pool("default", "resident")}) == "resident"


def test_the_only_service_of_a_pool_is_kept():
    assert kept(a_service(pools=frozenset({"default"}))) is None
    draft = a_draft(BUSY, a_service(), a_service("x", pools=frozenset({"elsewhere"})), a_replica())
    assert why_kept(draft, draft.replicas[1]) == "alone"


@cases(
    ("total", "refused_ago", "why"),
    [(81920, None, "half_empty"), (81920, 3599, None), (81920, 3600, "half_empty"), (27200, None, None)],
)
def test_a_little_used_card_keeps_unless_room_was_scarce(total, refused_ago, why):
    pool = Pool("default", refused_at=None if refused_ago is None else NOW - refused_ago)
    assert kept(a_service(), a_card(total=total), pools={"default": pool}) == why


def test_a_little_used_card_is_no_reason_when_a_caller_waits():
    assert kept(a_service(), a_card(), for_room=True) is None


def test_of_more_than_the_minimum_the_others_may_go():
    service = a_service(min_replicas=1, max_replicas=2)
    two = [a_card("c1", total=24576), a_card("c2", total=24576), a_replica(1), a_replica(2, card="c2")]
    draft = a_draft(service, a_service("x"), *two)
    assert why_kept(draft, draft.replicas[1]) is None


def test_idle_ones_of_a_minimum_do_not_go_all_at_once():
    service = a_service(min_replicas=1, max_replicas=2)
    two = [a_card("c1", total=24576), a_card("c2", total=24576), a_replica(1), a_replica(2, card="c2")]
    assert decided(service, a_service("x"), *two) == NOTICE


@cases(("idle", "noticed"), [(1199, False), (1200, True)])
def test_idle_time_is_since_the_last_call(idle, noticed):
    got = decided(BUSY, a_service(), a_service("x"), a_replica(last_call_at=NOW - idle))
    assert got == (NOTICE if noticed else [])


@cases(("idle", "noticed"), [(1199, False), (1200, True)])
def test_without_a_call_it_is_since_it_was_loaded(idle, noticed):
    got = decided(BUSY, a_service(), a_service("x"), a_replica(loaded_at=NOW - idle))
    assert got == (NOTICE if noticed else [])


def test_a_notice_says_when_and_why():
    (notice,) = plan(a_world(BUSY, a_service(), a_service("x"), a_replica(last_call_at=NOW - 1500)), POLICY, NOW)
    assert notice.not_before == NOW + 300
    assert notice.numbers["idle_s"] == 1500


@cases("in_flight", [1, None])
def test_what_is_or_may_be_in_use_is_not_idle(in_flight):
    assert decided(BUSY, a_service(), a_service("x"), a_replica(in_flight=in_flight)) == []


def test_a_minimum_stay_after_loading():
    policy = Policy(idle_unload_s=60)
    world = [BUSY, a_service(), a_service("x")]
    assert decided(*world, a_replica(loaded_at=NOW - 299), policy=policy) == []
    assert decided(*world, a_replica(loaded_at=NOW - 300), policy=policy) == NOTICE


@cases(
    ("tier", "service_can", "replica_can", "limit"),
    [
        (Tier.COLD, True, True, 1200),
        (Tier.COLD, False, False, 1200),
        (Tier.WARM, True, True, 1200),
        (Tier.WARM, False, True, 2400),
        (Tier.WARM, True, False, 2400),
    ],
)
def test_what_ought_to_sleep_and_cannot_stays_longer(tier, service_can, replica_can, limit):
    service = a_service(tier=tier, can_sleep=service_can)
    assert idle_limit_s(POLICY, a_replica(can_sleep=replica_can), service) == limit


@cases(
    "fields",
    [{"external": True}, {"left_alone_until": NOW + 1}, {"drain_at": NOW + 99, "reason": "idle"}],
)
def test_some_are_not_asked(fields):
    assert decided(BUSY, a_service(), a_service("x"), a_replica(**fields)) == []


def test_those_on_a_silent_host_are_not_asked():
    assert decided(BUSY, a_host(seen_at=NOW - 20), a_service(), a_service("x"), a_replica()) == []


def test_two_hosts_stay_two():
    service = a_service(min_replicas=2, max_replicas=3)
    cards = [a_card("c1", total=24576), a_card("c2", total=24576), a_card("c3", "h2", total=24576)]
    on = [a_replica(1, card="c1"), a_replica(2, card="c2"), a_replica(3, card="c3", last_call_at=NOW)]
    assert decided(service, a_service("x"), *cards, *on) == NOTICE
    on = [a_replica(1, card="c1", last_call_at=NOW), a_replica(2, card="c2", last_call_at=NOW), a_replica(3, card="c3")]
    assert decided(service, a_service("x"), *cards, *on) == []


# During the notice


def noticed(reason="idle", at=NOW + 100, **more):
    return a_replica(drain_at=at, reason=reason, **more)


CALL = [(Verb.WAKE, Reason.CALL, 1)]


@cases(
    ("replica", "expected"),
    [
        (noticed(), []),
        (noticed(in_flight=1), CALL),
        (noticed(last_call_at=NOW - 1), CALL),
        (noticed(last_call_at=NOW - 201), []),
        (noticed(at=NOW - 1, last_call_at=NOW - 2), CALL),
        (noticed(at=NOW - 1, last_call_at=NOW - 5000), [(Verb.DRAIN, Reason.IDLE, 1)]),
        (noticed(at=NOW - 1, in_flight=None), []),
        (noticed("operator", in_flight=1), []),
        (noticed("operator", at=NOW - 1, in_flight=1), [(Verb.DRAIN, Reason.OPERATOR, 1)]),
    ],
)
def test_a_call_takes_a_notice_back_and_time_makes_it_a_drain(replica, expected):
    assert decided(BUSY, a_service(), a_service("x"), replica) == expected


def test_a_waiting_caller_takes_it_back_too():
    assert decided(BUSY, a_service(demand=held()), a_service("x"), noticed()) == CALL


def test_a_call_counted_for_the_service_only_counts_for_its_copy():
    service = a_service(demand=Demand(last_call_at=NOW - 1))
    assert decided(BUSY, service, a_service("x"), noticed()) == CALL


@cases("service", [a_service(whitelisted_until=NOW + 9), a_service(tier=Tier.HOT)])
def test_who_came_to_be_kept_during_the_notice_stays(service):
    got = decided(BUSY, service, a_service("x"), noticed(at=NOW - 1))
    assert got == [(Verb.WAKE, Reason.UNNEEDED, 1)]


def test_a_notice_that_would_now_leave_one_host_is_taken_back():
    service = a_service(min_replicas=2, max_replicas=3)
    cards = [a_card("c1", total=24576), a_card("c2", "h2", total=24576)]
    got = decided(service, a_service("x"), *cards, noticed(at=NOW - 1), a_replica(2, card="c2", last_call_at=NOW))
    assert (Verb.WAKE, Reason.UNNEEDED, 1) in got


# After the drain


def draining(reason="idle", since=NOW - 10, quiet=True, **more):
    more = {"phase": Phase.DRAINING, "in_flight": 0 if quiet else 1, **more}
    return a_replica(reason=reason, quiet=quiet, want_since=since, **more)


WARM = a_service(tier=Tier.WARM)
STOP, SLEEP = [(Verb.STOP, Reason.IDLE, 1)], [(Verb.SLEEP, Reason.IDLE, 1)]


@cases(
    ("service", "replica", "things", "expected"),
    [
        (a_service(), draining(), [], STOP),
        (WARM, draining(), [], SLEEP),
        (WARM, draining(can_sleep=False), [], STOP),
        (a_service(tier=Tier.WARM, can_sleep=False), draining(), [], STOP),
        (WARM, draining(), [a_host(memory_mib=24575)], STOP),
        (WARM, draining(), [a_host(memory_mib=24384)], SLEEP),
        (WARM, draining(), [a_host(memory_mib=0)], STOP),
        (WARM, draining(quiet=False), [], []),
        (WARM, draining(in_flight=0, quiet=False), [], []),
        (WARM, draining("fault"), [], [(Verb.STOP, Reason.FAULT, 1)]),
        (WARM, draining(want=Want.ASLEEP), [], []),
        (WARM, draining(want=Want.STOPPED), [], []),
        (WARM, draining(external=True), [], []),
        (WARM, draining(), [a_host(seen_at=NOW - 20)], []),
    ],
)
def test_a_drained_one_sleeps_or_stops(service, replica, things, expected):
    if things and isinstance(things[0], type(a_host())) and things[0].memory_mib == 24575:
        service = a_service(tier=Tier.WARM, weights=8192)
    assert decided(BUSY, service, a_service("x"), replica, *things) == expected


def test_at_most_four_sleep_on_a_card():
    others = [a_service(f"n{i}", tier=Tier.WARM) for i in range(4)]
    sleepers = [a_replica(10 + i, f"n{i}", phase=Phase.ASLEEP) for i in range(4)]
    assert decided(a_card(), WARM, *others, draining(), *sleepers) == STOP
    assert decided(a_card(), WARM, *others, draining(), *sleepers[:3]) == SLEEP


@cases("mate", [a_replica(2, "x", phase=Phase.STARTING), a_replica(2, "x", phase=Phase.DRAINING, want=Want.ASLEEP)])
def test_it_waits_while_another_engine_of_the_card_is_on_the_move(mate):
    assert decided(a_card(), WARM, a_service("x", demand=held()), draining(), mate) == []


@cases(
    ("reason", "lasted", "expected"),
    [
        ("idle", 1799, []),
        ("idle", 1800, [(Verb.WAKE, Reason.UNNEEDED, 1)]),
        ("surplus", 1800, [(Verb.WAKE, Reason.UNNEEDED, 1)]),
        ("operator", 9999, []),
        ("pressure", 19, []),
        ("pressure", 20, [(Verb.STOP, Reason.PRESSURE, 1)]),
        ("fault", 600, [(Verb.STOP, Reason.FAULT, 1)]),
    ],
)
def test_a_drain_that_cannot_end(reason, lasted, expected):
    assert decided(BUSY, a_service(), a_service("x"), draining(reason, NOW - lasted, quiet=False)) == expected


def test_an_endless_drain_is_left_alone_afterwards():
    world = a_world(BUSY, a_service(), a_service("x"), draining(since=NOW - 1800, quiet=False))
    (back,) = plan(world, POLICY, NOW)
    assert back.numbers["left_alone_until"] == NOW + 3600


def test_a_cut_is_forced_at_the_learned_bound():
    service = a_service(generation_s=10.0)
    world = a_world(BUSY, service, a_service("x"), draining("fault", NOW - 45, quiet=False))
    (stop,) = plan(world, POLICY, NOW)
    assert stop.force


def test_a_caller_takes_back_a_drain_for_idleness():
    got = decided(BUSY, a_service(demand=held()), a_service("x"), draining())
    assert got == [(Verb.WAKE, Reason.HOLD, 1)]


@cases("reason", ["operator", "fault", "pressure"])
def test_nobody_takes_back_a_drain_that_had_to_be(reason):
    got = decided(BUSY, a_service(demand=held()), a_service("x"), draining(reason, quiet=False))
    assert (Verb.WAKE, Reason.HOLD, 1) not in got


# Surplus


def test_of_more_than_the_maximum_the_one_used_least_lately_drains():
    service = a_service(tier=Tier.HOT, max_replicas=1)
    cards = [a_card("c1"), a_card("c2", "h2")]
    on = [a_replica(1, last_call_at=NOW - 5), a_replica(2, card="c2", last_call_at=NOW - 50)]
    assert decided(service, *cards, *on) == [(Verb.DRAIN, Reason.SURPLUS, 2)]


def test_a_sleeper_beyond_the_maximum_stops():
    on = [a_replica(last_call_at=NOW), a_replica(2, card="c2", phase=Phase.ASLEEP)]
    got = decided(a_card("c1"), a_card("c2"), WARM, a_service("x"), *on)
    assert got == [(Verb.STOP, Reason.SURPLUS, 2)]


def test_a_sleeper_alone_sleeps_on():
    assert decided(BUSY, WARM, a_service("x"), a_replica(phase=Phase.ASLEEP)) == []
