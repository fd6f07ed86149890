"""Budgets and prices: who may set them, what they say, and the second person."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from console.accounts.models import ApiKey, Tenant
from console.catalog.models import Service
from console.costs.prices import in_force, jumps
from console.fleet.models import Card, Pool
from console.journal.models import Decision
from console.money.models import CallBudget, CardBudget, CardHour, Price
from console.money.months import month_of, next_month
from tests.console import rows

BUDGETS, PRICES = "/costs/budgets", "/costs/prices"


def tenant(slug: str = "estate") -> Tenant:
    return Tenant.objects.get(slug=slug)


def spent(limit: int, fen: int, slug: str = "estate", **more: object) -> CardBudget:
    return CardBudget.objects.create(
        tenant=tenant(slug), limit_fen=limit, spent_fen=fen, month=month_of(timezone.now()).date(), **more
    )


@pytest.mark.parametrize(
    ("limit", "fen", "words"),
    [(100_000, 10_000, ["正常", "10%"]), (100_000, 85_000, ["预警", "85%"]), (100_000, 123_456, ["已用完", "234.56"])],
)
def test_a_card_budget_says_how_it_stands(browse, limit, fen, words):
    spent(limit, fen)
    html = browse("tenant_member").get(BUDGETS).content.decode()
    for word in words:
        assert word in html, word
    assert ("gk-bad" in html) is (fen > limit)
    said = browse("tenant_admin").get("/costs/").content.decode()
    assert ("gk-note" in said) is (fen >= limit * 8 // 10), "who spends much reads it where the bill is"


def test_the_timeline_says_whose_budget_is_spent(browse):
    numbers = {
        "tenant": "estate",
        "tenant_name": "置业公司",
        "limit_fen": 100_000,
        "spent_fen": 123_456,
        "spent_pct": 123,
    }
    Decision.objects.create(at=timezone.now(), verb="budget", reason="spent", numbers=numbers)
    html = browse("operator").get("/decisions/").content.decode()
    for text in ("卡预算", "置业公司", "已用完，开始收缩", "已用 1,234.56 元", "预算 1,000.00 元"):
        assert text in html, text


def test_last_months_figures_do_not_count(browse):
    row = spent(100, 5_000)
    CardBudget.objects.filter(pk=row.pk).update(month=month_of(month_of(timezone.now()) - timedelta(days=1)).date())
    CallBudget.objects.create(tenant=tenant(), limit=10, used=99, resets_at=month_of(timezone.now()))
    html = browse("operator").get(BUDGETS).content.decode()
    assert "已用完" not in html


def test_a_company_sees_its_own_only(browse):
    spent(100, 1)
    spent(7_654_321, 1, "energy")
    CallBudget.objects.create(tenant=tenant("energy"), limit=424_242)
    html = browse("tenant_admin").get(BUDGETS).content.decode()
    assert "76,543.21" not in html
    assert "424,242" not in html
    assert "76,543.21" in browse("auditor").get(BUDGETS).content.decode()


def test_the_operator_sets_one_and_sets_it_anew(browse):
    client = browse("operator")
    form = {"tenant": tenant().pk, "service": "", "yuan": "1234.56"}
    assert client.post(BUDGETS + "/card", form).status_code == 302
    assert client.post(BUDGETS + "/card", form | {"yuan": "2000"}).status_code == 302
    assert CardBudget.objects.get().limit_fen == 200_000
    service = Service.objects.get(name="property-service")
    assert client.post(BUDGETS + "/card", form | {"service": service.name}).status_code == 302
    assert CardBudget.objects.count() == 2
    foreign = Service.objects.get(name="hotline-qa")
    answer = client.post(BUDGETS + "/card", form | {"service": foreign.name})
    assert "不是这家公司的" in answer.content.decode()
    assert 'value="1234.56"' in answer.content.decode(), "keeps what was typed"


@pytest.mark.parametrize("value", ["-1", "abc", "1.234", ""])
def test_a_sum_that_is_none_is_refused_beside_its_field(browse, value):
    answer = browse("operator").post(BUDGETS + "/card", {"tenant": tenant().pk, "service": "", "yuan": value})
    assert answer.status_code == 200
    assert not CardBudget.objects.exists()


@pytest.mark.parametrize(("unit", "amount", "limit"), [("tokens", "1000", 1000), ("fen", "12.34", 1234)])
def test_call_budgets_in_tokens_and_yuan(browse, unit, amount, limit):
    client = browse("operator")
    form = {"tenant": tenant().pk, "key": "", "unit": unit, "amount": amount}
    assert client.post(BUDGETS + "/calls", form).status_code == 302
    assert CallBudget.objects.get().limit == limit
    CallBudget.objects.update(used=limit, resets_at=next_month(timezone.now()))
    html = client.get(BUDGETS).content.decode()
    assert "恢复" in html
    foreign = ApiKey.objects.get(tenant__slug="energy", name="demo energy")
    assert "不是这家公司的" in client.post(BUDGETS + "/calls", form | {"key": foreign.pk}).content.decode()


def test_ending_one_asks_first(browse):
    row, calls = spent(100_000, 1), CallBudget.objects.create(tenant=tenant(), limit=5)
    client = browse("operator")
    assert "1,000.00" in client.get(f"{BUDGETS}/card/{row.pk}/end").content.decode()
    assert CardBudget.objects.exists()
    client.post(f"{BUDGETS}/card/{row.pk}/end")
    client.post(f"{BUDGETS}/calls/{calls.pk}/end")
    assert not CardBudget.objects.exists()
    assert not CallBudget.objects.exists()


@pytest.mark.parametrize("name", ["tenant_admin", "tenant_member", "manager", "auditor", "approver"])
def test_only_the_operator_sets_budgets_and_prices(browse, name):
    client = browse(name)
    assert client.post(BUDGETS + "/card", {"tenant": tenant().pk, "yuan": "1"}).status_code == 403
    assert client.post(BUDGETS + "/calls", {"tenant": tenant().pk}).status_code == 403
    assert client.post(PRICES + "/new", {}).status_code == 403


# Prices


def hour(ahead: int = 1) -> datetime:
    return timezone.localtime(timezone.now()).replace(minute=0, second=0, microsecond=0) + timedelta(hours=ahead)


def change(client, yuan: str, at: datetime | None = None, card_class: str = "a10"):
    form = {"card_class": card_class, "yuan": yuan, "starts_at": f"{at or hour():%Y-%m-%dT%H:%M}"}
    return client.post(PRICES + "/new", form)


@pytest.mark.parametrize(
    ("old", "new", "jump"),
    [
        (160, 1600, False),
        (160, 1601, True),
        (1600, 160, False),
        (1601, 160, True),
        (0, 5, True),
        (5, 0, True),
        (7, 7, False),
        (0, 0, False),
    ],
)
def test_what_is_a_jump(old, new, jump):
    assert jumps(old, new, 10) is jump


def test_a_small_change_counts_from_its_hour(browse):
    client = browse("operator")
    assert change(client, "2.00").status_code == 302
    first, row = Price.objects.order_by("starts_at")
    assert first.fen_h == 160, "what the cards came with, for the hours before"
    assert (row.fen_h, row.needs_second, row.counts, row.made_by) == (200, False, True, rows.person("operator"))
    html = client.get(PRICES).content.decode()
    assert "2.00" in html
    assert "1.60" in html, "until then the old one is in force"
    assert in_force([row], hour(2), 160) == 200
    assert in_force([row], hour(0), 160) == 160


def test_a_jump_waits_for_another_person(browse):
    change(browse("operator"), "2000")
    row = Price.objects.order_by("starts_at").last()
    assert (row.needs_second, row.counts) == (True, False)
    assert in_force([row], hour(2), 160) == 160
    card = Card.objects.filter(card_class="a10").first()
    CardHour.objects.create(card=card.uuid, hour=hour(-3), price_fen=160, booked_at=timezone.now())
    url = f"{PRICES}/{row.pk}/approve"
    says = browse("approver").get(url).content.decode()
    assert "1.60" in says
    assert "2,000.00" in says, "last week under the new price"
    assert browse("operator").post(url).status_code == 403
    assert browse("approver").post(url).status_code == 302
    row.refresh_from_db()
    assert (row.counts, row.approved_by) == (True, rows.person("approver"))
    assert browse("approver").post(url).status_code == 404, "once"


def test_nobody_confirms_a_price_of_ones_own(browse):
    row = Price.objects.create(
        card_class="a10", fen_h=9, starts_at=hour(), needs_second=True, made_by=rows.person("approver")
    )
    browse("approver").post(f"{PRICES}/{row.pk}/approve")
    row.refresh_from_db()
    assert row.approved_at is None


def test_a_price_confirmed_late_does_not_reach_back(browse):
    row = Price.objects.create(
        card_class="a10", fen_h=9, starts_at=hour(-30), needs_second=True, made_by=rows.person("operator")
    )
    browse("approver").post(f"{PRICES}/{row.pk}/approve")
    row.refresh_from_db()
    assert row.starts_at >= hour(0) - timedelta(hours=1)


@pytest.mark.parametrize("at", ["past", "half"])
def test_a_price_starts_on_the_hour_and_not_in_the_past(browse, at):
    when = hour(-1) if at == "past" else hour() + timedelta(minutes=30)
    answer = change(browse("operator"), "2.00", when)
    assert answer.status_code == 200
    assert not Price.objects.exists()


def test_a_company_does_not_see_prices(browse):
    assert browse("tenant_admin").get(PRICES).status_code == 403
    assert "价格</a>" not in browse("tenant_admin").get("/costs/").content.decode()


def test_a_pool_gets_an_owner_who_pays_what_nobody_uses(browse):
    pool, client = Pool.objects.get(name="shared-large"), browse("operator")
    url = f"/costs/pools/{pool.pk}/owner"
    assert client.post(url, {"owner": tenant().pk}).status_code == 302
    pool.refresh_from_db()
    assert pool.owner == tenant()
    assert "置业公司" in client.get(PRICES).content.decode()
    client.post(url, {"owner": ""})
    pool.refresh_from_db()
    assert pool.owner is None
    assert browse("tenant_admin").post(url, {"owner": tenant().pk}).status_code == 403
