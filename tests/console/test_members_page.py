"""People: who may make and change whom, first passwords, the end of access."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from console.accounts.models import Role, Tenant, User
from tests.console import rows

pytestmark = pytest.mark.django_db
SHOWN = re.compile(r'id="secret">([^<]+)<')
NEW = {"full_name": "刘洋", "username": "liuyang", "role": "tenant_member"}


def someone(role: str = "tenant_member", slug: str | None = "estate") -> User:
    owner = Tenant.objects.get(slug=slug) if slug else None
    return User.objects.create(username=f"x-{role}-{slug}", full_name="某人", role=role, tenant=owner)


def test_a_new_member_signs_in_with_the_first_password_and_must_change_it(browse):
    answer = browse("tenant_admin").post("/members/new", NEW)
    password = SHOWN.search(answer.content.decode())[1]
    client = Client()
    client.post("/login", {"username": "liuyang", "password": password})
    assert client.get("/").url == "/password"
    fields = {"old_password": password, "new_password1": "quiet river 47", "new_password2": "quiet river 47"}
    assert client.post("/password", fields).url == "/"
    assert client.get("/").status_code == 200
    assert User.objects.get(username="liuyang").tenant.slug == "estate"


def test_a_password_against_the_rules_is_refused_beside_the_field(browse):
    browse("tenant_admin")
    user = rows.person("tenant_member")
    user.set_password("the old one 1234")
    user.save()
    client = Client()
    client.force_login(user)
    fields = {"old_password": "the old one 1234", "new_password1": "short", "new_password2": "short"}
    html = client.post("/password", fields).content.decode()
    assert "gk-bad" in html
    assert rows.person("tenant_member").check_password("the old one 1234")


@pytest.mark.parametrize("role", ["operator", "approver", "auditor", "account_officer"])
def test_a_companys_administrator_gives_no_role_of_the_centre(browse, role):
    client = browse("tenant_admin")
    assert client.post("/members/new", NEW | {"role": role}).status_code == 200
    assert not User.objects.filter(username="liuyang").exists()
    member = someone()
    client.post(f"/members/{member.pk}", {"full_name": "某人", "role": role})
    member.refresh_from_db()
    assert member.role == "tenant_member"


def test_a_companys_administrator_reaches_nobody_of_the_centre_even_in_the_own_company(browse):
    """A row of the centre that names the company must not be a way to take its account over."""
    operator = someone("operator", "estate")
    client = browse("tenant_admin")
    for path in ("", "/access", "/password"):
        assert client.get(f"/members/{operator.pk}{path}").status_code == 404
    assert operator.username not in client.get("/members/").content.decode()


def test_the_company_cannot_be_chosen_by_its_administrator(browse):
    finance = Tenant.objects.get(slug="finance")
    browse("tenant_admin").post("/members/new", NEW | {"tenant": finance.pk})
    assert User.objects.get(username="liuyang").tenant.slug == "estate"


def test_roles_and_companies_fit_together(browse):
    client, estate = browse("account_officer"), Tenant.objects.get(slug="estate")
    assert "请选一家" in client.post("/members/new", NEW).content.decode()
    wrong = client.post("/members/new", NEW | {"role": "auditor", "tenant": estate.pk}).content.decode()
    assert "不能属于一家" in wrong
    assert not User.objects.filter(username="liuyang").exists()


def test_changing_a_role_leaves_password_and_account_alone(browse):
    member = someone()
    member.set_password("kept as it was 1")
    member.save()
    sent = {"full_name": "某人", "username": "stolen", "role": "tenant_admin"}
    assert browse("tenant_admin").post(f"/members/{member.pk}", sent).status_code == 302
    member.refresh_from_db()
    assert (member.role, member.username) == ("tenant_admin", "x-tenant_member-estate")
    assert member.check_password("kept as it was 1")


@pytest.mark.parametrize("role", ["account_officer", "tenant_admin"])
def test_nobody_changes_the_own_role_or_locks_oneself_out(browse, role):
    client, me = browse(role), rows.person(role)
    assert client.post(f"/members/{me.pk}", {"full_name": "x", "role": "auditor"}).status_code == 403
    assert client.post(f"/members/{me.pk}/access", {"to": "off"}).status_code == 403
    assert client.post(f"/members/{me.pk}/password").status_code == 403
    me.refresh_from_db()
    assert (me.role, me.is_active) == (role, True)


def test_deactivation_asks_then_ends_open_pages(browse):
    member = rows.person("tenant_member")
    theirs, client = browse("tenant_member"), browse("tenant_admin")
    assert "立即退出" in client.get(f"/members/{member.pk}/access").content.decode()
    assert theirs.get("/").status_code == 200
    client.post(f"/members/{member.pk}/access", {"to": "off"})
    assert theirs.get("/").url == "/login?next=/"
    client.post(f"/members/{member.pk}/access", {"to": "on"})
    assert User.objects.get(pk=member.pk).is_active


def test_a_reset_ends_sessions_and_a_lock_out(browse):
    member = rows.person("tenant_member")
    theirs = browse("tenant_member")
    for _ in range(5):
        Client().post("/login", {"username": member.username, "password": "wrong"})
    answer = browse("account_officer").post(f"/members/{member.pk}/password")
    password = SHOWN.search(answer.content.decode())[1]
    assert theirs.get("/").status_code == 302
    assert Client().post("/login", {"username": member.username, "password": password}).status_code == 302


def test_filters_and_query_count(browse, django_assert_num_queries):
    User.objects.bulk_create(
        User(username=f"u{n}", tenant=Tenant.objects.get(slug="energy"), is_active=n % 2 == 0) for n in range(60)
    )
    client = browse("operator")
    with django_assert_num_queries(4):
        table = client.get("/members/").context["table"]
    assert (len(table.rows), table.found) == (50, 67)
    assert client.get("/members/?state=off").context["table"].found == 30
    assert {row.role for row in client.get("/members/?role=auditor&state=").context["table"].rows} == {Role.AUDITOR}


@pytest.mark.parametrize("role", ["operator", "approver", "auditor"])
def test_who_runs_the_cards_makes_and_takes_over_no_account(browse, role):
    """Three officers apart: else one person could be all three."""
    client, approver = browse(role), someone("approver", None)
    assert client.get("/members/").status_code == 200
    for path in ("/members/new", f"/members/{approver.pk}/access", f"/members/{approver.pk}/password"):
        assert client.post(path, NEW).status_code == 403
    assert client.post(f"/members/{approver.pk}", {"full_name": "x", "role": "auditor"}).status_code == 403


def test_the_account_officer_begins_where_there_is_something_to_see(browse):
    officer = rows.person("account_officer")
    officer.set_password("a long enough one")
    officer.save()
    client = Client()
    assert client.post("/login", {"username": officer.username, "password": "a long enough one"}).url == "/tenants/"
    page = client.get("/tenants/")
    assert [entry["name"] for entry in page.context["menu"]] == ["tenants", "members"]
    assert 'class="gk-brand" href="/tenants/"' in page.content.decode()
    assert (
        client.get("/").status_code == client.get("/services/").status_code == client.get("/search").status_code == 403
    )
