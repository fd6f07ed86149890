"""The advisor over real rows: what it knows of a service, and what it says."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from console.catalog.models import LoadTime, Replica, Service
from console.fleet.models import Card, Pool
from console.journal.models import Event
from console.money.models import PoolHour, Residency
from console.state import moment
from console.usage.models import DailyForecast, Session
from tests import factories
from workers.jobs import advise

pytestmark = pytest.mark.django_db
NOW = time.time()
HOUR = moment(NOW).replace(minute=0, second=0, microsecond=0)
WEEK_H = 168


@pytest.fixture
def card() -> Card:
    """A card of 20 yuan an hour, wanted 40 % of the time."""
    factories.host("h1", cards=1)
    Card.objects.update(price_fen_h=2000)
    for back in range(5):
        PoolHour.objects.create(pool="default", hour=HOUR - timedelta(hours=back), samples=360, contended=144)
    factories.pool().tenants.clear()
    factories.service("neighbour")
    return Card.objects.get()


def a_service(**more: object) -> Service:
    service = factories.service("svc", kv_cap_mib=12_000, tier=more.pop("tier", "warm"), **more)
    host = Card.objects.get().host
    LoadTime.objects.create(service=service, host=host, kind="start", seconds=[15.0] * 3)
    LoadTime.objects.create(service=service, host=host, kind="wake", seconds=[3.0] * 3)
    return service


def sessions(a_week: int) -> None:
    step = timedelta(days=6.9) / max(1, a_week)
    starts = [moment(NOW) - step * i - timedelta(minutes=5) for i in range(a_week)]
    Session.objects.bulk_create(Session(service="svc", start=at, last=at, hit=False) for at in starts)


def said() -> Residency:
    list(advise.run({}))
    return Residency.objects.get(service__name="svc")


@pytest.mark.parametrize(("a_week", "mode"), [(6 * WEEK_H, "warm"), (2 * 7, "demand"), (300 * 7, "resident")])
def test_the_storys_kind_over_rows(card, a_week, mode):
    a_service()
    sessions(a_week)
    row = said()
    assert (row.mode, row.why) == (mode, "")
    assert row.numbers["switches_h"] == pytest.approx(a_week / WEEK_H, rel=0.02)
    assert (row.numbers["load_s"], row.numbers["wake_s"], row.numbers["contended_pct"]) == (15.0, 3.0, 40.0)
    assert set(row.numbers["ways"]) == {"resident", "warm", "demand"}
    assert row.numbers["lost_calls"] > 0


def test_real_loads_count_where_they_are_more(card):
    service = a_service()
    sessions(2)
    for _ in range(WEEK_H):
        Event.objects.create(at=moment(NOW - 3600), phase="ready", service=service, how="wake", seconds=3)
    assert said().numbers["switches_h"] == 1.0


def test_preloads_that_were_used_are_not_waited_for(card):
    a_service()
    sessions(60)
    DailyForecast.objects.create(day=moment(NOW).date(), service="svc", sessions=10, hits=9, preloads=9, used=9)
    row = said()
    assert row.numbers["ways"]["demand"]["waiting_s"] == pytest.approx(60 / WEEK_H * 15 * 0.1, rel=0.02)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"tier": "hot"}, "hot"),
        ({"min_replicas": 1}, "minimum"),
        ({"whitelisted_until": moment(NOW + 9999)}, "whitelisted"),
        ({"first_token_s": 0.5}, "first_token"),
        ({"weights_mib": 900}, "small"),
    ],
)
def test_boundary_cases_first(card, fields, why):
    a_service(**fields)
    assert (said().mode, Residency.objects.get(service__name="svc").why) == ("resident", why)


def test_a_resident_pool_decides(card):
    a_service()
    Pool.objects.update(purpose="resident")
    assert said().why == "resident"


def test_what_cannot_sleep_is_not_told_to(card):
    a_service(can_sleep=False)
    sessions(6 * WEEK_H)
    assert "warm" not in said().numbers["ways"]


def test_it_is_said_anew_not_twice(card):
    a_service()
    first = said()
    sessions(300 * 7)
    assert said().pk == first.pk
    assert Residency.objects.filter(service__name="svc").count() == 1


def test_a_service_without_a_card_gets_no_word(card):
    a_service(card_classes=["none-such"])
    list(advise.run({}))
    assert not Residency.objects.filter(service__name="svc").exists()


def test_it_asks_of_its_own_copy(card):
    service = a_service()
    since = moment(NOW - 5000)
    factories.replica(service, card, phase_since=since, want_since=since, loaded_at=since)
    Replica.objects.update(measured_mib=20_000)
    assert said().mode in ("resident", "warm", "demand")


def test_progress_goes_to_the_end(card):
    a_service()
    steps = list(advise.run({}))
    assert steps == sorted(steps)
    assert steps[-1] == 1.0
