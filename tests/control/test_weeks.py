"""The week that the loop has at hand is the week that a page reads."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import F

from console import reading
from console.state import WEEK_S, moment
from console.usage.models import HourlyCalls
from console.weeks import HOUR_S, Weeks

NOW = 1_795_949_446.0
HOUR = NOW - NOW % HOUR_S

pytestmark = pytest.mark.django_db


def called(service: str, hours_ago: int, calls: int = 4, ok: int = 2, key: int = 1) -> None:
    at = moment(HOUR - hours_ago * HOUR_S)
    HourlyCalls.objects.create(hour=at, service=service, tenant="t", key_id=key, calls=calls, ok=ok, total_ms=ok * 1500)


def read(now: float) -> reading.Week:
    return reading.week(moment(now - WEEK_S))


def test_it_is_what_the_rows_say() -> None:
    for hours_ago in (0, 1, 2, 30, 167, 168, 169):
        called("often", hours_ago)
    called("often", 30, calls=9, ok=0, key=2)
    called("before", 100, ok=0)
    called("now", 0)
    assert Weeks().at(NOW) == read(NOW) == {"often": (29, 1.5), "before": (4, None), "now": (4, 1.5)}


def test_what_is_counted_in_this_hour_and_the_last_is_seen_at_once() -> None:
    called("often", 30)
    kept = Weeks()
    kept.at(NOW)
    for hours_ago in (0, 1):
        called("often", hours_ago)
        called(f"new-{hours_ago}", hours_ago)
        assert kept.at(NOW + 1) == read(NOW + 1)
    HourlyCalls.objects.filter(hour=moment(HOUR)).update(calls=F("calls") + 5)
    assert kept.at(NOW + 2) == read(NOW + 2)


def test_a_late_record_of_an_older_hour_is_seen_when_the_next_begins_and_the_oldest_hour_goes() -> None:
    called("oldest", 167)
    called("often", 30)
    kept = Weeks()
    kept.at(NOW)
    called("late", 5)
    assert "late" not in kept.at(NOW + 1)
    after = kept.at(HOUR + HOUR_S)
    assert after == read(HOUR + HOUR_S)
    assert set(after) == {"oldest", "often", "late"}
    assert set(kept.at(HOUR + HOUR_S + 1)) == {"oldest", "often", "late"}
    assert kept.at(HOUR + 2 * HOUR_S + 1) == read(HOUR + 2 * HOUR_S + 1) != {}


def test_within_an_hour_the_old_ones_are_not_read_again(django_assert_num_queries: Any) -> None:
    kept = Weeks()
    with django_assert_num_queries(2):
        kept.at(NOW)
    with django_assert_num_queries(1):
        kept.at(NOW + 1)
