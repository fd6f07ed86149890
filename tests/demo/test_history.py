"""The demo's past: plausible, quick to make, and enough for a forecast of its jobs from the first minute."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from console import forecasts as seam
from console.catalog.models import Forecast, Service
from console.usage.models import DailyForecast, HourlyCalls, Session
from demo import farm, history
from scheduler.forecast import due, within
from scheduler.policy import Policy
from workers.control import forecasts

RULES = Policy(**farm.POLICY)
#: A Sunday afternoon in Shanghai.
NOW = datetime(2026, 11, 29, 15, 3, 20, tzinfo=timezone.get_default_timezone())
CHECKS = {farm.CHECK_STREAM, farm.CHECK_PLAIN}


@pytest.fixture
def made(db, tmp_path, settings, monkeypatch):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    monkeypatch.setattr(seam, "_known", ((), {}))
    farm.make(tmp_path)
    history.make(NOW)


def foreseen(now: datetime) -> dict:
    while forecasts.run(now):
        pass
    return seam.forecasts()


def test_it_is_made_once(made):
    calls, sessions = HourlyCalls.objects.count(), Session.objects.count()
    assert 2000 < calls < 20000
    assert 1000 < sessions < 10000
    assert history.make(NOW) == 0
    assert (HourlyCalls.objects.count(), Session.objects.count()) == (calls, sessions)


def test_nothing_is_of_the_future_and_nothing_older_than_months(made):
    assert not Session.objects.filter(last__gte=NOW).exists()
    assert not HourlyCalls.objects.filter(hour__gte=NOW).exists()
    assert not Session.objects.filter(start__lt=NOW - timedelta(days=160)).exists()
    assert not HourlyCalls.objects.filter(service__in=CHECKS).exists()
    assert DailyForecast.objects.count() > 300


def test_the_monday_report_and_a_job_within_minutes_are_foreseen(made):
    known = foreseen(NOW)
    monday = datetime(2026, 11, 30, 0, 10, tzinfo=NOW.tzinfo)
    assert [at for at, _ in known[history.REPORT].moments] == [monday.timestamp()]
    soon = (NOW + history.SOON).replace(second=0, microsecond=0)
    assert soon.timestamp() in [at for at, _ in known[history.SOON_JOB].moments]
    job = known[history.SOON_JOB]
    assert due(job, RULES, NOW.timestamp(), job.load_s + RULES.preload_lead_s) is None
    assert due(job, RULES, soon.timestamp() - 60, job.load_s + RULES.preload_lead_s).at == soon.timestamp()


def test_jobs_by_workday_month_and_month_end_are_foreseen(made):
    known = foreseen(datetime(2026, 11, 29, 23, 59, tzinfo=NOW.tzinfo))
    rules = {row.service.name: {m[2] for m in row.moments} for row in Forecast.objects.select_related("service")}
    assert "daily" in rules[history.WORKDAY_JOB]
    assert rules[history.MONTH_END_JOB] == {"last_workday"}  # Monday the 30th
    assert known[history.MONTH_END_JOB].moments
    foreseen(datetime(2026, 11, 30, 12, 0, tzinfo=NOW.tzinfo))
    row = Forecast.objects.get(service__name=history.MONTHLY_JOB)
    assert {m[2] for m in row.moments} == {"monthly"}


def test_most_warm_and_cold_ones_are_not_kept_awake_by_it(made):
    """A demo is watched for minutes: memory must be seen to be given back."""
    monday = datetime(2026, 11, 30, 11, 0, tzinfo=NOW.tzinfo)
    known, kept = foreseen(monday), set()
    for service in Service.objects.exclude(tier="hot"):
        if within(known[service.name], RULES, monday.timestamp(), 3600) * 100 >= RULES.forecast_idle_pct:
            kept.add(service.name)
    assert kept >= history.OFFICE
    assert len(kept) <= 5


def test_the_services_that_the_check_finds_cold_are_never_loaded_ahead(made):
    foreseen(NOW)
    rows = Forecast.objects.filter(service__name__in=CHECKS)
    assert [row.automatic for row in rows] == [False, False]


@pytest.mark.parametrize(
    "day", [datetime(2026, 2, 28, 9, 0), datetime(2026, 10, 3, 23, 58), datetime(2027, 3, 1, 0, 2)]
)
def test_on_whatever_day_it_is_made_nothing_overlaps(day):
    now = day.replace(tzinfo=NOW.tzinfo)
    by_service: dict[str, list[history.Span]] = {}
    for span in history.all_spans(now):
        by_service.setdefault(span.service, []).append(span)
    for spans in by_service.values():
        spans.sort(key=lambda s: s.start)
        assert all(a.last < b.start for a, b in zip(spans, spans[1:], strict=False))
        assert all(s.start < s.last and s.calls > 0 for s in spans)
