"""Engines that have outgrown their KV memory: another copy, a larger grant, or fewer calls."""

from __future__ import annotations

from dataclasses import replace

from scheduler.decision import Code, Reason, Verb
from scheduler.kv import admitted_tokens, outgrown, samples_after, tightened
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.world import Phase
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world, acting
from tests.scheduler.cases import cases


def full(id=1, name="s", card="c1", granted=4000, **more):
    more.setdefault("in_flight", 9)
    return a_replica(id, name, card, kv_granted_mib=granted, kv_used_pct=97.0, waiting=5, kv_full_samples=2, **more)


def planned(*things, policy=POLICY, **more):
    return plan(a_world(*things, **more), policy, NOW)


# Counting


@cases(
    ("used", "waiting", "before", "after"),
    [
        (95.0, 1, 0, 1),
        (95.0, 1, 1, 2),
        (100.0, 9, 2, 2),
        (94.9, 9, 1, 0),
        (99.0, 0, 1, 0),  # full and nobody waits: well used
        (94.0, 0, 2, 2),
        (85.0, 0, 2, 2),
        (84.9, 9, 2, 0),
        (None, 9, 1, 1),
        (99.0, None, 2, 2),
    ],
)
def test_samples_with_calls_waiting_count_and_last_until_relief(used, waiting, before, after):
    assert samples_after(used, waiting, before, POLICY) == after


@cases(("phase", "yes"), [(Phase.READY, True), (Phase.DRAINING, False), (Phase.STARTING, False)])
def test_only_who_serves_has_outgrown_its_kv(phase, yes):
    assert outgrown(replace(full(), phase=phase), POLICY) is yes
    assert not outgrown(replace(full(), kv_full_samples=1), POLICY)


@cases(("tokens", "tight", "admitted"), [(1000, False, 900), (1000, True, 700), (1, True, 1)])
def test_tokens_in_flight_stay_below_what_the_kv_holds(tokens, tight, admitted):
    assert admitted_tokens(tokens, POLICY, tight=tight) == admitted


# Another copy


def test_another_copy_where_the_service_may_have_one():
    (start,) = planned(a_card("c1"), a_card("c2"), a_service(max_replicas=2), full())
    assert (start.verb, start.reason, start.cards, start.kv_granted_mib) == (Verb.START, Reason.QUEUE, ("c2",), 4000)
    assert (start.numbers["kv_used_pct"], start.numbers["waiting"], start.numbers["kv_now_mib"]) == (97.0, 5, 4000)


def test_nothing_more_while_it_is_coming():
    coming = a_replica(2, card="c2", phase=Phase.STARTING)
    assert planned(a_card("c1"), a_card("c2"), a_service(max_replicas=3), full(), coming) == []


def test_nothing_while_another_copy_has_room_left():
    roomy = a_replica(2, card="c2", kv_used_pct=40.0, in_flight=1)
    assert planned(a_card("c1"), a_card("c2"), a_service(max_replicas=3), full(), roomy) == []


def test_one_copy_at_a_time_when_all_are_full():
    cards = [a_card(f"c{i}") for i in range(1, 5)]
    found = planned(*cards, a_service(max_replicas=4), full(1), full(2, card="c2"))
    assert [(d.verb, d.reason) for d in found] == [(Verb.START, Reason.QUEUE)]


# A larger grant


def at_most(*more, granted=3000, cap=4000, **fields):
    """One copy at the service's maximum, with less KV than it claims."""
    fields.setdefault("max_replicas", 1)
    return planned(a_card("c1"), a_service(kv=cap, **fields), full(granted=granted), *more)


def test_a_larger_grant_elsewhere_where_no_copy_may_be_added():
    (start,) = at_most(a_card("c2"))
    assert (start.verb, start.reason, start.cards, start.kv_granted_mib) == (Verb.START, Reason.REGRANT, ("c2",), 4000)
    assert start.numbers["instead_of"] == 1


@cases(("granted", "reason"), [(3636, Reason.REGRANT), (3637, None), (4000, None)])
def test_only_where_it_is_worth_a_start(granted, reason):
    found = at_most(a_card("c2"), granted=granted)
    assert [d.reason for d in acting(found)] == ([reason] if reason else [])


def test_the_old_copy_goes_when_the_larger_one_is_ready():
    old, new = full(granted=3000), a_replica(2, card="c2", kv_granted_mib=4000, reason="regrant", in_flight=2)
    (drain,) = planned(a_card("c1"), a_card("c2"), a_service(), old, new)
    assert (drain.verb, drain.reason, drain.replica, drain.not_before) == (Verb.DRAIN, Reason.REGRANT, 1, None)


def test_not_before():
    old, new = full(granted=3000), a_replica(2, card="c2", kv_granted_mib=4000, reason="regrant", phase=Phase.STARTING)
    assert planned(a_card("c1"), a_card("c2"), a_service(), old, new) == []


def test_and_not_one_that_the_service_needs():
    old, new = full(granted=3000), a_replica(2, card="c2", kv_granted_mib=4000, reason="regrant", in_flight=2)
    assert [d for d in planned(a_card("c1"), a_card("c2"), a_service(max_replicas=2), old, new) if d.replica == 1] == []


def test_nor_one_that_could_not_be_emptied_a_while_ago():
    old = full(granted=3000, left_alone_until=NOW + 5)
    new = a_replica(2, card="c2", kv_granted_mib=4000, reason="regrant", in_flight=2)
    assert not any(d.reason is Reason.REGRANT for d in planned(a_card("c1"), a_card("c2"), a_service(), old, new))


def test_of_several_the_smallest_is_replaced():
    cards = [a_card(f"c{i}") for i in range(1, 4)]
    (start,) = planned(*cards, a_service(max_replicas=2), full(1, granted=3300), full(2, card="c2", granted=3000))
    assert (start.reason, start.numbers["instead_of"]) == (Reason.REGRANT, 2)


def test_two_hosts_stay_two():
    """The copy that would go is the one that keeps the second host."""
    cards = [a_card("c1", "h1"), a_card("c2", "h2"), a_card("c3", "h1")]
    pair = [full(1, granted=3900), full(2, card="c2", granted=3000)]
    found = planned(*cards, a_service(min_replicas=2, max_replicas=2), *pair)
    assert [d.reason for d in acting(found)] == []


# Fewer calls


def test_else_the_gateways_send_less_and_it_is_said():
    found = at_most()
    assert acting(found) == []
    (refused,) = found
    assert (refused.refusal.code, refused.replica) == (Code.KV_FULL, 1)
    assert refused.refusal.numbers["admit_pct"] == 70
    assert tightened(found) == {"s"}


def test_that_ends_by_itself():
    world = a_world(a_card("c1"), a_service(), replace(full(granted=3000), kv_full_samples=0))
    assert tightened(plan(world, POLICY, NOW)) == frozenset()


def test_while_the_other_card_loads_one_waits_for_it():
    loading = [a_card("c2"), a_service("x"), a_replica(5, "x", "c2", Phase.STARTING)]
    assert tightened(at_most(*loading)) == frozenset()


def test_the_limits_are_the_policys():
    later = Policy(kv_full_samples=3)
    assert planned(a_card("c1"), a_card("c2"), a_service(max_replicas=2), full(), policy=later) == []


def test_a_neighbour_is_never_asked_to_go_for_it():
    idle = [a_service("idle", weights=60000), a_replica(7, "idle", loaded_at=NOW - 10)]
    found = at_most(*idle, granted=1000, cap=20000)
    assert [d.service for d in acting(found)] == []


@cases("at_once", [1, 2, 3])
def test_many_that_grow_at_once_take_turns_and_each_is_helped(at_once):
    """A look at all cards is dear; who has to wait for its turn is sent less meanwhile."""
    names = [f"s{i}" for i in range(5)]
    cards = [a_card(f"c{i}", f"h{i}") for i in range(10)]
    services = [a_service(n, max_replicas=2) for n in names]
    seats = [full(i + 1, n, f"c{i}") for i, n in enumerate(names)]
    policy = Policy(kv_placements=at_once)
    helped = set()
    for second in range(5):
        found = plan(a_world(*cards, *services, *seats), policy, NOW + second)
        started = {d.service for d in acting(found)}
        assert len(started) == at_once
        assert tightened(found) == set(names) - started
        helped |= started
    assert helped == set(names)


# Played through


def outgrown_farm(**more):
    """A copy with half of its cap on the first card; the second has room for all of it."""
    more.setdefault("max_replicas", 1)
    world = a_world(a_card("c1"), a_card("c2", "h2"), a_service(kv=8000, min_replicas=1, **more), full(granted=4000))
    return Farm(world)


def test_a_larger_copy_is_made_before_the_old_one_goes_and_then_there_is_peace():
    farm = outgrown_farm()
    farm.calls[1] = 5
    least = 9
    for second in range(0, 120, 2):
        if second == 60:
            farm.calls[1] = 0  # its calls end; new ones go to the larger copy
        farm.step(2)
        least = min(least, len(farm.ready("s")))
    assert least == 1, "never without a copy"
    (left,) = farm.ready("s")
    assert (left.kv_granted_mib, left.cards) == (8000, ("c2",))
    assert [(d.verb, d.reason) for d in farm.did("s")] == [
        (Verb.START, Reason.REGRANT),
        (Verb.DRAIN, Reason.REGRANT),
        (Verb.STOP, Reason.REGRANT),
    ]
    assert farm.step() == []


def test_a_long_answer_is_not_cut_for_it():
    farm = outgrown_farm()
    farm.calls[1] = 1
    for _ in range(150):
        farm.step(10)
    assert farm.did("s")[-1].verb is Verb.DRAIN
    assert Verb.STOP not in [d.verb for d in farm.did("s")]
    assert 1 in farm.world.replicas


def test_another_copy_is_enough_and_stays():
    farm = outgrown_farm(max_replicas=2)
    for _ in range(60):
        farm.calls = {r.id: 3 for r in farm.ready("s")}
        farm.step()
    assert len(farm.ready("s")) == 2
    assert [(d.verb, d.reason) for d in farm.did("s")] == [(Verb.START, Reason.QUEUE)]
