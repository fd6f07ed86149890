"""Companies from a workbook."""

from __future__ import annotations

import pytest

from console.accounts.models import Tenant
from console.audit.models import Entry
from tests.console.sheets import confirm, send, states, upload

pytestmark = pytest.mark.django_db


def companies(client, *rows):
    return upload(client, *rows, what="tenants")


@pytest.mark.parametrize("role", ["operator", "account_officer"])
def test_new_and_renamed_companies(browse, role):
    client = browse(role)
    last = Tenant.objects.order_by("ordinal").last().ordinal
    shown = companies(client, ("能化公司", "chem", "化"), ("置业集团", "estate", "置"), ("港口公司", "port", "港"))
    assert states(shown) == {2: "ok", 3: "warn", 4: "ok"}
    assert confirm(client, shown, "tenants").status_code == 200
    assert list(Tenant.objects.filter(ordinal__gt=last).values_list("slug", flat=True)) == ["chem", "port"]
    assert Tenant.objects.get(slug="estate").name == "置业集团"
    said = {(which, field): after for _, which, field, _, after in Entry.objects.latest("id").changes}
    assert said["置业集团", "name"] == "置业集团"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("置业公司", "chem", "化"), "已有一家公司用着"),
        (("能化公司", "chem", "置"), "已有一家公司用着"),
        (("能化公司", "Chem", "化"), "标识只能用"),
        (("能化公司", "能化", "化"), "标识只能用"),
        (("能化公司", "chem", "能化公"), "简称最多两个字"),
        (("", "chem", "化"), "没有填"),
    ],
)
def test_wrong_rows(browse, row, said):
    answer = companies(browse("operator"), row)
    assert states(answer) == {2: "bad"}
    assert said in answer.content.decode()


def test_what_two_rows_say_together(browse):
    answer = companies(browse("operator"), ("能化公司", "chem", "化"), ("能化二", "chem2", "化"), ("港", "port", "港"))
    assert states(answer) == {2: "bad", 3: "bad", 4: "ok"}


def test_a_name_taken_meanwhile(browse):
    client = browse("operator")
    shown = companies(client, ("能化公司", "chem", "化"))
    Tenant.objects.create(slug="other", name="能化公司", mark="氢", ordinal=90)
    answer = confirm(client, shown, "tenants")
    assert answer.status_code == 409
    assert states(answer) == {2: "bad"}


def test_the_list_as_it_is_comes_back_unchanged(browse):
    client = browse("operator")
    body = client.get("/tenants/import/template.xlsx?rows=1").content
    assert set(states(send(client, body, "tenants")).values()) == {"line"}


@pytest.mark.parametrize("role", ["tenant_admin", "tenant_member", "approver", "auditor", "manager"])
def test_nobody_else_imports_companies(browse, role):
    assert companies(browse(role), ("能化公司", "chem", "化")).status_code == 403
