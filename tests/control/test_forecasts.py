"""Forecasts from rows: whole days once a day, today's calls every few minutes, preloads judged by their use."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from console import forecasts as seam
from console import state
from console.catalog.models import Forecast, LoadTime, Service
from console.journal.models import Decision
from console.policies.models import PolicyValue
from console.state import moment
from console.usage.models import DailyForecast, HourlyCalls, Session
from scheduler.forecast import due, within
from scheduler.policy import Policy
from tests import factories
from workers.control import forecasts, preloads

RULES = Policy()
#: A Sunday evening in Shanghai, ten to midnight: the report of Monday 00:10 is near.
NOW = datetime(2026, 11, 29, 23, 50, tzinfo=timezone.get_default_timezone())
REPORT = NOW + timedelta(minutes=20)


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests share a clock and roll their rows back: another's forecasts would look like ours."""
    monkeypatch.setattr(seam, "_known", ((), {}))


def hour_of_calls(service: str, at: datetime, calls: int = 3) -> None:
    hour = at.replace(minute=0, second=0, microsecond=0)
    HourlyCalls.objects.create(hour=hour, service=service, tenant="t", key_id=1, calls=calls)


def session(service: str, at: datetime, minutes: int = 5) -> Session:
    return Session.objects.create(service=service, start=at, last=at + timedelta(minutes=minutes))


def report(service: str, weeks: int = 5, off_s: int = 0) -> None:
    for n in range(1, weeks + 1):
        at = REPORT - timedelta(weeks=n) + timedelta(seconds=off_s * (n % 3))
        session(service, at)
        hour_of_calls(service, at)


@pytest.fixture
def service(db: None) -> Service:
    factories.host("h1", bandwidth_mib_s=1000)
    factories.host("h2", bandwidth_mib_s=200, cards=1)
    return factories.service("report", weights_mib=20000, tier="cold")


def forecast(service: Service) -> Forecast:
    return Forecast.objects.get(service=service)


def test_the_monday_report_is_expected_to_the_minute(service):
    report("report", off_s=60)
    assert forecasts.run(NOW) == 1
    known = seam.forecasts()["report"]
    ((at, probability),) = known.moments
    assert abs(at - REPORT.timestamp()) <= 120
    assert probability == 1.0
    assert within(known, RULES, NOW.timestamp(), 3600) > 0.99
    expected = due(known, RULES, at - 200, known.load_s + RULES.preload_lead_s)
    assert (expected.at, expected.rule) == (at, "periodic")


def test_hours_of_workdays_make_hours_of_the_next_workday(service):
    for n in range(1, 36):
        nine = NOW.replace(hour=9) - timedelta(days=n)
        if nine.weekday() < 5:
            hour_of_calls("report", nine)
    forecasts.run(NOW)
    row = forecast(service)
    assert (row.hours_from, len(row.hours)) == (NOW.replace(hour=0, minute=0), 48)
    sunday, monday = row.hours[9], row.hours[24 + 9]
    assert monday > 0.8
    assert sunday < 0.3
    assert row.hours[24 + 10] == 0.0


def test_a_service_that_was_never_called_is_expected_by_nobody(service):
    forecasts.run(NOW)
    known = seam.forecasts()["report"]
    assert set(known.hours) == {0.0}
    assert known.moments == ()
    assert within(known, RULES, NOW.timestamp(), 86400) == 0.0


def test_yesterdays_hours_are_remembered_and_todays_as_they_come(service):
    hour_of_calls("report", NOW - timedelta(days=1, hours=3))
    forecasts.run(NOW)
    assert [h for h, called in enumerate(forecast(service).recalls) if called] == [20]
    hour_of_calls("report", NOW - timedelta(hours=1))
    later = NOW + timedelta(minutes=6)
    forecasts.run(later)
    assert [h for h, called in enumerate(forecast(service).recalls) if called] == [20, 24 + 22]


def test_the_load_it_must_be_early_for_is_that_of_the_slowest_host(service):
    forecasts.run(NOW)
    slow_s = 20000 / 200 + RULES.load_init_s + RULES.load_warm_up_s
    assert forecast(service).load_s == pytest.approx(slow_s, abs=0.1)
    host = factories.Host.objects.get(name="h2")
    LoadTime.objects.create(service=service, host=host, kind="start", seconds=[44.0])
    forecasts.run(NOW + timedelta(minutes=6))
    assert forecast(service).load_s == pytest.approx(44.0, abs=0.1)
    Service.objects.filter(pk=service.pk).update(card_classes=["no-such"])
    forecasts.run(NOW + timedelta(minutes=12))
    assert forecast(service).load_s == 0.0


def test_nothing_is_written_while_nothing_changes(service):
    report("report")
    assert forecasts.run(NOW) == 1
    changed_at = forecast(service).changed_at
    assert forecasts.run(NOW + timedelta(minutes=1)) == 0
    assert forecasts.run(NOW + timedelta(minutes=6)) == 0
    assert forecast(service).changed_at == changed_at
    assert forecast(service).checked_at == NOW + timedelta(minutes=6)


def test_a_new_day_and_a_new_policy_are_worked_out_anew(service):
    report("report")
    forecasts.run(NOW)
    PolicyValue.objects.create(name="forecast_repeats", value=6)
    forecasts.run(NOW + timedelta(minutes=6))
    assert forecast(service).moments == []
    PolicyValue.objects.all().delete()
    forecasts.run(NOW + timedelta(minutes=12))
    assert len(forecast(service).moments) == 1
    forecasts.run(NOW + timedelta(minutes=30))
    assert forecast(service).hours_from == NOW + timedelta(minutes=10)


def test_services_take_turns(service):
    for n in range(4):
        factories.service(f"s{n}")
    for _ in range(3):
        forecasts.run(NOW, most=2)
    assert Forecast.objects.count() == 5
    assert forecasts.run(NOW, most=2) == 0


def test_queries_do_not_grow_with_the_services_of_a_run(service, django_assert_num_queries):
    for n in range(3):
        factories.service(f"a{n}")
        hour_of_calls(f"a{n}", NOW - timedelta(days=2))
    forecasts.run(NOW)
    with django_assert_num_queries(12) as asked:
        forecasts.run(NOW + timedelta(minutes=5, seconds=1))
    for n in range(6):
        factories.service(f"b{n}")
        hour_of_calls(f"b{n}", NOW - timedelta(days=2))
    forecasts.run(NOW + timedelta(seconds=2))
    with django_assert_num_queries(len(asked)):
        forecasts.run(NOW + timedelta(minutes=8))


# What the World carries


def test_the_world_carries_them_and_reads_them_again_only_when_one_changed(service, django_assert_num_queries):
    report("report")
    forecasts.run(NOW)
    first = seam.forecasts()
    with django_assert_num_queries(1):
        assert seam.forecasts() is first
    assert state.world(NOW.timestamp()).forecasts["report"].moments == first["report"].moments
    seam.turn_off(service, NOW + timedelta(seconds=1))
    assert seam.forecasts()["report"].automatic is False
    service.delete()
    assert seam.forecasts() == {}


# Judging preloads


def began(service: Service, at: datetime, expected: datetime, verb: str = "start", **more: object) -> None:
    numbers = {"expected_at": expected.timestamp(), "rule": "hour", **more}
    Decision.objects.create(at=at, verb=verb, reason="forecast", service=service, numbers=numbers)


@pytest.fixture
def known(service: Service) -> Service:
    forecasts.run(NOW)
    return service


@pytest.mark.parametrize(
    ("called_min", "after_min", "judged"),
    [(None, 30, []), (None, 61, [0]), (5, 6, [1]), (59, 70, [1]), (61, 75, [0]), (-2, 5, [1]), (-30, 61, [0])],
)
def test_a_preload_is_of_use_when_a_call_comes_within_its_horizon(known, called_min, after_min, judged):
    """It began three minutes before its hour."""
    hour = NOW + timedelta(minutes=10)
    began(known, hour - timedelta(minutes=3), hour)
    if called_min is not None:
        session("report", hour + timedelta(minutes=called_min), minutes=0)
    preloads.judge(hour + timedelta(minutes=after_min), RULES)
    assert [of_use for _, of_use in forecast(known).judged] == judged


def test_each_is_judged_once_however_often_it_was_started(known):
    hour = NOW + timedelta(minutes=10)
    for n in range(3):
        began(known, hour - timedelta(seconds=180 - n), hour, verb="wake" if n else "start")
    session("report", hour)
    assert preloads.judge(hour + timedelta(minutes=2), RULES) == 1
    assert preloads.judge(hour + timedelta(minutes=3), RULES) == 0
    row = DailyForecast.objects.get(service="report")
    assert (row.preloads, row.used) == (1, 1)


def test_refused_ones_and_resident_hours_are_not_judged(known):
    hour = NOW + timedelta(minutes=10)
    began(known, NOW, hour, rule="resident")
    Decision.objects.create(
        at=NOW,
        verb="start",
        reason="forecast",
        service=known,
        refusal="no_capacity",
        numbers={"expected_at": hour.timestamp()},
    )
    assert preloads.judge(hour + timedelta(hours=2), RULES) == 0


@pytest.mark.parametrize(("of_use", "stays"), [(8, True), (7, False), (0, False), (20, True)])
def test_with_too_few_of_use_among_twenty_it_loses_them(known, of_use, stays):
    judged = [[float(n), int(n < of_use)] for n in range(19)]
    Forecast.objects.filter(service=known).update(judged=judged)
    hour = NOW + timedelta(minutes=10)
    began(known, NOW, hour)
    if of_use == 20:
        session("report", hour)
    preloads.judge(hour + timedelta(hours=2), RULES)
    assert forecast(known).automatic is stays
    rows = Decision.objects.filter(verb=preloads.VERB, reason=preloads.REASON)
    assert [row.numbers for row in rows] == ([] if stays else [{"used": of_use, "preloads": 20}])


def test_before_twenty_nobody_loses_anything(known):
    Forecast.objects.filter(service=known).update(judged=[[float(n), 0] for n in range(18)])
    began(known, NOW, NOW)
    preloads.judge(NOW + timedelta(hours=2), RULES)
    row = forecast(known)
    assert row.automatic
    assert len(row.judged) == 19


def test_only_the_last_twenty_count(known):
    Forecast.objects.filter(service=known).update(judged=[[float(n), int(n >= 10)] for n in range(20)])
    began(known, NOW, NOW)
    preloads.judge(NOW + timedelta(hours=2), RULES)
    row = forecast(known)
    assert len(row.judged) == 20
    assert sum(of_use for _, of_use in row.judged) == 10


def test_the_owners_switch_begins_anew(known):
    Forecast.objects.filter(service=known).update(judged=[[float(n), 0] for n in range(20)], automatic=False)
    assert seam.turn_on(known, NOW)
    assert not seam.turn_on(known, NOW)
    row = forecast(known)
    assert row.automatic
    assert row.judged == []
    began(known, NOW, NOW)
    preloads.judge(NOW + timedelta(hours=2), RULES)
    assert forecast(known).automatic


def test_who_judged_meanwhile_is_not_overwritten(known):
    """Two controls: the second finds another row than it read."""
    row = forecast(known)
    Forecast.objects.filter(pk=row.pk).update(changed_at=NOW + timedelta(seconds=1))
    row.service = known
    assert preloads._record(row, [[1.0, 1]], NOW, RULES) == 0
    assert forecast(known).judged == []
    assert moment(1.0) < NOW
