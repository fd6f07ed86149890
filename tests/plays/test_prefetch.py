"""Idle moments: what was called yesterday at this hour, into free room, in nobody's way."""

from __future__ import annotations

from dataclasses import replace

from scheduler.decision import Reason, Verb
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.world import Budget, Eviction, Forecast, Phase, Pool, Tier
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

AGAIN = Forecast(NOW, (0.2,) * 3, recalls=(True,) * 3)


def fetched(*things, policy: Policy = POLICY, forecast: Forecast = AGAIN, **more):
    more.setdefault("forecasts", {"s": forecast})
    return [d for d in acting(plan(a_world(*things, **more), policy, NOW)) if d.reason is Reason.FORECAST]


def test_what_was_called_yesterday_at_this_hour_is_loaded():
    (start,) = fetched(a_service())
    assert (start.verb, start.service, start.numbers["rule"]) == (Verb.START, "s", "recalled")
    assert start.numbers["expected_at"] == NOW
    assert "probability_pct" not in start.numbers


@cases("forecast", [replace(AGAIN, recalls=(False,)), replace(AGAIN, automatic=False), Forecast(NOW)])
def test_what_was_not_or_has_lost_the_right_is_not(forecast):
    assert fetched(a_service(), forecast=forecast) == []


def test_what_is_on_the_pools_list_is_loaded_without_a_past():
    pools = {"default": Pool("default", prefetch=frozenset({"s"})), "other": Pool("other")}
    (start,) = fetched(a_service(), forecasts={}, pools=pools)
    assert start.numbers["rule"] == "listed"
    elsewhere = {"default": Pool("default"), "other": Pool("other", prefetch=frozenset({"s"}))}
    assert fetched(a_service(), forecasts={}, pools=elsewhere) == []


@cases(("ago", "quiet"), [(5, False), (29, False), (31, True)])
def test_it_waits_until_the_host_has_been_quiet(ago, quiet):
    other = a_service("other", weights=2000)
    loaded = a_replica(1, "other", loaded_at=NOW - ago)
    assert bool(fetched(a_service(), other, loaded)) is quiet
    evicted = (Eviction("other", "c1", NOW - ago, open=False),)
    assert bool(fetched(a_service(), other, evictions=evicted)) is quiet


@cases("phase", [Phase.STARTING, Phase.DRAINING])
def test_a_host_that_loads_or_unloads_is_not_quiet(phase):
    want = {"want_since": NOW - 2.0}
    moving = a_replica(1, "other", phase=phase, reason="idle", in_flight=0, **want)
    assert fetched(a_service(), a_service("other", weights=2000), moving) == []


@cases("host", [a_host(seen_at=NOW - 40), a_host(seen_at=None), a_host(cordoned=True)])
def test_a_silent_or_cordoned_host_gets_nothing(host):
    assert fetched(a_service(), host) == []


def test_who_spent_its_card_budget_is_not_prefetched():
    for spent, loads in ((99, 1), (100, 0)):
        assert len(fetched(a_service(), budgets=(Budget("t", 100, spent),))) == loads


def test_a_neighbour_that_is_disturbed_is_left_in_peace():
    other = a_service("other", weights=2000)
    for pct, loads in ((0.0, 1), (POLICY.throttle_rise_pct + 1.0, 0)):
        assert len(fetched(a_service(), other, a_replica(1, "other", disturbance_pct=pct))) == loads


@cases(("purpose", "loads"), [("ondemand", 1), ("pilot", 1), ("resident", 0), ("elastic", 0)])
def test_pools_whose_room_is_meant_for_others_are_left_alone(purpose, loads):
    named = a_service(pools=frozenset({"default"}))
    assert len(fetched(named, pools={"default": Pool("default", purpose=purpose)})) == loads


def test_one_at_a_time():
    services = [a_service(name, weights=3000) for name in "abcdef"]
    forecasts = {s.name: AGAIN for s in services}
    assert len(fetched(*services, forecasts=forecasts)) == 1


def test_part_of_each_card_stays_free_for_callers():
    """80 % of 74,766 MiB may be filled: 59,813."""
    fixed = 1000
    for weights, fits in ((59813 - fixed - 4000, True), (59814 - fixed - 4000, False)):
        assert bool(fetched(a_service(weights=weights, headroom=400, overhead=600))) is fits
    assert fetched(a_service(weights=58000), policy=Policy(prefetch_card_pct=100))


def test_a_room_somebody_was_refused_of_late_is_not_for_prefetches():
    pools = {"default": Pool("default", refused_at=NOW - 60)}
    assert fetched(a_service(), pools=pools) == []
    assert fetched(a_service(), pools={"default": Pool("default", refused_at=NOW - 7200)}) != []


def test_nor_where_somebody_is_refused_right_now():
    big = a_service("big", weights=90000, demand=held())
    assert fetched(a_service(), big) == []
    apart = a_service("big", weights=90000, demand=held(), pools=frozenset({"other"}))
    assert fetched(a_service(), apart) != []


@cases("phase", [Phase.ASLEEP, Phase.READY, Phase.FAILED])
def test_a_service_with_any_copy_is_left_alone(phase):
    copy = a_replica(1, "s", "c2", phase, want_since=NOW - LONG, failed_at=NOW)
    found = fetched(a_service(tier=Tier.WARM, max_replicas=3), a_card("c1"), a_card("c2", "h2"), copy)
    assert [d for d in found if d.verb is Verb.START] == []


@cases("field", ["let_go_at", "last_reclaimed_at"])
def test_what_went_within_the_hour_is_not_fetched_back(field):
    assert fetched(a_service(**{field: NOW - 600})) == []
    assert fetched(a_service(**{field: NOW - 4500})) != []


def test_what_failed_is_for_its_callers_to_try():
    assert fetched(a_service(failures=(a_failure("c9"),))) == []


def test_the_filters_of_every_placement_hold():
    assert fetched(a_service(card_classes=frozenset({"other"}))) == []
    assert fetched(a_service(pools=frozenset({"other"}))) == []
    assert fetched(a_service(), a_card(healthy=False)) == []
    assert fetched(a_service(), a_card(unavailable_mib=None)) == []


def test_services_take_turns_so_that_one_that_fits_nowhere_stops_nobody():
    never = [a_service(f"n{i}", card_classes=frozenset({"other"})) for i in range(20)]
    world = a_world(*never, a_service("z"), forecasts={s.name: AGAIN for s in never} | {"z": AGAIN})
    found = set()
    for second in range(25):
        hosts = {"h1": a_host(seen_at=NOW + second)}
        found |= {d.service for d in acting(plan(replace(world, hosts=hosts), POLICY, NOW + second))}
    assert found == {"z"}


def test_over_an_hour_the_free_room_fills_one_by_one_and_callers_still_find_room():
    services = [a_service(name, weights=12000) for name in "abcdef"]
    forecasts = {s.name: Forecast(NOW, (0.2,) * 4, recalls=(True,) * 4) for s in services}
    called = a_service("caller", weights=30000)
    farm = Farm(a_world(*services, called, forecasts=forecasts))
    while sum(bool(farm.ready(name)) for name in "abcdef") < 3:
        assert farm.now < NOW + 900
        farm.step(5)
    times = sorted(at for at, d in farm.journal if d.verb is Verb.START)
    assert all(b - a >= POLICY.prefetch_quiet_s for a, b in zip(times, times[1:], strict=False))
    farm.call("caller")
    took = farm.until(lambda f: "caller" in f.answered, limit_s=120)
    assert took <= 30
