"""Preloads through whole ticks: what is written, what a person's button does to them, what is said once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from console import forecasts as seam
from console.catalog.models import Forecast, Order, Replica, Service
from console.fleet.models import Host
from console.journal.models import Decision
from console.policies.models import PolicyValue
from console.state import moment
from tests import factories
from tests.control.conftest import START

MINUTE = START + 200.0


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests share a clock and roll their rows back: another's forecasts would look like ours."""
    monkeypatch.setattr(seam, "_known", ((), {}))


@pytest.fixture
def report(farm) -> Service:
    factories.host(cards=1)
    PolicyValue.objects.create(name="preload_lead_s", value=60)
    return factories.service("report", tier="cold")


def expect(service: Service, at: float = MINUTE, **fields: object) -> None:
    now = moment(START - 600)
    values = {"checked_at": now, "changed_at": now, "hours_from": now, "load_s": 10.0, "moments": [[at, 1.0, "weekly"]]}
    Forecast.objects.create(service=service, **(values | fields))


def rows(**fields: object) -> list[Decision]:
    return list(Decision.objects.filter(reason="forecast", **fields).order_by("id"))


def test_a_preload_is_ready_before_its_minute_and_written_with_what_for(farm, report):
    expect(report)
    farm.until(lambda: farm.ready("report"), within=180)
    assert MINUTE - 62 <= farm.now <= MINUTE
    (row,) = rows()
    assert (row.verb, row.refusal, row.numbers["rule"]) == ("start", "", "periodic")
    assert row.numbers["expected_at"] == MINUTE
    assert Replica.objects.get().reason == "forecast"


def test_what_a_person_stopped_is_not_loaded_again_for_that_minute(farm, report):
    expect(report)
    farm.until(lambda: farm.ready("report"), within=180)
    (replica,) = farm.ready("report")
    Order.objects.create(service=report, replica=replica, act="stop", at=moment(farm.now), until=moment(farm.now + 600))
    farm.until(lambda: not farm.ready("report"), within=60)
    while farm.now < MINUTE + 30:
        farm.tick(3)
    assert not farm.ready("report")
    assert len(rows()) == 1
    assert Service.objects.get().let_go_at is not None


def test_a_preload_without_room_is_one_row_however_long_it_lasts(farm, report):
    expect(report)
    Host.objects.update(cordoned=True)
    while farm.now < MINUTE + 30:
        farm.tick(3)
    (row,) = rows()
    assert row.refusal == "cordoned"
    assert row.numbers["expected_at"] == MINUTE


def test_where_many_wait_their_turn_each_is_one_row(farm, report):
    """More than a plan looks at: silent in most plans, and still said once."""
    Host.objects.update(cordoned=True)
    for n in range(9):
        expect(factories.service(f"r{n}", tier="cold"))
    while farm.now < MINUTE + 30:
        farm.tick(3)
    assert len(rows()) == 9
    assert len({row.service_id for row in rows()}) == 9


def test_observed_pools_only_advise(farm, report):
    expect(report)
    report.pools.set([factories.pool()])
    factories.pool().__class__.objects.update(mode="observe")
    while farm.now < MINUTE + 10:
        farm.tick(3)
    assert not Replica.objects.exists()
    assert {row.refusal for row in rows()} == {"not_managed"}


def test_in_suggest_a_preload_takes_from_nobody_and_acts(farm, report):
    expect(report)
    factories.pool().__class__.objects.update(mode="suggest")
    farm.until(lambda: farm.ready("report"), within=180)


def test_resident_hours_are_read_in_site_time(farm, report):
    local = moment(START).astimezone(timezone.get_default_timezone())
    begins, ends = local + timedelta(minutes=2), local + timedelta(minutes=3)
    hours = [{"days": "daily", "from": f"{begins:%H:%M}", "to": f"{ends:%H:%M}"}]
    Service.objects.update(resident_hours=hours)
    PolicyValue.objects.create(name="idle_unload_s", value=30)
    PolicyValue.objects.create(name="half_empty_pct", value=0)
    PolicyValue.objects.create(name="min_loaded_s", value=1)
    factories.service("other", tier="cold")
    opens = begins.replace(second=0, microsecond=0).timestamp()
    farm.until(lambda: farm.ready("report"), within=200)
    assert opens - 62 <= farm.now <= opens + 15
    while farm.now < opens + 55:
        farm.tick(3)
        assert all(replica.drain_at is None for replica in farm.ready("report"))
    farm.until(lambda: any(replica.drain_at for replica in farm.ready("report")), within=60)
