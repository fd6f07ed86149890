"""Callers' keys: shown once, scoped, rotated beside the old one, revoked; every question with its numbers."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from console.accounts.keys import digest_of
from console.accounts.models import ApiKey, Tenant
from console.gateway.snapshot import read
from console.policies.models import PolicyValue
from console.usage.models import HourlyCalls
from tests.console import rows

pytestmark = pytest.mark.django_db
SHOWN = re.compile(r'id="secret">([^<]+)<')


def key(slug: str = "estate") -> ApiKey:
    return ApiKey.objects.get(name=f"demo {slug}")


def make(client, **more: object):
    estate = Tenant.objects.get(slug="estate")
    return client.post(f"/keys/new?tenant={estate.pk}", {"name": "工单系统", "days": "90", **more})


def test_a_key_is_shown_once_and_works_at_the_gateway(browse):
    answer = make(browse("tenant_admin"), services=["property-service"], progress_content="on")
    shown = SHOWN.search(answer.content.decode())[1]
    row = ApiKey.objects.get(name="工单系统")
    assert (row.digest, row.prefix) == (digest_of(shown), shown[:12])
    assert (row.tenant.slug, row.created_by.username) == ("estate", "tenant_admin")
    assert (row.services, row.progress_content) == (["property-service"], True)
    assert timedelta(days=89) < row.expires_at - timezone.now() < timedelta(days=91)
    assert read().keys[row.digest].services == {"property-service"}
    assert shown not in browse("tenant_admin").get("/keys/").content.decode()
    assert "no-store" in answer.headers["Cache-Control"]


def test_the_form_sent_twice_makes_one_key(browse):
    client = browse("tenant_admin")
    make(client, services=["property-service"])
    again = make(client, services=["property-service"]).content.decode()
    assert "已有一个同名的有效密钥" in again
    assert ApiKey.objects.filter(name="工单系统").count() == 1


def test_a_tenants_administrator_cannot_name_another_company(browse):
    finance = Tenant.objects.get(slug="finance")
    given = {"name": "x", "days": "30", "services": ["property-service"]}
    browse("tenant_admin").post(f"/keys/new?tenant={finance.pk}", given)
    assert ApiKey.objects.get(name="x").tenant.slug == "estate"


def test_a_companys_key_to_everything_is_had_by_request_unless_the_site_says_otherwise(browse):
    client = browse("tenant_admin")
    assert "要审批" in make(client, services=[]).content.decode()
    assert not ApiKey.objects.filter(name="工单系统").exists()
    PolicyValue.objects.create(name="wide_key_approval", value=0)
    make(client, services=[])
    assert ApiKey.objects.get(name="工单系统").services == []


def test_a_service_the_company_may_not_call_is_no_choice(browse):
    answer = make(browse("tenant_admin"), services=["due-diligence"])  # of 金服公司 alone
    assert answer.status_code == 200
    assert not ApiKey.objects.filter(name="工单系统").exists()


def test_staff_choose_the_company_first(browse):
    html = browse("operator").get("/keys/new").content.decode()
    assert 'name="tenant"' in html
    assert 'name="days"' not in html
    assert 'name="days"' in browse("operator").get(f"/keys/new?tenant={key().tenant_id}").content.decode()


def test_rotation_keeps_what_it_may_and_lets_the_old_one_run_out(browse):
    old = key()
    ApiKey.objects.filter(pk=old.pk).update(services=["property-service"])
    answer = browse("operator").post(f"/keys/{old.pk}/rotate", {"hours": "24"})
    new = ApiKey.objects.get(digest=digest_of(SHOWN.search(answer.content.decode())[1]))
    old.refresh_from_db()
    assert (old.followed_by, new.services, new.tenant) == (new, ["property-service"], old.tenant)
    assert timedelta(hours=23) < old.expires_at - timezone.now() < timedelta(hours=25)
    assert {old.digest, new.digest} <= set(read().keys)


def test_rotation_never_lengthens_the_life_of_the_old_key(browse):
    soon = timezone.now() + timedelta(hours=2)
    ApiKey.objects.filter(pk=key().pk).update(expires_at=soon)
    browse("operator").post(f"/keys/{key().pk}/rotate", {"hours": "720"})
    assert ApiKey.objects.get(followed_by__isnull=False).expires_at == soon


def test_a_key_is_rotated_once(browse):
    old, client = key(), browse("operator")
    assert client.post(f"/keys/{old.pk}/rotate", {"hours": "1"}).status_code == 200
    before = ApiKey.objects.count()
    answer = client.post(f"/keys/{old.pk}/rotate", {"hours": "1"}, follow=True)
    assert "没有建新的" in answer.content.decode()
    assert ApiKey.objects.count() == before


def test_revoking_asks_with_the_calls_it_carries_then_ends_it(browse):
    row, client = key(), browse("operator")
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    HourlyCalls.objects.create(hour=hour, service="property-service", tenant="estate", key_id=row.pk, calls=417)
    ApiKey.objects.filter(pk=row.pk).update(last_used_at=rows.moment(-60))
    assert "调用了 417 次" in client.get(f"/keys/{row.pk}/revoke").content.decode()
    assert ApiKey.objects.get(pk=row.pk).revoked_at is None  # looking is not doing
    client.post(f"/keys/{row.pk}/revoke")
    assert row.digest not in read().keys
    assert client.get(f"/keys/{row.pk}/revoke").status_code == 404  # it is over


def test_states_filter(browse):
    client = browse("operator")
    ApiKey.objects.filter(name="demo estate").update(revoked_at=rows.moment())
    ApiKey.objects.filter(name="demo finance").update(expires_at=rows.moment(-5))
    ApiKey.objects.filter(name="demo energy").update(expires_at=rows.moment(86400))
    found = {}
    for state in ("live", "soon", "expired", "revoked"):
        table = client.get(f"/keys/?state={state}").context["table"]
        found[state] = {row.name.removeprefix("demo ") for row in table.rows}
    assert found["revoked"] == {"estate"}
    assert found["expired"] == {"finance"}
    assert found["soon"] == {"energy"}
    assert found["live"] == {"energy", "traffic", "manufacturing", "logistics"}


def test_the_number_of_queries_does_not_grow_with_the_rows(browse, django_assert_num_queries):
    owner = Tenant.objects.get(slug="estate")
    ApiKey.objects.bulk_create(
        ApiKey(tenant=owner, name=f"app {n}", prefix=f"gk_{n:05d}", digest=f"{n:064d}") for n in range(1000)
    )
    client = browse("operator")
    with django_assert_num_queries(5):
        answer = client.get("/keys/")
    assert len(answer.context["table"].rows) == 50
    assert answer.context["table"].found == 1006


def test_a_member_sees_the_keys_and_changes_none(browse):
    client = browse("tenant_member")
    html = client.get("/keys/").content.decode()
    assert "demo estate" in html
    assert "demo finance" not in html
    assert "/revoke" not in html
    assert client.post(f"/keys/{key().pk}/revoke").status_code == 403
