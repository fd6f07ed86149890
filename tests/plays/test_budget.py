"""A spent card budget: who shrinks, in which order, and who is left alone."""

from __future__ import annotations

from dataclasses import replace

from scheduler.budget import Standing, forecast_fen, standing, tightened
from scheduler.decision import Reason, Verb
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.world import Budget, Demand, Phase, Profile, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world, acting, held
from tests.scheduler.cases import cases

CARDS = [a_card(f"c{i}", f"h{i % 4}") for i in range(8)]
SPENT = Budget("t", 1000, 1000)
ONLINE, BATCH, LOWFREQ = Profile.ONLINE, Profile.BATCH, Profile.LOWFREQ


def drained(*things, budgets=(SPENT,), policy: Policy = POLICY):
    """Replicas that get a notice for their budget."""
    decisions = acting(plan(a_world(*CARDS, *things, budgets=budgets), policy, NOW))
    assert all(d.not_before == NOW + policy.grace_s for d in decisions if d.reason is Reason.BUDGET)
    return [d.replica for d in decisions if d.reason is Reason.BUDGET and d.verb is Verb.DRAIN]


def copies(service: str, first: int, count: int, **more):
    """Replicas of one service on cards of their own, the first the least lately used."""
    return [
        a_replica(first + i, service, f"c{(first + i) % 8}", last_call_at=NOW - 900 + i, **more) for i in range(count)
    ]


@cases(
    ("spent", "forecast", "said"),
    [
        (0, None, Standing.FINE),
        (799, None, Standing.FINE),
        (800, None, Standing.WARNED),
        (100, 1000, Standing.FINE),
        (100, 1001, Standing.WARNED),
        (999, 5000, Standing.WARNED),
        (1000, None, Standing.SPENT),
        (1001, 10, Standing.SPENT),
    ],
)
def test_how_a_budget_stands(spent, forecast, said):
    assert standing(Budget("t", 1000, spent, forecast), POLICY) is said


@cases(
    ("spent", "recent", "hours", "left", "fen"),
    [(0, 0, 0, 700, None), (500, 168, 168, 100, 600), (500, 0, 24, 100, 500), (0, 10, 3, 1, 3)],
)
def test_the_forecast_goes_on_as_it_did(spent, recent, hours, left, fen):
    assert forecast_fen(spent, recent, hours, left) == fen


@cases(("spent", "forecast"), [(999, None), (999, 99_999), (0, None)])
def test_below_what_is_really_spent_nothing_moves(spent, forecast):
    world = [a_service("a", tenant="t", max_replicas=4, min_replicas=1, tier=Tier.HOT), *copies("a", 1, 4)]
    budget = Budget("t", 1000, spent, forecast)
    assert drained(*world, budgets=[budget]) == []


@cases(("min_replicas", "ready", "going"), [(1, 4, 3), (0, 3, 2), (2, 5, 3), (2, 2, 0), (1, 1, 0)])
def test_an_online_service_shrinks_to_its_minimum_least_used_first(min_replicas, ready, going):
    service = a_service("a", min_replicas=min_replicas, max_replicas=8, profile=ONLINE)
    assert drained(service, *copies("a", 1, ready)) == list(range(1, going + 1))


def test_the_lowest_priority_goes_first_and_the_next_waits_for_it():
    low, high = a_service("low", priority=10, max_replicas=4), a_service("high", priority=60, max_replicas=4)
    things = [low, high, *copies("low", 1, 3), *copies("high", 5, 3)]
    assert drained(*things) == [1, 2]
    under_notice = replace(things[2], drain_at=NOW + 100, reason="budget")
    gone = [under_notice, *copies("low", 2, 1), *copies("high", 5, 3)]
    assert drained(low, high, *gone) == []
    assert drained(low, high, *copies("low", 1, 1), *copies("high", 5, 3)) == [5, 6]


@cases("profile", [BATCH, LOWFREQ])
def test_batch_and_lowfreq_go_whole_after_all_have_shrunk(profile):
    online = a_service("a", priority=10, profile=ONLINE, min_replicas=1)
    other = a_service("b", priority=90, profile=profile, min_replicas=1)
    assert drained(online, other, *copies("a", 1, 1), *copies("b", 2, 1)) == [2]
    assert drained(replace(online, max_replicas=2), other, *copies("a", 1, 2), *copies("b", 3, 1)) == [1]


@cases(
    "safe",
    [
        {"left_alone_until": NOW + 5},
        {"loaded_at": NOW - POLICY.min_loaded_s + 1},
        {"external": True},
        {"drain_at": NOW + 9, "reason": "idle"},
    ],
)
def test_copies_that_are_not_asked_now(safe):
    assert drained(a_service("b", profile=BATCH), a_replica(1, "b", "c1", **safe)) == []


def test_a_whitelisted_one_stays():
    kept = a_service("b", profile=BATCH, whitelisted_until=NOW + 1)
    assert drained(kept, a_replica(1, "b", "c1")) == []


def test_two_hosts_stay_two():
    service = a_service("a", min_replicas=2, max_replicas=4)
    on_two = [a_replica(1, "a", "c0"), a_replica(2, "a", "c4"), a_replica(3, "a", "c1", last_call_at=NOW)]
    assert drained(service, *on_two) == [1]
    assert drained(service, *on_two[1:]) == []


def test_a_budget_of_one_service_touches_no_other():
    one = Budget("t", 1000, 2000, service="a")
    things = [a_service(n, profile=BATCH) for n in "ab"] + copies("a", 1, 1) + copies("b", 2, 1)
    assert drained(*things, budgets=[one]) == [1]
    assert drained(*things, budgets=[Budget("other", 0, 0)]) == []


def test_a_spent_services_copies_are_no_surplus():
    """Surplus goes at once; what goes for its budget is announced, and those whose turn has not come stay."""
    service = a_service("a", max_replicas=4, tier=Tier.HOT)
    fresh = [a_replica(i, "a", f"c{i}", loaded_at=NOW - 1) for i in range(3)]
    decisions = acting(plan(a_world(*CARDS, service, *fresh, budgets=[SPENT]), POLICY, NOW))
    assert decisions == []


def test_what_a_tightened_service_may_have():
    online = a_service("a", min_replicas=2, max_replicas=8, tier=Tier.HOT, profile=ONLINE)
    assert (tightened(online).min_replicas, tightened(online).max_replicas) == (2, 2)
    assert tightened(online).tier is Tier.WARM
    batch = a_service("b", min_replicas=1, max_replicas=3, tier=Tier.WARM, profile=BATCH)
    assert (tightened(batch).min_replicas, tightened(batch).max_replicas) == (0, 1)
    assert tightened(batch).tier is Tier.COLD


def test_a_call_is_never_refused_for_it():
    service = a_service("b", profile=BATCH, demand=held())
    decisions = plan(a_world(*CARDS, service, budgets=[SPENT]), POLICY, NOW)
    assert [d.verb for d in acting(decisions)] == [Verb.START]


def test_a_new_month_takes_the_notice_back():
    service = a_service("b", profile=BATCH)
    due = a_replica(1, "b", "c1", drain_at=NOW, reason="budget")
    decisions = acting(plan(a_world(*CARDS, service, due, budgets=[Budget("t", 1000, 0)]), POLICY, NOW))
    assert [(d.verb, d.reason) for d in decisions] == [(Verb.WAKE, Reason.UNNEEDED)]


def test_a_call_in_flight_is_finished():
    quick = Policy(grace_s=10, min_loaded_s=10)
    service = a_service("b", profile=BATCH, demand=Demand(last_call_at=NOW - 50))
    farm = Farm(a_world(*CARDS, service, a_replica(1, "b", "c1"), budgets=[SPENT]), policy=quick, calls={1: 1})
    for _ in range(20):
        farm.step(3)
    assert farm.world.replicas[1].phase is Phase.DRAINING
    farm.calls.clear()
    farm.until(lambda f: not f.world.replicas, 30)
    assert [d.verb for d in farm.did("b")] == [Verb.DRAIN, Verb.DRAIN, Verb.STOP], "stopped, not put asleep"


def test_resident_hours_of_batch_are_not_paid_for_any_more():
    hours = ((NOW - 100, NOW + 100),)
    batch = a_service("b", profile=BATCH, resident=hours)
    assert tightened(batch).resident == ()
    assert tightened(replace(batch, profile=ONLINE)).resident == hours
    assert drained(batch, *copies("b", 1, 1)) == [1]
