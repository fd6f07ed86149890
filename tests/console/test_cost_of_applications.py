"""A month by application: shares of keys as booked, each person their own, and the table says what the page says."""

from __future__ import annotations

import csv
import io
from datetime import date

import pytest

from console.accounts.keys import new_key
from console.accounts.models import ApiKey, Application, Tenant
from console.costs import by_application
from console.money.models import KeyCost
from tests.console import rows
from tests.console.asking import text

pytestmark = pytest.mark.django_db
MONTH = date(2026, 10, 1)
URL = "/costs/?month=2026-10&by=application"


def tenant(slug: str) -> Tenant:
    return Tenant.objects.get(slug=slug)


def application(slug: str, name: str) -> Application:
    return Application.objects.create(tenant=tenant(slug), slug=name, name=f"应用 {name}")


def key(of: Application, name: str, fen: int, month: date = MONTH) -> ApiKey:
    made = new_key()
    row = ApiKey.objects.create(tenant=of.tenant, application=of, name=name, prefix=made.prefix, digest=made.digest)
    KeyCost.objects.create(month=month, tenant=of.tenant.slug, key_id=row.pk, fen=fen)
    return row


@pytest.fixture
def desk(farm) -> Application:
    """Two keys of one application, one of another company's; a key of none, and a key that is gone."""
    made = application("estate", "desk")
    key(made, "早", 12_345)
    key(made, "晚", 55)
    key(application("finance", "risk"), "风控", 777)
    key(application("estate", "idle"), "闲", 999, date(2026, 9, 1))
    none = ApiKey.objects.get(name="demo estate")
    KeyCost.objects.create(month=MONTH, tenant="estate", key_id=none.pk, fen=30)
    KeyCost.objects.create(month=MONTH, tenant="estate", key_id=987_654, fen=4)
    return made


def lines(name: str, wanted: str = "") -> dict[str, int]:
    return {line.label: line.fen for line in by_application.month(rows.person(name), MONTH, wanted).lines}


def test_an_application_costs_what_its_keys_took(desk):
    own = {"应用 desk": 12_400, "应用 idle": 0, "不归应用的密钥": 34}
    assert lines("tenant_admin") == own
    found = by_application.month(rows.person("operator"), MONTH)
    assert found.total_fen == 12_400 + 777 + 34
    assert found.lines[0].label == "应用 desk"


def test_one_of_them_key_by_key(desk):
    assert lines("tenant_admin", str(desk.pk)) == {"早": 12_345, "晚": 55}
    foreign = Application.objects.get(slug="risk")
    assert lines("operator", str(foreign.pk)) == {"风控": 777}
    for wanted in (str(foreign.pk), "0", "x", "9" * 30):
        assert "应用 desk" in lines("tenant_admin", wanted), "what is not theirs narrows nothing"


def test_the_page_and_the_table_say_the_same(browse, desk):
    client = browse("operator")
    html = text(client.get(URL))
    for said in ("应用 desk", "124.00", "7.77", "132.11", "不归应用的密钥", "比公司的合计少"):
        assert said in html, said
    answer = client.get(URL.replace("/costs/", "/costs/table.csv"))
    table = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert table[0][1] == "应用"
    assert table[1] == ["置业公司", "应用 desk", "2", "124.00"]
    assert table[-1][-1] == "132.11"
    one = f"&application={desk.pk}"
    html = text(client.get(URL + one))
    for said in ("早", "123.45", f"application={desk.pk}"):
        assert said in html, said
    assert "7.77" not in html
    csv_one = text(client.get(URL.replace("/costs/", "/costs/table.csv") + one))
    assert "123.45" in csv_one
    assert "7.77" not in csv_one


def test_a_company_sees_its_own_only(browse, desk):
    html = text(browse("tenant_member").get(URL))
    assert "应用 desk" in html
    assert "应用 risk" not in html
    assert f"application={desk.pk}" in text(browse("tenant_member").get(f"/applications/{desk.pk}"))


def test_without_any_it_says_what_to_do(browse, farm):
    ApiKey.objects.all().delete()
    assert "在公司页建应用" in text(browse("operator").get(URL))


def test_other_ways_are_as_they_were(browse, desk):
    html = text(browse("operator").get("/costs/?month=2026-10"))
    assert "gk-app" not in html
    assert "按应用" in html
