"""The bill of a month: sums of the same rows, each person its own, and the table says what the page says."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime, timedelta

import pytest
from django.utils import timezone

from console.accounts.models import Tenant
from console.catalog.models import Service
from console.costs import bill
from console.exports import safe
from console.filters import yuan
from console.fleet.models import Card
from console.money.models import CardHour, CostDay, Residency
from tests.console import money_rows, rows

MONTH = date(2026, 10, 1)
URL = "/costs/?month=2026-10"


def book(fen: int, tenant: str = "", service: str = "", part: str = "idle", number: int = 10, day: int = 5, **more):
    uuid = Card.objects.get(number=number).uuid
    more.setdefault("mib_s", fen * 3600)
    CostDay.objects.create(
        day=date(2026, 10, day), tenant=tenant, service=service, part=part, card=uuid, fen=fen, **more
    )


@pytest.fixture
def booked(farm):
    book(12_345, "estate", "property-service", "weights")
    book(1_005, "estate", "property-service", "kv", day=6)
    book(777, "energy", "hotline-qa", "kv", number=1)
    book(90_001)
    book(33, "estate", "hotline-qa", "kv", number=1)
    book(250, "estate", "property-service", "residue", bill="host")
    CostDay.objects.create(day=date(2026, 11, 1), tenant="estate", service="x", part="kv", card="c", fen=99_999)
    CardHour.objects.create(card="c", hour=datetime(2026, 10, 31, 15, tzinfo=UTC), booked_at=timezone.now())


@pytest.mark.parametrize("by", ["tenant", "service", "card"])
@pytest.mark.parametrize("name", ["operator", "tenant_member"])
def test_lines_sum_to_the_total_whichever_way(booked, by, name):
    month = bill.month(rows.person(name), MONTH, by)
    expected = 12_345 + 1_005 + 33 + (777 + 90_001 if name == "operator" else 0)
    assert month.total_fen == expected
    assert sum(line.total_fen for line in month.lines) == sum(month.sums) == expected
    assert month.host_fen == 250


def test_the_page_says_names_and_yuan(booked, browse):
    html = browse("operator").get(URL).content.decode()
    for text in ("置业公司", "能源公司", "信息中心", "133.83", "7.77", "900.01", "1,041.61", "主机内存", "2.50"):
        assert text in html, text
    assert "99,999" not in html
    assert "物业客服" in browse("operator").get(URL + "&by=service").content.decode()
    assert "10" in browse("operator").get(URL + "&by=card").content.decode()


def test_a_company_sees_what_it_pays(booked, browse):
    for by in ("tenant", "service", "card"):
        html = browse("tenant_member").get(f"{URL}&by={by}").content.decode()
        assert "133.83" in html
        for foreign in ("7.77", "900.01", "能源公司"):
            assert foreign not in html, by
    assert "0.33" in browse("tenant_admin").get(URL + "&by=service").content.decode(), "what it called of another's"


def test_the_table_is_the_page(booked, browse):
    client = browse("operator")
    for by in ("tenant", "service", "card"):
        answer = client.get(f"/costs/table.csv?month=2026-10&by={by}")
        assert answer.headers["Content-Type"].startswith("text/csv")
        assert f"cost-2026-10-{by}.csv" in answer.headers["Content-Disposition"]
        text = answer.content.decode()
        assert text.startswith("\ufeff")
        lines = list(csv.reader(io.StringIO(text[1:])))
        html = client.get(f"{URL}&by={by}").content.decode()
        for cell in lines[-1][2:-2] + [row[-3] for row in lines[1:]]:
            assert cell in html, cell


def test_a_name_is_no_formula(booked, browse):
    Tenant.objects.filter(slug="estate").update(name="=SUM(A1)")
    text = browse("operator").get("/costs/table.csv?month=2026-10").content.decode()
    assert "'=SUM(A1)" in text
    assert [safe(cell) for cell in ("+1", "@x", "-2", "ok", "")] == ["'+1", "'@x", "'-2", "ok", ""]


@pytest.mark.parametrize("query", ["", "?month=x&by=y", "?month=2026-13", "?month=2099-01"])
def test_what_is_not_understood_is_this_month_by_company(farm, browse, query):
    html = browse("operator").get("/costs/" + query).content.decode()
    assert "还没有入账" in html


def test_what_has_gone_keeps_the_name_it_was_booked_under(booked, browse):
    book(5, "gone-tenant", "gone-service", "kv")
    assert "gone-tenant" in browse("operator").get(URL).content.decode()
    assert "gone-service" in browse("operator").get(URL + "&by=service").content.decode()


def test_the_number_of_queries_does_not_grow(booked, browse, django_assert_max_num_queries):
    client = browse("operator")
    for day in range(1, 29):
        for number in range(1, 33):
            book(3, "finance", "fund-qa", "buffer", number, day)
    for by in ("tenant", "service", "card"):
        with django_assert_max_num_queries(10):
            client.get(f"{URL}&by={by}")


@pytest.mark.parametrize(
    ("fen", "text"), [(None, "—"), (0, "0.00"), (1, "0.01"), (123456789, "1,234,567.89"), (48.5, "0.48")]
)
def test_yuan(fen, text):
    assert yuan(fen) == text


def test_the_advice_of_a_service_shows_both_prices(farm, browse):
    service = Service.objects.get(name="property-service")
    ways = {
        "resident": {"waiting_s": 0, "waiting_fen": 0, "holding_fen": 320},
        "warm": {"waiting_s": 18.0, "waiting_fen": 180, "holding_fen": 48},
        "demand": {"waiting_s": 90.0, "waiting_fen": 900, "holding_fen": 0},
    }
    numbers = {
        "ways": ways, "switches_h": 6, "load_s": 15, "wake_s": 3, "share_pct": 40, "contended_pct": 40,
        "price_fen_h": 2000, "lost_calls": 4,
        "residents": {
            "fits": 2, "plain": 3, "total_mib": 24576, "each_mib": 9304, "allocatable_mib": 22159, "reserved_mib": 450,
            "buffer_mib": 1967, "left_mib": 3551, "short_mib": 5753,
        },
    }  # fmt: skip
    html = browse("tenant_member").get("/services/property-service").content.decode()
    assert "还没有算" in html
    Residency.objects.create(service=service, mode="warm", numbers=numbers, at=timezone.now())
    html = browse("tenant_member").get("/services/property-service").content.decode()
    for text in (
        "建议：闲时休眠",
        "90.0 秒",
        "3.20",
        "1.80",
        "0.48",
        "9.00",
        "少 4 个并发",
        "最多常驻 2 个",
        "像是 3 个",
        "再多一个差 5.6 GiB",
    ):
        assert text in html, text
    Residency.objects.update(mode="resident", why="hot")
    assert "高频档，闲着也不收回" in browse("tenant_member").get("/services/property-service").content.decode()


def test_a_cards_hour_shows_the_rows_that_sum_to_its_price(booked, browse, django_assert_max_num_queries):
    card, hour = Card.objects.get(number=10), datetime(2026, 10, 5, 3, tzinfo=UTC)
    lines = [
        ["weights", "estate", "property-service", 7, 14_000 * 3600, 300],
        ["idle", "", "", None, 60_000 * 3600, 80],
    ]
    for back, price in ((0, 380), (1, 99)):
        CardHour.objects.create(
            card=card.uuid, hour=hour - timedelta(hours=back), price_fen=price, rows=lines, booked_at=timezone.now()
        )
    client = browse("operator")
    assert f'href="/costs/cards/{card.pk}"' in client.get(URL + "&by=card").content.decode()
    with django_assert_max_num_queries(8):
        html = client.get(f"/costs/cards/{card.pk}").content.decode()
    for text in ("物业客服", "置业公司", "信息中心", "价格 3.80 元", "<b>3.80</b>", "13.67"):
        assert text in html, text
    earlier = client.get(f"/costs/cards/{card.pk}", {"hour": (hour - timedelta(hours=1)).isoformat()})
    assert "价格 0.99 元" in earlier.content.decode()
    for wrong in ("x", "2026-13-01T00:00:00+00:00", "2026-10-05T03:00:00"):
        assert client.get(f"/costs/cards/{card.pk}", {"hour": wrong}).status_code == 200
    assert "/costs/cards/" not in browse("tenant_admin").get(URL + "&by=card").content.decode()


def test_pages_with_something_on_them_open_to_all_who_may(farm, browse):
    service, card = money_rows.fill(), Card.objects.get(number=10)
    shared = [
        "/costs/",
        "/costs/?by=service",
        "/costs/?by=card",
        "/costs/budgets",
        "/check-up/",
        f"/services/{service}",
    ]
    staff = ["/costs/prices", f"/costs/cards/{card.pk}"]
    for name in ("operator", "approver", "auditor"):
        assert [browse(name).get(url).status_code for url in shared + staff] == [200] * 8, name
    for name in ("tenant_admin", "tenant_member"):
        assert [browse(name).get(url).status_code for url in shared] == [200] * 6, name
    html = browse("operator").get(f"/costs/cards/{card.pk}").content.decode()
    hour = CardHour.objects.get(card=card.uuid)
    assert f"<b>{yuan(hour.price_fen)}</b>" in html
