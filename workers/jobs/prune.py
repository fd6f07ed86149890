"""Retention: what is older than it must be kept goes, in small steps that hold no lock for long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.contrib.sessions.models import Session
from django.db.models import Count, QuerySet
from django.utils import timezone

from console import state
from console.audit.models import Entry
from console.catalog.models import Replica
from console.jobs.models import Job
from console.journal.models import Advice, Decision, Event, Notice, ReclaimDay
from console.money.models import CardHour, CostDay, Holding, KeyCost, PoolHour, Symptom
from console.repack.models import Proposal
from console.requests import drafts, files
from console.usage.models import DailyForecast, HourlyCalls
from console.usage.models import Session as CallSession

STEP = 500  # rows a transaction
KEEP_DECISIONS = timedelta(days=180)  # logs are kept at least so long
KEEP_REPLICAS = timedelta(days=30)
KEEP_USAGE = timedelta(days=396)  # 13 months
KEEP_HOURS = timedelta(days=62)  # what a month's bill was made of, until the next month's is settled
KEEP_AUDIT = timedelta(days=3 * 366)  # the database refuses to let go of any before 180 days
KEEP_JOBS = timedelta(days=30)


def run(arguments: dict[str, object]) -> Iterator[float]:
    """Deletes step by step; yields the share done."""
    now = timezone.now()
    old: list[QuerySet] = [  # type: ignore[type-arg]
        Decision.objects.filter(at__lt=now - KEEP_DECISIONS),
        Event.objects.filter(at__lt=now - KEEP_DECISIONS),
        Advice.objects.filter(closed_at__lt=now - KEEP_DECISIONS),
        Notice.objects.filter(closed_at__lt=now - KEEP_DECISIONS),
        ReclaimDay.objects.filter(day__lt=(now - KEEP_USAGE).date()),
        Replica.objects.filter(ended_at__lt=now - KEEP_REPLICAS),
        HourlyCalls.objects.filter(hour__lt=now - KEEP_USAGE),
        Job.objects.filter(ended_at__lt=now - KEEP_JOBS),
        Proposal.objects.filter(closed_at__lt=now - KEEP_DECISIONS),
        Session.objects.filter(expire_date__lt=now),
        DailyForecast.objects.filter(day__lt=(now - KEEP_USAGE).date()),
        CallSession.objects.filter(last__lt=now - KEEP_USAGE),
        of_busy_services(now),
        CardHour.objects.filter(hour__lt=now - KEEP_HOURS),
        PoolHour.objects.filter(hour__lt=now - KEEP_HOURS),
        Holding.objects.filter(ended__lt=now - KEEP_HOURS),
        CostDay.objects.filter(day__lt=(now - KEEP_USAGE).date()),
        KeyCost.objects.filter(month__lt=(now - KEEP_USAGE).date()),
        Entry.objects.filter(at__lt=now - KEEP_AUDIT),
        Symptom.objects.filter(closed_at__lt=now - KEEP_DECISIONS),
        drafts.old(now),
    ]
    total = sum(rows.count() for rows in old)
    done = 0
    yield 0.0
    for rows in old:
        while batch := list(rows.order_by("pk").values_list("pk", flat=True)[:STEP]):
            rows.model.objects.filter(pk__in=batch).delete()
            done += len(batch)
            yield min(1.0, done / max(total, 1))
    for path in files.orphans(now):
        path.unlink(missing_ok=True)


def of_busy_services(now: datetime) -> QuerySet[CallSession]:
    """Sessions past the weeks of hourly history, of services with so many that no monthly job hides among them."""
    rules = state.policy()
    since = now - timedelta(weeks=rules.forecast_weeks)
    lately = CallSession.objects.filter(start__gte=since).values("service").annotate(n=Count("pk"))
    busy = lately.filter(n__gt=rules.rare_sessions).values("service")
    return CallSession.objects.filter(last__lt=since, service__in=busy)
