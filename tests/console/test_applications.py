"""Applications below companies: the tree with its numbers, who may change it, and keys that belong to one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from console.accounts.models import ApiKey, Application, Tenant, User
from console.audit.models import Entry
from console.money.models import KeyCost
from console.money.months import month_of
from console.usage.models import HourlyCalls
from tests.console import rows

pytestmark = pytest.mark.django_db
NEW = {"name": "工单系统", "slug": "desk"}


def estate() -> Tenant:
    return Tenant.objects.get(slug="estate")


def key(slug: str = "estate") -> ApiKey:
    return ApiKey.objects.get(name=f"demo {slug}")


def made(slug: str = "estate", name: str = "desk") -> Application:
    return Application.objects.create(tenant=Tenant.objects.get(slug=slug), slug=name, name=name)


def called(of: ApiKey, calls: int, service: str = "property-service", ago_days: float = 0) -> None:
    hour = (timezone.now() - timedelta(days=ago_days)).replace(minute=0, second=0, microsecond=0)
    HourlyCalls.objects.create(hour=hour, service=service, tenant=of.tenant.slug, key_id=of.pk, calls=calls)


@pytest.mark.parametrize("role", ["operator", "tenant_admin"])
def test_a_new_application(browse, role):
    owner = rows.person("tenant_member")
    answer = browse(role).post(f"/applications/new?tenant={estate().pk}", NEW | {"owner": owner.pk, "note": "24 h"})
    row = Application.objects.get(slug="desk")
    assert (answer.url, row.tenant.slug, row.owner) == (f"/applications/{row.pk}", "estate", owner)
    assert Entry.objects.latest("id").act == "application-new"


def test_its_company_cannot_be_chosen_by_an_administrator_and_its_owner_is_of_the_company(browse):
    finance = Tenant.objects.get(slug="finance")
    client = browse("tenant_admin")
    client.post(f"/applications/new?tenant={finance.pk}", NEW)
    assert Application.objects.get(slug="desk").tenant.slug == "estate"
    stranger = rows.person("operator")
    answer = client.post("/applications/new", {"name": "b", "slug": "b", "owner": stranger.pk})
    assert answer.context["form"].errors["owner"]


def test_a_name_is_used_once_a_company(browse):
    made()
    made("finance")
    answer = browse("tenant_admin").post("/applications/new", {"name": "desk", "slug": "other"})
    assert "已有一个同名的应用" in answer.content.decode()
    assert Application.objects.count() == 2


def test_a_name_taken_between_look_and_write_is_said(browse, monkeypatch):
    from console.people import applications

    made()
    monkeypatch.setattr(applications.ApplicationForm, "clean", lambda form: form.cleaned_data)
    answer = browse("tenant_admin").post("/applications/new", {"name": "desk", "slug": "other"})
    assert "已有一个同名的应用" in answer.content.decode()


def test_a_change_keeps_the_identifier(browse):
    row = made()
    browse("tenant_admin").post(f"/applications/{row.pk}/edit", {"name": "工单", "slug": "stolen", "note": ""})
    row.refresh_from_db()
    assert (row.name, row.slug) == ("工单", "desk")


def test_only_an_application_without_keys_is_removed(browse):
    row, client = made(), browse("tenant_admin")
    ApiKey.objects.filter(pk=key().pk).update(application=row, revoked_at=timezone.now())
    assert "1 个密钥" in client.get(f"/applications/{row.pk}/remove").content.decode()
    client.post(f"/applications/{row.pk}/remove")
    assert Application.objects.filter(pk=row.pk).exists()
    ApiKey.objects.update(application=None)
    assert client.post(f"/applications/{row.pk}/remove").url == f"/tenants/{row.tenant_id}"
    assert not Application.objects.filter(pk=row.pk).exists()


def test_a_key_belongs_to_an_application_of_its_company(browse):
    row, other, client = made(), made("finance"), browse("tenant_admin")
    given = {"name": "工单", "days": "30", "services": ["property-service"]}
    assert client.post("/keys/new", given | {"application": other.pk}).context["form"].errors["application"]
    client.post("/keys/new", given | {"application": row.pk})
    assert ApiKey.objects.get(name="工单").application == row
    assert client.post(f"/keys/{key().pk}/application", {"application": other.pk}).status_code == 200
    client.post(f"/keys/{key().pk}/application", {"application": row.pk})
    assert key().application == row
    said = {field: after for _, _, field, _, after in Entry.objects.latest("id").changes}
    assert said == {"application": row.pk}
    assert "desk" in client.get("/keys/").content.decode()


def test_a_rotated_key_stays_with_its_application(browse):
    row = made()
    old = key()
    ApiKey.objects.filter(pk=old.pk).update(application=row)
    browse("tenant_admin").post(f"/keys/{old.pk}/rotate", {"hours": "1"})
    assert ApiKey.objects.get(pk=old.pk).followed_by.application == row


@pytest.fixture
def key_of_none(farm) -> ApiKey:
    return ApiKey.objects.create(tenant=estate(), name="loose", prefix="gk_loose", digest="1" * 64)


def test_usage_and_cost_by_application(browse, key_of_none):
    row, month = made(), month_of(timezone.now()).date()
    ApiKey.objects.filter(pk=key().pk).update(application=row)
    called(key(), 40)
    called(key(), 2, service="hotline-qa")
    called(key(), 500, ago_days=8)
    called(key_of_none, 7)
    for one, fen in ((key(), 12_345), (key_of_none, 100)):
        KeyCost.objects.create(month=month, tenant="estate", key_id=one.pk, fen=fen)
    client = browse("tenant_member")
    branch = client.get(f"/tenants/{row.tenant_id}").context["branch"]
    leaf = branch.leaves[0]
    assert (leaf.application, leaf.keys, leaf.calls, leaf.fen) == (row, 1, 42, 12_345)
    assert (branch.rest.keys, branch.rest.calls, branch.rest.fen) == (1, 7, 100)
    answer = client.get(f"/applications/{row.pk}")
    assert [(one["service"], one["n"]) for one in answer.context["calls"]] == [
        ("property-service", 40),
        ("hotline-qa", 2),
    ]
    assert "123.45" in answer.content.decode()
    assert [one["label"] for one in answer.context["calls"]] == ["物业客服", ""]  # another company's keeps its name


def test_an_account_officer_sees_neither_services_nor_money(browse):
    row = made()
    answer = browse("account_officer").get(f"/applications/{row.pk}")
    assert (answer.context["costs"], answer.context["calls"], answer.context["keys"]) == (False, [], None)
    assert "本月费用" not in answer.content.decode()


def test_the_tree_on_the_companies_page(browse):
    row, foreign = made(), made("finance", "别家")
    html = browse("operator").get("/tenants/").content.decode()
    assert html.index("置业公司") < html.index(f"/applications/{row.pk}")
    assert f"/applications/{foreign.pk}" in html
    answer = browse("tenant_member").get("/tenants/")
    assert answer.context["group"] is None
    assert f"/applications/{row.pk}" in answer.content.decode()
    assert f"/applications/{foreign.pk}" not in answer.content.decode()
    group = browse("auditor").get("/tenants/").context["group"]
    assert (group.companies, group.applications) == (Tenant.objects.count(), 2)


def test_a_company_without_applications_says_what_to_do(browse):
    assert "还没有应用" in browse("tenant_admin").get(f"/tenants/{estate().pk}").content.decode()


@pytest.mark.parametrize("role", ["tenant_member", "manager", "approver", "auditor", "account_officer"])
def test_nobody_else_changes_applications(browse, role):
    row = made()
    client = browse(role)
    assert client.post("/applications/new", NEW).status_code == 403
    assert client.post(f"/applications/{row.pk}/remove").status_code == 403


def test_query_counts_do_not_grow_with_the_tree(browse, django_assert_num_queries):
    client = browse("operator")
    for tenant in Tenant.objects.all():
        Application.objects.bulk_create(Application(tenant=tenant, slug=f"a{n}", name=f"应用{n}") for n in range(20))
    ApiKey.objects.filter(pk=key().pk).update(application=Application.objects.filter(tenant=estate())[0])
    User.objects.filter(username="tenant_member").update(is_active=True)
    tenant, first = estate().pk, Application.objects.filter(tenant=estate())[0].pk
    with django_assert_num_queries(13):
        client.get("/tenants/")
    with django_assert_num_queries(18):
        client.get(f"/tenants/{tenant}")
    with django_assert_num_queries(10):
        client.get(f"/applications/{first}")
