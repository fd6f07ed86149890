"""A deputy does what the company's administrator may, while it lasts, in that company, and in their own name."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from console.accounts.access import MAY, Act, may, stands_in
from console.accounts.models import Absence, Role, Tenant, User
from console.audit.models import Entry
from console.policies.models import PolicyValue
from tests.console import rows

pytestmark = pytest.mark.django_db


def away(person: str = "tenant_admin", deputy: str = "tenant_member", hours: float = -1, length: float = 24) -> Absence:
    start = timezone.now() + timedelta(hours=hours)
    times = {"starts_at": start, "until": start + timedelta(hours=length)}
    return Absence.objects.create(person=rows.person(person), deputy=rows.person(deputy), **times)


def local(hours: float) -> str:
    return timezone.localtime(timezone.now() + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M")


def test_a_deputy_may_what_the_administrator_may_but_for_naming_another(farm):
    before = {act for act in Act if may(rows.person("tenant_member"), act)}
    away()
    now = {act for act in Act if may(rows.person("tenant_member"), act)}
    admin = {act for act in Act if Role.TENANT_ADMIN in MAY[act]}
    assert now == before | (admin - {Act.NAME_DEPUTY})
    assert Act.EDIT_KEYS in now - before


@pytest.mark.parametrize(("hours", "length"), [(1, 24), (-48, 24)])
def test_neither_before_nor_after(farm, hours, length):
    away(hours=hours, length=length)
    assert not may(rows.person("tenant_member"), Act.EDIT_KEYS)


@pytest.mark.parametrize(
    "change",
    [{"is_active": False}, {"role": "tenant_member"}, {"tenant": "energy"}, {"role": "auditor", "tenant": None}],
)
def test_it_ends_with_what_the_administrator_was(farm, change):
    away()
    if change.get("tenant"):
        change = {"tenant": Tenant.objects.get(slug=change["tenant"])}
    User.objects.filter(username="tenant_admin").update(**change)
    assert not may(rows.person("tenant_member"), Act.EDIT_KEYS)


def test_a_deputy_who_changed_company_is_none(farm):
    away()
    User.objects.filter(username="tenant_member").update(tenant=Tenant.objects.get(slug="energy"))
    assert stands_in(rows.person("tenant_member")) == []


def test_naming_ending_and_what_both_pages_say(browse):
    admin, member = browse("tenant_admin"), rows.person("tenant_member")
    page = admin.get("/requests/absences")
    assert [one.username for one in page.context["form"].fields["deputy"].queryset] == ["tenant_member"]
    said = admin.post(
        "/requests/absences", {"deputy": member.pk, "starts_at": local(-1), "until": local(5)}, follow=True
    )
    assert "代您管理公司" in said.content.decode()
    row = Absence.objects.get()
    assert Entry.objects.latest("id").act == "request-absences"
    for who in (row.person_id, row.deputy_id):
        assert f"/absences/{row.pk}/end" in admin.get(f"/members/{who}").content.decode()
    theirs = browse("tenant_member")
    assert f"/absences/{row.pk}/end" in theirs.get("/").content.decode()
    assert theirs.get("/members/").status_code == 200
    assert theirs.get("/requests/absences").status_code == 403
    admin.post(f"/absences/{row.pk}/end")
    one = Entry.objects.latest("id")
    assert (one.act, {field for _, _, field, _, _ in one.changes}) == ("absence-end", {"ended_at"})
    assert theirs.get("/members/").status_code == 403


@pytest.mark.parametrize(("who", "status"), [("tenant_member", 302), ("account_officer", 302), ("auditor", 403)])
def test_who_ends_it(browse, who, status):
    row = away()
    client = browse(who)
    assert client.get(f"/absences/{row.pk}/end").status_code == 200
    assert client.post(f"/absences/{row.pk}/end").status_code == status
    row.refresh_from_db()
    assert (row.ended_at is not None) == (status == 302)


def test_another_companys_absence_is_not_there(browse):
    row = away()
    User.objects.filter(username="tenant_admin").update(tenant=Tenant.objects.get(slug="energy"))
    assert browse("tenant_member").get(f"/absences/{row.pk}/end").status_code == 404


def test_a_deputy_cannot_take_over_the_account_they_stand_in_for(browse):
    row, client = away(), browse("tenant_member")
    assert client.post(f"/members/{row.person_id}/password").status_code == 403
    assert client.post(f"/members/{row.person_id}", {"full_name": "x", "role": "manager"}).status_code == 403
    assert client.post(f"/members/{row.deputy_id}", {"full_name": "x", "role": "tenant_admin"}).status_code == 403


def test_rules_for_administrators_bind_their_deputies(browse):
    away()
    PolicyValue.objects.filter(name="wide_key_approval").delete()
    answer = browse("tenant_member").post("/keys/new", {"name": "全部", "days": "30"})
    assert "要审批" in answer.content.decode()
    assert [kind.key for kind in browse("tenant_member").get("/requests/new").context["kinds"]] == [
        kind.key for kind in browse("tenant_admin").get("/requests/new").context["kinds"]
    ]


def test_only_people_of_the_company_can_be_named(browse):
    stranger = User.objects.create(username="y", role="tenant_member", tenant=Tenant.objects.get(slug="energy"))
    for who in (stranger, rows.person("operator"), rows.person("tenant_admin")):
        given = {"deputy": who.pk, "starts_at": local(-1), "until": local(5)}
        assert browse("tenant_admin").post("/requests/absences", given).status_code == 422
    assert not Absence.objects.exists()


def test_one_query_tells_a_member_whether_they_stand_in(browse, django_assert_max_num_queries):
    away()
    user = rows.person("tenant_member")
    with django_assert_max_num_queries(1):
        assert all(may(user, act) for act in (Act.EDIT_KEYS, Act.SEE_MEMBERS, Act.EDIT_SERVICE))
