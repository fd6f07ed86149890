"""Times come back from the database as they went in, of every zone and however they are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection

from console.catalog.models import Service
from tests import factories

MOMENTS = [
    datetime(2026, 11, 30, 16, 2, 18, 31355, UTC),
    datetime(2026, 11, 30, 16, 2, 18, tzinfo=UTC),
    datetime(2026, 1, 1, 0, 0, 0, 100000, UTC),
    datetime(1999, 12, 31, 23, 59, 59, 1, UTC),
    datetime(2026, 3, 1, 1, 0, tzinfo=timezone(timedelta(hours=5, minutes=30))),
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_time_comes_back_as_it_went_in(db: None, moment: datetime) -> None:
    service = factories.service("s")
    Service.objects.filter(pk=service.pk).update(last_call_at=moment)
    found = Service.objects.values_list("last_call_at", flat=True).get(pk=service.pk)
    assert found == moment
    assert found.tzinfo is UTC


def test_unknown_stays_unknown(db: None) -> None:
    service = factories.service("s")
    assert Service.objects.values_list("last_call_at", flat=True).get(pk=service.pk) is None


def test_a_cursor_in_another_zone_is_the_drivers_affair(db: None) -> None:
    """SQLite has no zones: what it says of a moment is a text."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL TIME ZONE 'Asia/Shanghai'")
            cursor.execute("SELECT '2026-11-30 16:02:18+00'::timestamptz")
            (found,) = cursor.fetchone()
            assert found.replace(tzinfo=None) == datetime(2026, 12, 1, 0, 2, 18)
        else:
            cursor.execute("SELECT '2026-11-30 16:02:18'")
            assert cursor.fetchone() == ("2026-11-30 16:02:18",)
