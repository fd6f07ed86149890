"""Tiers are recomputed when they are due, once, from calls by site day; fixed ones never; each change is a row."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from console.catalog.models import Service
from console.jobs.models import Daily
from console.journal.models import Decision
from console.policies.models import PolicyValue
from console.usage.models import HourlyCalls
from scheduler.policy import DEFAULT
from tests import factories
from workers.control import tiers
from workers.control.app import app

pytestmark = pytest.mark.django_db
SITE = ZoneInfo("Asia/Shanghai")
MONDAY = datetime(2026, 11, 30, 3, 0, 7, tzinfo=SITE)  # seven seconds after it is due
LONG_AGO = MONDAY - timedelta(days=60)


@pytest.fixture
def due() -> None:
    """Both were last done a week before."""
    for name in (tiers.WEEKLY, tiers.NIGHTLY):
        Daily.objects.create(name=name, done_at=MONDAY - timedelta(days=7))


def service(name: str = "one", tier: str = "warm", **fields: object) -> Service:
    return factories.service(name, tier=tier, **{"created_at": LONG_AGO, **fields})


def calls(name: str, days: list[int], *, before: datetime = MONDAY, hour: int = 10) -> None:
    """Calls of the days before `before`, the last one yesterday; by two keys, as callers are several."""
    for back, count in enumerate(reversed(days), 1):
        at = (before - timedelta(days=back)).replace(hour=hour, minute=0, second=0)
        for key, part in ((1, count // 2), (2, count - count // 2)):
            HourlyCalls.objects.create(hour=at, service=name, tenant="wuliu", key_id=key, calls=part)


def tier(name: str = "one") -> str:
    return Service.objects.get(name=name).tier


@pytest.mark.usefixtures("due")
@pytest.mark.parametrize(
    ("was", "days", "becomes"),
    [
        ("warm", [900] * 7, "hot"),
        ("warm", [20] * 7, "cold"),
        ("warm", [200] * 7, "warm"),
        ("cold", [0, 0, 6000, 0, 0, 0, 0], "cold"),
        ("hot", [600] * 7, "warm"),
        ("hot", [650] * 7, "hot"),
    ],
)
def test_on_monday_night_each_tier_follows_its_calls(was: str, days: list[int], becomes: str) -> None:
    service(tier=was)
    calls("one", days)
    assert tiers.run(MONDAY) == (was != becomes)
    assert tier() == becomes


@pytest.mark.usefixtures("due")
def test_a_change_is_a_row_with_its_numbers() -> None:
    service()
    service("same")
    calls("one", [900, 800, 900, 900, 900, 900, 1000])
    calls("same", [200] * 7)
    tiers.run(MONDAY)
    row = Decision.objects.get()
    assert (row.verb, row.reason, row.service.name, row.at) == ("tier", "calls", "one", MONDAY)
    assert row.numbers == {"from": "warm", "to": "hot", "calls_7d": 6300, "busiest_day": 1000}


@pytest.mark.usefixtures("due")
def test_what_a_person_fixed_stays() -> None:
    service(tier_fixed=True)
    calls("one", [9000] * 7)
    assert tiers.run(MONDAY) == 0
    assert tier() == "warm"
    assert not Decision.objects.exists()


@pytest.mark.usefixtures("due")
def test_it_is_done_once_and_not_again_before_next_monday() -> None:
    service()
    calls("one", [900] * 7)
    assert tiers.run(MONDAY) == 1
    Service.objects.update(tier="cold")
    for later in (timedelta(minutes=1), timedelta(days=1), timedelta(days=6, hours=23)):
        assert tiers.run(MONDAY + later) == 0
    calls("one", [900] * 7, before=MONDAY + timedelta(days=7))
    assert tiers.run(MONDAY + timedelta(days=7)) == 1


@pytest.mark.usefixtures("due")
def test_before_three_it_is_not_due() -> None:
    service()
    calls("one", [900] * 7)
    assert tiers.run(MONDAY.replace(hour=2, minute=59)) == 0
    assert tier() == "warm"


@pytest.mark.usefixtures("due")
def test_a_monday_that_was_missed_is_made_up_for() -> None:
    service()
    calls("one", [900] * 7)
    assert tiers.run(MONDAY + timedelta(hours=20)) == 1


def test_a_new_site_begins_with_the_next_monday() -> None:
    service()
    calls("one", [900] * 7)
    assert tiers.run(MONDAY) == 0
    calls("one", [900] * 7, before=MONDAY + timedelta(days=7))
    assert tiers.run(MONDAY + timedelta(days=7)) == 1


@pytest.mark.usefixtures("due")
def test_todays_calls_and_those_of_eight_days_ago_do_not_count() -> None:
    service()
    calls("one", [100_000, *[100] * 7])
    HourlyCalls.objects.create(hour=MONDAY.replace(hour=1), service="one", tenant="w", key_id=3, calls=99_999)
    assert tiers.run(MONDAY) == 0


@pytest.mark.parametrize("hour", [0, 7, 8, 23])
def test_days_are_days_of_the_site(hour: int) -> None:
    """Midnight to eight in Shanghai is the day before in Greenwich."""
    calls("one", [5, 7], hour=hour)
    midnight = MONDAY.replace(hour=0, minute=0, second=0)
    counted = tiers.calls_by_day(midnight - timedelta(days=7), midnight)
    assert counted == {"one": {date(2026, 11, 28): 5, date(2026, 11, 29): 7}}


@pytest.mark.usefixtures("due")
@pytest.mark.parametrize(("a_day", "becomes"), [(1500, "hot"), (200, "warm"), (3, "cold")])
def test_a_young_service_is_tiered_every_night(a_day: int, becomes: str) -> None:
    friday = MONDAY + timedelta(days=4)
    tiers.run(friday - timedelta(days=1))
    service(created_at=friday - timedelta(days=2, hours=3))
    service("old", tier="cold")
    for name in ("one", "old"):
        calls(name, [a_day] * 2, before=friday)
    tiers.run(friday)
    assert tier() == becomes
    assert tier("old") == "cold", "an old one waits for Monday"


@pytest.mark.usefixtures("due")
def test_a_service_of_a_few_hours_keeps_its_tier() -> None:
    service(created_at=MONDAY - timedelta(hours=9))
    calls("one", [50_000])
    assert tiers.run(MONDAY) == 0


@pytest.mark.usefixtures("due")
def test_the_thresholds_are_those_that_people_set() -> None:
    PolicyValue.objects.create(name="hot_calls_7d", value=100)
    service()
    calls("one", [20] * 7)
    tiers.run(MONDAY)
    assert tier() == "hot"


def test_a_tier_that_somebody_fixed_meanwhile_is_left_alone() -> None:
    row = service()
    Service.objects.update(tier_fixed=True)
    assert not tiers._move(row, tiers.Tier.HOT, [1] * 7, MONDAY)
    assert not Decision.objects.exists()


def test_the_loop_ticks_it_and_a_registered_service_is_recomputed_unless_told_otherwise() -> None:
    assert app.conf.beat_schedule["tiers"]["task"] == "control.recompute_tiers"
    app.loader.import_default_modules()
    app.tasks["control.recompute_tiers"].apply().get()
    assert set(Daily.objects.values_list("name", flat=True)) == {tiers.WEEKLY, tiers.NIGHTLY}
    assert not factories.service("new").tier_fixed


@pytest.mark.parametrize(
    ("now", "weekly", "due"),
    [
        ("2026-11-30 03:00", True, "2026-11-30 03:00"),  # a Monday
        ("2026-11-30 02:59", True, "2026-11-23 03:00"),
        ("2026-12-06 23:59", True, "2026-11-30 03:00"),
        ("2026-12-01 02:00", False, "2026-11-30 03:00"),
        ("2027-01-01 01:00", False, "2026-12-31 03:00"),
        ("2027-01-01 01:00", True, "2026-12-28 03:00"),
    ],
)
def test_the_last_due_moment_is_of_the_sites_calendar(now: str, weekly: bool, due: str) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=SITE)
    assert tiers._last_due(moment, DEFAULT, weekly=weekly) == datetime.fromisoformat(due).replace(tzinfo=SITE)
