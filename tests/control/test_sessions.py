"""Calls become sessions, each once; the first of a session says whether the forecast was right."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.state import moment
from console.usage.models import DailyForecast, Session, UsageCursor
from tests.control.test_roll_up import AT, count, record
from workers.jobs import prune

GAP = 1200


def starts() -> list[float]:
    return sorted(row.start.timestamp() - AT for row in Session.objects.all())


@pytest.mark.django_db
@pytest.mark.parametrize(("gap", "sessions"), [(1, 1), (GAP - 1, 1), (GAP, 2), (9000, 2)])
def test_a_pause_of_twenty_minutes_parts_sessions(gap, sessions):
    count(record(1), record(2, at=AT + gap))
    assert len(starts()) == sessions


@pytest.mark.django_db
def test_a_session_lasts_from_batch_to_batch():
    for n in range(5):
        count(record(n + 1, at=AT + 1000 * n))
    (row,) = Session.objects.all()
    assert (row.start.timestamp(), row.last.timestamp()) == (AT, AT + 4000)


@pytest.mark.django_db
def test_records_of_another_gateway_that_come_late_move_the_start():
    count(record(1, at=AT + 30))
    count(record(1, "gw2", at=AT))
    count(record(2, "gw2", at=AT + 10))
    assert starts() == [0.0]


@pytest.mark.django_db
def test_services_do_not_share_sessions():
    count(record(1), record(2, service="other", at=AT + 5))
    assert set(Session.objects.values_list("service", flat=True)) == {"hotline", "other"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "hit"),
    [
        ({}, True),
        ({"hold_ms": 2000}, True),
        ({"hold_ms": 2001}, False),
        ({"outcome": "abandoned"}, True),
        ({"outcome": "refused"}, False),
        ({"outcome": "failed"}, False),
    ],
)
def test_a_hit_is_answered_without_waiting(fields, hit):
    count(record(1, **fields), record(2, at=AT + 5, hold_ms=9000))
    row = DailyForecast.objects.get()
    assert (row.sessions, row.hits) == (1, int(hit))
    assert Session.objects.get().hit is hit


@pytest.mark.django_db
def test_days_are_those_of_the_site():
    """16:00 UTC is midnight in Shanghai."""
    midnight = 1_795_968_000.0
    count(record(1, at=midnight - 1), record(2, at=midnight + GAP))
    days = list(DailyForecast.objects.order_by("day").values_list("day", "sessions"))
    assert [sessions for _, sessions in days] == [1, 1]
    assert days[1][0] - days[0][0] == timedelta(days=1)


@pytest.mark.django_db
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(0, 9000), min_size=1, max_size=12), st.integers(1, 12))
def test_in_whatever_batches_each_call_is_in_one_session(times, size):
    Session.objects.all().delete()
    UsageCursor.objects.all().delete()
    times = sorted(times)
    bodies = [record(n + 1, at=AT + t) for n, t in enumerate(times)]
    for i in range(0, len(bodies), size):
        count(*bodies[i : i + size])
    expected = [times[0]] + [b for a, b in zip(times, times[1:], strict=False) if b - a >= GAP]
    assert starts() == expected
    spans = [(s.start.timestamp() - AT, s.last.timestamp() - AT) for s in Session.objects.all()]
    assert all(sum(a <= t <= b for a, b in spans) == 1 for t in times)


@pytest.mark.django_db
def test_old_sessions_are_kept_of_rare_services_only():
    now = timezone.now()
    old, ancient = now - timedelta(weeks=9), now - timedelta(days=400)
    for service, lately in (("rare", 10), ("busy", 41)):
        Session.objects.bulk_create(
            Session(service=service, start=now - timedelta(hours=n), last=now - timedelta(hours=n))
            for n in range(lately)
        )
        Session.objects.create(service=service, start=old, last=old)
        Session.objects.create(service=service, start=ancient, last=ancient)
    DailyForecast.objects.create(day=ancient.date(), service="rare")
    DailyForecast.objects.create(day=old.date(), service="busy")
    list(prune.run({}))
    assert Session.objects.filter(service="rare").count() == 11
    assert Session.objects.filter(service="busy").count() == 41
    assert [row.service for row in DailyForecast.objects.all()] == ["busy"]


@pytest.mark.django_db
def test_what_is_counted_again_is_not_a_session_again():
    count(record(1), record(2, at=AT + 5000))
    count(record(1), record(2, at=AT + 5000))
    assert len(starts()) == 2
    assert sum(row.sessions for row in DailyForecast.objects.all()) == 2
    assert moment(AT) == Session.objects.order_by("start")[0].start
