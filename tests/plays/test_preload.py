"""Loading ahead: in time, into free room, never at anybody's cost, and not against a person's word."""

from __future__ import annotations

from dataclasses import replace

from scheduler.decision import Code, Reason, Verb
from scheduler.forecast import HOUR_S
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.preload import in_turn
from scheduler.world import Act, Budget, Demand, Forecast, Order, Phase, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import (
    LONG,
    NOW,
    POLICY,
    a_card,
    a_failure,
    a_host,
    a_replica,
    a_service,
    a_world,
    acting,
    held,
)
from tests.scheduler.cases import cases

LOAD_S = 30.0
LEAD = LOAD_S + POLICY.preload_lead_s
JOB = NOW + 1000.0
REPORT = Forecast(NOW, (), moments=((JOB, 1.0),), load_s=LOAD_S)
FULL = 80000


def world(*things, forecast: Forecast = REPORT, **more):
    return a_world(*things, forecasts={"s": forecast}, **more)


def preloads(decisions):
    return [d for d in acting(decisions) if d.reason is Reason.FORECAST]


def test_it_starts_in_time_and_says_for_what():
    here = world(a_service())
    assert preloads(plan(here, POLICY, JOB - LEAD - 1)) == []
    (start,) = preloads(plan(replace(here, hosts={"h1": a_host(seen_at=JOB)}), POLICY, JOB - LEAD))
    assert (start.verb, start.service, start.cards) == (Verb.START, "s", ("c1",))
    assert start.numbers["expected_at"] == JOB
    assert (start.numbers["rule"], start.numbers["probability_pct"]) == ("periodic", 100)


def at(now: float, *things, **more):
    """The plan of this moment, all hosts heard."""
    there = world(*things, **more)
    hosts = {name: replace(host, seen_at=now) for name, host in there.hosts.items()}
    return plan(replace(there, hosts=hosts), POLICY, now)


@cases("phase", [Phase.READY, Phase.STARTING])
def test_who_is_there_already_is_not_loaded_again(phase):
    assert preloads(at(JOB - 60, a_service(max_replicas=3), a_replica(phase=phase))) == []


def test_a_sleeper_is_woken_and_only_as_early_as_a_wake_needs():
    service, asleep = a_service(tier=Tier.WARM), a_replica(phase=Phase.ASLEEP)
    assert preloads(at(JOB - LEAD, service, asleep)) == []
    wake_lead = POLICY.wake_s + POLICY.preload_lead_s
    (wake,) = preloads(at(JOB - wake_lead, service, asleep))
    assert (wake.verb, wake.replica, wake.numbers["expected_at"]) == (Verb.WAKE, 1, JOB)


def test_what_drains_for_idleness_is_taken_back():
    (back,) = preloads(at(JOB - 60, a_service(), a_replica(phase=Phase.DRAINING, reason="idle")))
    assert (back.verb, back.replica) == (Verb.WAKE, 1)
    assert back.numbers["expected_at"] == JOB


@cases("neighbour", [Phase.READY, Phase.ASLEEP])
def test_it_asks_nobody_to_go(neighbour):
    other = a_service("other", weights=FULL - 20000, priority=0, tier=Tier.WARM)
    sleepers = {"residue_mib": 70000} if neighbour is Phase.ASLEEP else {}
    decisions = at(JOB - 60, a_service(weights=30000), other, a_replica(1, "other", phase=neighbour, **sleepers))
    assert [d for d in acting(decisions) if d.reason in (Reason.ROOM, Reason.FORECAST)] == []
    (refusal,) = [d.refusal for d in decisions if d.refusal]
    assert refusal.code is Code.SHORT_OF_MEMORY


def test_that_it_has_no_room_is_not_told_to_callers():
    """A caller would have room made: the preload's refusal is not his."""
    other = a_service("other", weights=FULL - 20000)
    decisions = at(JOB - 60, a_service(weights=30000), other, a_replica(1, "other"))
    (refused,) = [d for d in decisions if d.refusal]
    assert refused.reason is Reason.FORECAST
    assert refused.refuses_wish is None


def test_a_caller_comes_first():
    """Room for one: the caller's service gets it, whatever is expected."""
    expected, called = a_service(weights=60000), a_service("other", weights=60000, demand=held())
    decisions = at(JOB - 60, expected, called)
    assert [d.service for d in acting(decisions)] == ["other"]


def test_a_preload_under_way_makes_room_for_a_caller():
    far = Forecast(NOW, (0.9, 0.9), load_s=LOAD_S)
    expected, called = a_service(weights=60000), a_service("other", weights=60000, demand=held())
    loading = a_replica(1, phase=Phase.STARTING, reason="forecast")
    decisions = at(NOW, expected, called, loading, forecast=far)
    assert [(d.verb, d.service, d.reason) for d in acting(decisions)] == [(Verb.STOP, "s", Reason.ROOM)]


def test_but_not_when_its_own_call_is_as_near():
    """Stopped now it could not be back for its job: the caller has to wait for it, or go elsewhere."""
    expected, called = a_service(weights=60000), a_service("other", weights=60000, demand=held())
    loading = a_replica(1, phase=Phase.STARTING, reason="forecast")
    decisions = at(JOB - 60, expected, called, loading)
    assert acting(decisions) == []


def test_loaded_in_vain_it_leaves_at_once_for_a_caller():
    """Its minimum stay is for what callers loaded."""
    called = a_service("other", weights=60000, demand=held())
    fresh = {"loaded_at": NOW - 20, "since": NOW - 20}
    mine = a_replica(1, reason="forecast", **fresh)
    decisions = at(NOW, a_service(weights=60000), called, mine, forecast=Forecast(NOW))
    assert [(d.verb, d.service, d.reason) for d in acting(decisions)] == [(Verb.DRAIN, "s", Reason.ROOM)]
    for other in (replace(mine, last_call_at=NOW - 9), replace(mine, reason="hold")):
        decisions = at(NOW, a_service(weights=60000), called, other, forecast=Forecast(NOW))
        assert acting(decisions) == []


@cases("field", ["let_go_at", "last_reclaimed_at"])
def test_what_went_since_is_not_loaded_again_for_the_same_hour(field):
    assert preloads(at(JOB - 60, a_service(**{field: JOB - 100}))) == []
    assert preloads(at(JOB - 60, a_service(**{field: JOB - LEAD - 10}))) != []


def test_a_service_whose_preloads_were_of_no_use_is_left_to_its_callers():
    assert preloads(at(JOB - 60, a_service(), forecast=replace(REPORT, automatic=False))) == []


def test_who_spent_its_card_budget_waits_for_callers():
    for spent, loads in ((99, 1), (100, 0)):
        budgets = (Budget("t", 100, spent),)
        assert len(preloads(at(JOB - 60, a_service(), budgets=budgets))) == loads


def test_a_service_that_is_down_is_not_tried_for_a_forecast():
    failures = tuple(a_failure(f"c{i}", JOB - 70) for i in range(3))
    cards = [a_card(f"c{i}") for i in range(4)]
    decisions = at(JOB - 60, a_service(failures=failures), *cards)
    assert preloads(decisions) == []
    assert decisions[0].refusal.code is Code.LOAD_FAILED


def test_the_earliest_is_loaded_first_then_the_dearer_to_its_owner():
    policy = replace(POLICY, preload_tries=9)
    names = {"a": (JOB, 50), "b": (JOB - 30, 10), "c": (JOB, 90)}
    services = [a_service(n, weights=5000, priority=p) for n, (_, p) in names.items()]
    forecasts = {n: Forecast(NOW, moments=((when, 1.0),), load_s=LOAD_S) for n, (when, _) in names.items()}
    cards = [a_card(f"c{i}", f"h{i}") for i in range(4)]
    hosts = [a_host(f"h{i}", seen_at=JOB - 60) for i in range(4)]
    decisions = plan(a_world(*services, *cards, *hosts, forecasts=forecasts), policy, JOB - 60)
    assert [d.service for d in preloads(decisions)] == ["b", "c", "a"]


def test_where_much_is_due_at_once_a_plan_looks_at_a_few_and_all_have_their_turn():
    names = [f"s{i:02}" for i in range(20)]
    forecasts = {n: Forecast(NOW, moments=((JOB, 1.0),), load_s=LOAD_S) for n in names}
    here = a_world(*(a_service(n, weights=90000) for n in names), forecasts=forecasts)
    seen = set()
    for second in range(3 * len(names) // POLICY.preload_tries):
        now = JOB - 100 + second
        decisions = plan(replace(here, hosts={"h1": a_host(seen_at=now)}), POLICY, now)
        assert len(decisions) == POLICY.preload_tries
        assert all(d.numbers["expected_at"] == JOB for d in decisions)
        seen |= {d.service for d in decisions}
    assert seen == set(names)


@cases("count", [1, 2, 3, 4, 9, 12, 30])
@cases("step_s", [0.25, 1, 2, 3, 5])
def test_all_come_to_their_turn_where_plans_are_seconds_apart(count, step_s):
    turns = {in_turn(NOW + n * step_s, count) for n in range(int(count * count * 4 / min(step_s, 1)))}
    assert turns == set(range(count))
    assert in_turn(NOW, 0) == 0


def test_it_waits_for_the_turn_of_the_best_card():
    other = a_service("other")
    loading = a_replica(1, "other", phase=Phase.STARTING, since=JOB - 61, want_since=JOB - 61)
    decisions = at(JOB - 60, a_service(), other, loading)
    assert [d.refusal.code for d in decisions if d.refusal] == [Code.LOAD_IN_FLIGHT]


def loads_beside(waited=True):
    """`c` loads on a card of h1, and callers wait for it, or not."""
    caller = a_service("c", demand=held(since=JOB - LEAD) if waited else Demand())
    loading = a_replica(7, "c", "c2", Phase.STARTING, since=JOB - LEAD, want_since=JOB - LEAD)
    return at(JOB - LEAD, a_card("c1"), a_card("c2"), a_service(), caller, loading)


def test_it_does_not_slow_a_load_that_callers_wait_for():
    decisions = loads_beside()
    assert preloads(decisions) == []
    (turn,) = [d.refusal for d in decisions if d.service == "s"]
    assert (turn.code, turn.numbers["service"]) == (Code.LOAD_IN_FLIGHT, "c")


def test_beside_a_load_nobody_waits_for_it_begins():
    (start,) = preloads(loads_beside(waited=False))
    assert start.cards == ("c1",)


def test_an_operators_word_is_enough_reason():
    """One start, by the order: the forecast adds no second copy."""
    order = Order(1, Act.PRELOAD, "s", JOB + 60)
    starts = [d for d in acting(at(JOB - 60, a_service(max_replicas=3), orders=(order,))) if d.verb is Verb.START]
    assert [d.reason for d in starts] == [Reason.OPERATOR]


# Idle reclaim and the forecast


def idle_world(forecast: Forecast, **more):
    return world(a_card(total=24576), a_service(**more), a_service("other"), a_replica(), forecast=forecast)


def test_idle_ones_stay_while_a_call_within_the_hour_is_likely():
    likely, unlikely = Forecast(NOW, (0.4, 0.4)), Forecast(NOW, (0.2, 0.2))
    assert acting(plan(idle_world(likely), POLICY, NOW)) == []
    (notice,) = acting(plan(idle_world(unlikely), POLICY, NOW))
    assert (notice.verb, notice.reason) == (Verb.DRAIN, Reason.IDLE)


def test_a_notice_is_taken_back_when_its_time_comes_and_a_call_has_become_likely():
    noticed = a_replica(drain_at=NOW, reason="idle")
    here = world(a_card(total=24576), a_service(), a_service("other"), noticed, forecast=Forecast(NOW, (0.9,)))
    (back,) = acting(plan(here, POLICY, NOW))
    assert (back.verb, back.reason, back.numbers["kept"]) == (Verb.WAKE, Reason.UNNEEDED, "expected")


# Resident hours


DAY = ((JOB, JOB + 9 * HOUR_S),)


def resident(now: float, *things, **more):
    things = things or (a_service(resident=DAY),)
    hosts = [a_host(seen_at=now)]
    return plan(a_world(*hosts, *things, forecasts={"s": Forecast(NOW, load_s=LOAD_S)}), POLICY, now)


def test_what_was_loaded_for_resident_hours_stays_until_they_begin():
    quick = Policy(idle_unload_s=30, min_loaded_s=0, half_empty_pct=0, load_init_s=6.0, load_warm_up_s=2.0)
    there = a_replica(loaded_at=JOB - 100, since=JOB - 100, reason="forecast")
    things = (a_card(total=24576), a_service(resident=DAY), a_service("other"), there, a_host(seen_at=JOB - 60))
    forecasts = {"s": Forecast(NOW, load_s=LOAD_S)}
    assert acting(plan(a_world(*things, forecasts=forecasts), quick, JOB - 60)) == []
    assert acting(plan(a_world(*things), quick, JOB - 60)) == []


def test_resident_hours_begin_ready():
    assert acting(resident(JOB - LEAD - 1)) == []
    (early,) = acting(resident(JOB - LEAD))
    assert (early.reason, early.numbers["rule"]) == (Reason.FORECAST, "resident")
    (late,) = acting(resident(JOB))
    assert late.reason is Reason.MINIMUM


def test_within_them_it_is_always_kept_and_after_them_on_demand():
    small = a_card(total=24576)
    there = a_replica(loaded_at=NOW - LONG)
    for now, gone in ((JOB, 0), (DAY[0][1] - 1, 0), (DAY[0][1], 1)):
        found = acting(resident(now, small, a_service(resident=DAY), a_service("other"), there))
        assert len(found) == gone


def test_it_does_not_go_for_a_caller_within_them():
    called = a_service("other", weights=60000, demand=held(since=JOB + 5), priority=99)
    mine = a_service(weights=60000, resident=DAY)
    assert acting(resident(JOB + 10, mine, called, a_replica(loaded_at=NOW - LONG))) == []
    evening = DAY[0][1] + 10
    found = acting(resident(evening, mine, called, a_replica(loaded_at=NOW - LONG)))
    assert [(d.verb, d.service) for d in found] == [(Verb.DRAIN, "s")]


def test_switched_off_forecasts_do_not_touch_resident_hours():
    here = a_world(a_service(resident=DAY), forecasts={"s": Forecast(NOW, load_s=LOAD_S, automatic=False)})
    now = JOB - 60
    hosts = {"h1": a_host(seen_at=now)}
    assert len(acting(plan(replace(here, hosts=hosts), POLICY, now))) == 1


# S04 over time


def test_the_report_is_ready_before_its_minute_and_nothing_is_loaded_twice():
    farm = Farm(world(a_service(), a_card()), load_s={"s": LOAD_S})
    while farm.now < JOB:
        farm.step(10)
    assert farm.was_ready["s"][0] <= JOB - POLICY.preload_lead_s + 10
    farm.call("s")
    farm.step()
    assert farm.answered["s"] <= JOB + 1
    while farm.now < JOB + 600:
        farm.step(10)
    assert len(farm.did("s", Verb.START)) == 1


def test_a_preload_that_nobody_used_goes_for_idleness_and_is_not_repeated():
    quick = Policy(half_empty_pct=0, cold_sleep_pct=0)
    forecast = Forecast(NOW, (0.0, 0.6, 0.0, 0.0, 0.0), load_s=LOAD_S)
    here = world(a_service(), a_service("other"), forecast=forecast)
    farm = Farm(here, policy=quick, load_s={"s": LOAD_S})
    while farm.now < NOW + 5 * HOUR_S:
        farm.step(60)
    assert HOUR_S - POLICY.preload_lead_s - LOAD_S <= farm.was_ready["s"][0] - NOW <= HOUR_S
    assert len(farm.did("s", Verb.START)) == 1
    assert farm.did("s", Verb.STOP)[0].reason is Reason.IDLE


def test_calls_of_the_service_end_the_expectation():
    called = a_service(demand=Demand(last_call_at=JOB - 30))
    assert preloads(at(JOB + 10, called)) == []
