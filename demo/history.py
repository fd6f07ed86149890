"""Five weeks of calls before the demo began, so that it has habits to foresee from its first minute.

A few services keep office hours, some have jobs at their minute, most are called now and then; the two that the demo's
check finds cold have no past, and are never loaded ahead. The same for the same moment: nothing is drawn by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from hashlib import blake2s
from typing import Any

from demo.services import CHECK_PLAIN, CHECK_STREAM, SERVICES, Plan
from scheduler.world import Tier

DAYS = 35
HOUR = timedelta(hours=1)
#: Warm ones called in most hours of an office day; the others too seldom for a forecast.
OFFICE = frozenset({"fund-qa", "process-helper"})
OFFICE_HOURS = range(8, 20)
SHARE_PCT = {"office": 85, "night": 12, "seldom": 12}  # hours with calls
#: A job that begins this long after the demo was set up: its preload can be watched in the first minutes.
SOON = timedelta(minutes=6)
SOON_JOB = "doc-translate"
REPORT, REPORT_AT = "monday-report", time(0, 10)
WORKDAY_JOB, WORKDAY_AT = "inspection-report", time(6, 30)
MONTHLY_JOB, MONTHLY_AT = "estate-valuation", time(9, 30)
MONTH_END_JOB, MONTH_END_AT = "research-writer", time(18, 0)
MONTHS = 4
JOB_CALLS, JOB_LASTS = 40, timedelta(minutes=15)
WAITED_PCT = 22  # of sessions: there was no forecast then
PER_CALL = {"prompt_tokens": 420, "generated_tokens": 160, "total_ms": 2300}


@dataclass(frozen=True, slots=True)
class Span:
    """Calls of a service without a pause."""

    service: str
    start: datetime
    last: datetime
    calls: int


def make(now: datetime) -> int:
    """Rows up to `now` (site time) on a farm that nobody called yet; how many spans of calls were made."""
    from console.catalog.models import Forecast, Service
    from console.usage.models import DailyForecast, HourlyCalls, Session

    if HourlyCalls.objects.exists():
        return 0
    spans = [span for span in all_spans(now) if span.last < now - HOUR]
    HourlyCalls.objects.bulk_create(_hours(spans), batch_size=1000)
    sessions = [
        Session(service=one.service, start=one.start, last=one.last, hit=_dice(one.service, one.start) >= WAITED_PCT)
        for one in spans
    ]
    Session.objects.bulk_create(sessions, batch_size=1000)
    DailyForecast.objects.bulk_create(_days(sessions, now))
    for one in Service.objects.filter(name__in=(CHECK_STREAM, CHECK_PLAIN)):
        values = {"checked_at": now - timedelta(days=1), "changed_at": now, "hours_from": now, "automatic": False}
        Forecast.objects.get_or_create(service=one, defaults=values)
    return len(spans)


def all_spans(now: datetime) -> list[Span]:
    return [span for plan in SERVICES if plan.calls for span in (*_habit(plan, now), *_jobs(plan.name, now))]


def _dice(*words: object) -> int:
    """0..99, the same for the same words."""
    return blake2s(repr(words).encode()).digest()[0] * 100 // 256


def _habit(plan: Plan, now: datetime) -> Iterator[Span]:
    """Hours with calls, joined where one follows the other."""
    hour, began = (now - timedelta(days=DAYS)).replace(minute=0, second=0, microsecond=0), None
    while hour < now:
        called = _dice(plan.name, hour.isoformat()) < _share_pct(plan, hour)
        if called and began is None:
            began = hour
        elif not called and began is not None:
            yield _span(plan, began, hour)
            began = None
        hour += HOUR


def _span(plan: Plan, began: datetime, ended: datetime) -> Span:
    """From some minute of its first hour on: people begin when they begin."""
    start = began + timedelta(seconds=36 * _dice(plan.name, "minute", began.isoformat()))
    last = max(ended - timedelta(minutes=10), start + timedelta(minutes=1))
    hours = (ended - began) // HOUR
    return Span(plan.name, start, last, hours * max(1, round(plan.calls * 3)))


def _share_pct(plan: Plan, hour: datetime) -> int:
    if plan.name in JOBS:
        return 0
    if plan.tier is not Tier.HOT and plan.name not in OFFICE:
        return SHARE_PCT["seldom"]
    return SHARE_PCT["office" if works(hour.date()) and hour.hour in OFFICE_HOURS else "night"]


def works(day: date) -> bool:
    from console.workdays import kind
    from scheduler.habits import DayKind

    return kind(day) is DayKind.WORKDAY


def _jobs(name: str, now: datetime) -> Iterator[Span]:
    """The runs of a periodic job, each a few seconds after its minute."""
    if name not in JOBS:
        return
    for start in JOBS[name](now):
        began = start + timedelta(seconds=_dice(name, start.isoformat()) // 2)
        yield Span(name, began, began + JOB_LASTS, JOB_CALLS)


def _on(days: Iterator[date], at: time, now: datetime) -> Iterator[datetime]:
    return (datetime.combine(day, at, now.tzinfo) for day in days)


def _every_day(now: datetime) -> Iterator[date]:
    return (now.date() - timedelta(days=n) for n in range(1, DAYS))


def _reports(now: datetime) -> Iterator[datetime]:
    return _on((day for day in _every_day(now) if day.weekday() == 0), REPORT_AT, now)


def _workdays(now: datetime) -> Iterator[datetime]:
    return _on((day for day in _every_day(now) if works(day)), WORKDAY_AT, now)


def _soon(now: datetime) -> Iterator[datetime]:
    first = (now + SOON).replace(second=0, microsecond=0)
    return (first - timedelta(days=n) for n in range(1, DAYS))


def _months(now: datetime) -> Iterator[date]:
    """First days of this month and of those before."""
    first = now.date().replace(day=1)
    for _ in range(MONTHS):
        yield first
        first = (first - timedelta(days=1)).replace(day=1)


def _monthly(now: datetime) -> Iterator[datetime]:
    return _on(_months(now), MONTHLY_AT, now)


def _month_ends(now: datetime) -> Iterator[datetime]:
    return _on((_last_workday(first) for first in _months(now)), MONTH_END_AT, now)


def _last_workday(next_month: date) -> date:
    """Of the month before."""
    day = next_month - timedelta(days=1)
    while not works(day):
        day -= timedelta(days=1)
    return day


JOBS = {
    REPORT: _reports,
    WORKDAY_JOB: _workdays,
    SOON_JOB: _soon,
    MONTHLY_JOB: _monthly,
    MONTH_END_JOB: _month_ends,
}


def _hours(spans: list[Span]) -> list[Any]:
    """One row an hour and service, by the key of its own company; spans of one hour are summed."""
    from console.accounts.models import ApiKey
    from console.usage.models import HourlyCalls

    tenants = {plan.name: plan.tenant for plan in SERVICES}
    keys = {key.tenant.slug: key.pk for key in ApiKey.objects.select_related("tenant").order_by("pk")}
    calls: dict[tuple[str, datetime], int] = {}
    for span in spans:
        first = span.start.replace(minute=0, second=0, microsecond=0)
        hours = [first + HOUR * n for n in range((span.last - first) // HOUR + 1)]
        for hour in hours:
            calls[span.service, hour] = calls.get((span.service, hour), 0) + max(1, span.calls // len(hours))
    return [
        HourlyCalls(
            hour=hour,
            service=name,
            tenant=tenants[name],
            key_id=keys.get(tenants[name], 0),
            calls=count,
            ok=count,
            **{field: each * count for field, each in PER_CALL.items()},
        )
        for (name, hour), count in calls.items()
    ]


def _days(sessions: list[Any], now: datetime) -> list[Any]:
    from console.usage.models import DailyForecast

    found: dict[tuple[date, str], Any] = {}
    for one in sessions:
        day = one.start.astimezone(now.tzinfo).date()
        row = found.setdefault((day, one.service), DailyForecast(day=day, service=one.service))
        row.sessions += 1
        row.hits += int(one.hit)
    return list(found.values())
