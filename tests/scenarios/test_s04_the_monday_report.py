"""S04: a report model is called once a week, Monday 00:10; by its tier it is cold."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from scheduler.decision import Reason, Verb
from scheduler.habits import DayKind, Past, day_ahead
from scheduler.policy import Policy
from scheduler.world import Forecast, Phase, Want
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_host, a_replica, a_service, a_world

MONDAY = date(2026, 11, 30)
HOUR_S, MINUTE_S = 3600, 60


def calendar(off: frozenset[date] = frozenset()) -> dict[date, DayKind]:
    """Weekends are off, and what the decree adds."""
    days = [MONDAY + timedelta(days=n) for n in range(-420, 40)]
    return {d: DayKind.DAY_OFF if d.weekday() >= 5 or d in off else DayKind.WORKDAY for d in days}


def weekly(minute: int, weeks: int, *, late_min: tuple[int, ...] = (0,), day: date = MONDAY) -> Past:
    """A run each week at that minute, give or take; nothing else was ever called."""
    runs = [(day - timedelta(weeks=n), minute + late_min[n % len(late_min)]) for n in range(1, weeks + 1)]
    called = {day - timedelta(days=n): 0 for n in range(1, 36)}
    return Past(called | {d: 1 << at // 60 for d, at in runs if d in called}, runs)


def foreseen(past: Past, *, load_s: float, day: date = MONDAY, kinds: dict[date, DayKind] | None = None) -> Forecast:
    """The forecast of the evening before; NOW is that midnight less an hour."""
    kinds = kinds or calendar()
    evening, ahead = (
        day_ahead(past, kinds, d, day - timedelta(days=1), POLICY) for d in (day - timedelta(days=1), day)
    )
    midnight = NOW + HOUR_S
    moments = tuple((midnight + m.minute * MINUTE_S, m.probability) for m in ahead.moments)
    return Forecast(midnight - 24 * HOUR_S, (*evening.hours, *ahead.hours), moments=moments, load_s=load_s)


def at(minute: int) -> float:
    return NOW + HOUR_S + minute * MINUTE_S


def farm_of(forecast: Forecast, load_s: float, *others, policy: Policy = POLICY, **service) -> Farm:
    things = (a_service("report", **service), a_host("h1"), *others)
    world = a_world(*things, forecasts={"report": forecast})
    return Farm(world, policy=policy, load_s={"report": load_s})


def run_to(farm: Farm, when: float, step: float = 5.0) -> None:
    while farm.now < when:
        farm.step(min(step, when - farm.now))


@pytest.mark.parametrize("load_s", [10.0, 200.0])
@pytest.mark.parametrize("minute", [10, 0, 53])
@pytest.mark.parametrize("late_min", [(0,), (0, 1, 2)])
def test_it_is_ready_before_its_minute(minute, load_s, late_min):
    farm = farm_of(foreseen(weekly(minute, 5, late_min=late_min), load_s=load_s), load_s)
    run_to(farm, at(minute))
    (start,) = farm.did("report", Verb.START)
    assert start.reason is Reason.FORECAST
    assert start.numbers["rule"] == "periodic"
    (ready_at,) = farm.was_ready["report"]
    assert at(minute) - POLICY.preload_lead_s - 15 <= ready_at <= at(minute)
    farm.call("report")
    farm.step()
    assert farm.answered["report"] - at(minute) <= 2


@pytest.mark.parametrize(("weeks", "is_ready"), [(1, False), (2, False), (3, True), (12, True)])
def test_three_mondays_are_a_habit(weeks, is_ready):
    farm = farm_of(foreseen(weekly(10, weeks), load_s=10.0), 10.0)
    run_to(farm, at(10))
    assert bool(farm.ready("report")) is is_ready


def test_on_another_day_nothing_is_loaded():
    tuesday = MONDAY + timedelta(days=1)
    forecast = foreseen(weekly(10, 5), load_s=10.0, day=tuesday)
    farm = farm_of(forecast, 10.0)
    run_to(farm, at(60), 20)
    assert farm.did("report") == []


def test_a_holiday_does_not_move_a_weekly_job():
    """A job of the machine's clock knows no decree."""
    kinds = calendar(off=frozenset({MONDAY}))
    farm = farm_of(foreseen(weekly(10, 5), load_s=10.0, kinds=kinds), 10.0)
    run_to(farm, at(10))
    assert farm.ready("report")


@pytest.mark.parametrize("minute", [10, 90])
def test_a_last_workday_report_comes_when_the_holiday_makes_another_day_the_last(minute):
    """The month ends on a holiday: the workday before it is the last."""
    day = date(2026, 11, 27)
    kinds = calendar(off=frozenset({MONDAY}))
    lasts = [date(2026, 10, 30), date(2026, 9, 30), date(2026, 8, 31)]
    past = Past({day - timedelta(days=n): 0 for n in range(1, 36)}, [(d, minute) for d in lasts])
    farm = farm_of(foreseen(past, load_s=10.0, day=day, kinds=kinds), 10.0)
    run_to(farm, at(minute))
    assert farm.ready("report")


def test_between_its_runs_it_goes_like_any_cold_service():
    quick = Policy(half_empty_pct=0)
    farm = farm_of(foreseen(weekly(10, 5), load_s=10.0), 10.0, a_service("other"), policy=quick)
    run_to(farm, at(10))
    farm.call("report")
    run_to(farm, at(10) + quick.idle_unload_s + quick.grace_s + 120, 10)
    assert not farm.ready("report")
    assert [d.reason for d in farm.did("report", Verb.STOP)] == [Reason.IDLE]


# On the whitelist, and in the grace


def idle_report(policy: Policy = POLICY, **service) -> Farm:
    """Ready and idle for long on a small card; nothing is expected of it."""
    there = a_replica(1, "report", kv_granted_mib=4000)
    world = a_world(a_card(total=24576), a_service("report", **service), a_service("other", weights=9000), there)
    return Farm(world, policy=policy, load_s={"report": 10.0, "other": 10.0})


def test_whitelisted_it_is_never_reclaimed_neither_for_idleness_nor_for_room():
    farm = idle_report(whitelisted_until=NOW + 10**6)
    farm.call("other")
    run_to(farm, NOW + 3 * POLICY.idle_unload_s, 20)
    assert farm.did("report") == []
    assert farm.ready("report")


def test_when_the_whitelist_ends_it_goes_like_the_others():
    farm = idle_report(whitelisted_until=NOW + 100)
    run_to(farm, NOW + POLICY.grace_s + 300, 20)
    assert not farm.ready("report")


@pytest.mark.parametrize("after_s", [1, 150, 299])
def test_a_call_in_the_grace_calls_the_reclaim_off(after_s):
    farm = idle_report()
    farm.step()
    (notice,) = farm.did("report", Verb.DRAIN)
    assert notice.not_before == NOW + POLICY.grace_s
    run_to(farm, NOW + after_s)
    farm.call("report")
    farm.step()
    (kept,) = farm.did("report", Verb.WAKE)
    assert kept.reason is Reason.CALL
    run_to(farm, NOW + POLICY.grace_s + 60)
    assert farm.ready("report")[0].drain_at is None
    assert farm.did("report", Verb.STOP) == []


def test_a_job_in_flight_at_the_deadline_keeps_it_and_one_that_slips_in_finishes_first():
    farm = idle_report()
    farm.step()
    run_to(farm, NOW + POLICY.grace_s - 3, 1)
    farm.calls[1] = 1
    run_to(farm, NOW + POLICY.grace_s + 5, 1)
    assert farm.ready("report")[0].drain_at is None

    late = idle_report()
    late.step()
    run_to(late, NOW + POLICY.grace_s + 1, 1)
    (replica,) = [r for r in late.world.replicas.values() if r.service == "report"]
    assert (replica.phase, replica.want) == (Phase.DRAINING, Want.DRAINED)
    late.calls[1] = 1
    run_to(late, NOW + POLICY.grace_s + 900, 5)
    assert late.did("report", Verb.STOP) == []
    late.calls[1] = 0
    run_to(late, late.now + 30, 1)
    (stop,) = late.did("report", Verb.STOP)
    assert not stop.force


def test_a_preload_that_found_no_room_is_said_and_the_caller_still_gets_it():
    """Somebody busy fills the card at ten past: nobody is sent away for a guess, but for the caller room is made."""
    busy = a_service("busy", weights=70000, priority=10)
    there = a_replica(1, "busy", kv_granted_mib=4000)
    farm = farm_of(foreseen(weekly(10, 5), load_s=10.0), 10.0, busy, there, weights=20000)
    farm.calls[1] = 1
    run_to(farm, at(10))
    assert not farm.ready("report")
    assert farm.ready("busy")
    farm.calls[1] = 0
    told = {d.numbers["expected_at"] for _, d in farm.journal if d.refusal and d.reason is Reason.FORECAST}
    assert told == {at(10)}
    farm.call("report")
    run_to(farm, at(10) + 60, 1)
    assert "report" in farm.answered
