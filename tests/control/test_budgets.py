"""Budgets against what was booked and counted: told once, of this month only, and barred until it is over."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from console import state
from console.accounts.models import ApiKey
from console.journal.models import Decision
from console.money import seam
from console.money.models import CallBudget, CardBudget, CardHour, CostDay, KeyCost
from console.money.months import month_of, next_month
from console.usage.models import HourlyCalls
from scheduler.world import Budget
from tests import factories
from workers.control import budgets, routes

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 15, 4, 6, tzinfo=UTC)  # 12:06 in Shanghai
LAST = datetime(2026, 11, 15, 3, tzinfo=UTC)


def booked(first: datetime = LAST, last: datetime = LAST) -> None:
    for hour in {first, last}:
        CardHour.objects.create(card="c", hour=hour, booked_at=hour)


def cost(fen: int, day: int = 15, service: str = "hotline", tenant: str = "wuliu", part: str = "kv") -> None:
    CostDay.objects.create(day=date(2026, 11, day), tenant=tenant, service=service, card="c", part=part, fen=fen)


def a_budget(limit_fen: int, **more: object) -> CardBudget:
    return CardBudget.objects.create(tenant=factories.tenant(), limit_fen=limit_fen, **more)


def run(now: datetime = NOW) -> None:
    budgets.run(now, state.policy())


def said() -> list[tuple[str, str]]:
    return list(Decision.objects.filter(verb="budget").order_by("pk").values_list("reason", "service__name"))


def test_spent_is_what_the_tenant_pays_this_month():
    booked()
    a_budget(10_000)
    cost(700)
    cost(50, service="", part="idle")
    cost(900, tenant="energy")
    CostDay.objects.create(day=date(2026, 10, 31), tenant="wuliu", service="hotline", card="c", part="kv", fen=5000)
    run()
    assert CardBudget.objects.get().spent_fen == 750
    assert CardBudget.objects.get().month == date(2026, 11, 1)


def test_a_services_budget_counts_whoever_called_it():
    booked()
    a_budget(10_000, service=factories.service())
    cost(700)
    cost(900, tenant="energy")
    cost(1, service="other")
    run()
    assert CardBudget.objects.get().spent_fen == 1600


def test_the_forecast_goes_on_as_the_last_week_did():
    booked(first=datetime(2026, 11, 10, 16, tzinfo=UTC))  # from midnight of the 11th on: 108 hours
    a_budget(10_000_000)
    for day in range(11, 15):
        cost(24_000, day)
    cost(12_000, 15)
    run()
    row = CardBudget.objects.get()
    assert row.spent_fen == 108_000
    left_h = (next_month(NOW) - LAST).total_seconds() // 3600 - 1
    assert row.forecast_fen == 108_000 + 1000 * left_h


@pytest.mark.parametrize(
    ("limit", "told"),
    [(10_000, []), (2_000, ["warned"]), (1_250, ["warned"]), (1_000, ["spent"]), (900, ["spent"])],
)
def test_its_owner_is_told_once(limit, told):
    """1,000 are spent; as it goes, the month will have cost about 3,200."""
    booked(first=datetime(2026, 10, 1, tzinfo=UTC))
    a_budget(limit, service=factories.service())
    cost(1_000)
    for _ in range(3):
        run()
        CardBudget.objects.update(as_of=None)
    assert said() == [(reason, "hotline") for reason in told]


def test_warned_then_spent_then_a_new_month():
    booked(first=datetime(2026, 10, 1, tzinfo=UTC))
    a_budget(1_000)
    cost(800)
    run()
    cost(200, part="weights")
    CardBudget.objects.update(as_of=None)
    run()
    assert said() == [("warned", None), ("spent", None)]
    assert seam.card_budgets(NOW)[0].spent_fen == 1_000
    december = datetime(2026, 11, 30, 16, tzinfo=UTC)
    assert seam.card_budgets(december - timedelta(seconds=1))[0].spent_fen == 1_000
    assert seam.card_budgets(december) == (Budget("wuliu", 1_000, 0),)


def test_the_planners_world_has_them():
    booked()
    a_budget(1_000, service=factories.service())
    cost(1_500)
    run()
    (seen,) = state.world(NOW.timestamp()).budgets
    assert (seen.tenant, seen.service, seen.limit_fen, seen.spent_fen) == ("wuliu", "hotline", 1_000, 1_500)


def calls(tokens: int, at: datetime = LAST, key: int = 1, tenant: str = "wuliu") -> None:
    HourlyCalls.objects.create(
        hour=at,
        service="hotline",
        tenant=tenant,
        key_id=key,
        prompt_tokens=tokens // 2,
        generated_tokens=tokens - tokens // 2,
    )


def a_key() -> ApiKey:
    return ApiKey.objects.create(tenant=factories.tenant(), name="k", prefix="gk_x", digest="d")


def test_tokens_of_the_month_are_counted_by_tenant_and_by_key():
    key = a_key()
    whole = CallBudget.objects.create(tenant=factories.tenant(), limit=1_000)
    one = CallBudget.objects.create(tenant=factories.tenant(), key=key, limit=100)
    calls(60, key=key.pk)
    calls(11, key=key.pk + 1)
    calls(29, at=datetime(2026, 11, 2, tzinfo=UTC), key=key.pk)
    calls(500, at=datetime(2026, 10, 31, 15, tzinfo=UTC), key=key.pk)
    calls(7, tenant="energy")
    assert budgets.count_calls(NOW) == 2
    whole.refresh_from_db()
    one.refresh_from_db()
    assert (whole.used, one.used) == (100, 89)
    calls(5, at=datetime(2026, 11, 3, tzinfo=UTC), key=key.pk)  # a spool that came late
    budgets.count_calls(NOW + timedelta(hours=1))
    one.refresh_from_db()
    assert one.used == 94


def test_fen_of_calls_come_from_booked_hours():
    row = CallBudget.objects.create(tenant=factories.tenant(), limit=1_000, unit="fen")
    KeyCost.objects.create(month=date(2026, 11, 1), tenant="wuliu", key_id=4, fen=30)
    KeyCost.objects.create(month=date(2026, 11, 1), tenant="wuliu", key_id=5, fen=12)
    KeyCost.objects.create(month=date(2026, 10, 1), tenant="wuliu", key_id=5, fen=900)
    budgets.count_calls(NOW)
    row.refresh_from_db()
    assert row.used == 42


def test_who_is_barred_and_until_when_is_in_the_routes():
    CallBudget.objects.create(tenant=factories.tenant(), limit=100)
    calls(99)
    budgets.count_calls(NOW)
    assert routes.barred(NOW.timestamp()).tenants == {}
    calls(1, key=2)
    budgets.count_calls(NOW)
    resets = datetime(2026, 12, 1, tzinfo=ZoneInfo("Asia/Shanghai")).timestamp()
    assert routes.barred(NOW.timestamp()).tenants == {"wuliu": resets}
    assert routes.barred(resets - 30).tenants
    assert routes.barred(resets).tenants == {}, "to the second, before anybody has counted the new month"


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Shanghai"])
def test_the_month_is_the_sites_whoever_looks(zone):
    moment = datetime(2026, 11, 30, 15, 59, 30, tzinfo=UTC)
    with timezone.override(zone):
        assert month_of(moment).isoformat() == "2026-11-01T00:00:00+08:00"
        assert next_month(moment).timestamp() == moment.timestamp() + 30
        assert month_of(moment + timedelta(seconds=30)) == next_month(moment)


def test_without_budgets_counting_asks_once(django_assert_num_queries):
    with django_assert_num_queries(1):
        assert budgets.count_calls(NOW) == 0
