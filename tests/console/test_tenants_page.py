"""Companies: the list with its counts, one company, making one."""

from __future__ import annotations

import pytest
from django.utils import timezone

from console.accounts.models import ApiKey, Tenant
from console.usage.models import HourlyCalls

pytestmark = pytest.mark.django_db
NEW = {"name": "能化公司", "slug": "chem", "mark": "化"}


def listed(client, query: str = "") -> dict[str, Tenant]:
    return {row.slug: row for row in client.get(f"/tenants/{query}").context["table"].rows}


def test_counts_are_each_their_own(browse):
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for number in (1, 2):
        HourlyCalls.objects.create(hour=hour, service=f"s{number}", tenant="estate", key_id=number, calls=50)
    ApiKey.objects.filter(name="demo estate").update(revoked_at=timezone.now())
    rows = listed(browse("auditor"))
    estate, energy = rows["estate"], rows["energy"]
    assert (estate.member_count, estate.key_count, estate.calls_7d) == (2, 0, 100)
    assert (energy.key_count, energy.calls_7d) == (2, 0)
    assert estate.service_count == estate.services.count() > 1


def test_a_company_sees_itself_only(browse):
    assert set(listed(browse("tenant_member"))) == {"estate"}


def test_a_new_company_gets_the_next_colour(browse):
    answer = browse("operator").post("/tenants/new", NEW)
    row = Tenant.objects.get(slug="chem")
    assert (answer.url, row.ordinal) == (f"/tenants/{row.pk}", 6)


@pytest.mark.parametrize(
    ("field", "value"), [("name", "置业公司"), ("slug", "estate"), ("mark", "置"), ("slug", "a b")]
)
def test_names_that_are_taken_or_wrong_are_refused_and_kept_in_the_form(browse, field, value):
    answer = browse("operator").post("/tenants/new", NEW | {field: value})
    assert answer.status_code == 200
    assert answer.context["form"].errors[field]
    assert f'value="{value}"' in answer.content.decode()


def test_renaming_keeps_the_identifier(browse):
    estate = Tenant.objects.get(slug="estate")
    browse("operator").post(f"/tenants/{estate.pk}/edit", {"name": "置业集团", "slug": "stolen", "mark": "置"})
    estate.refresh_from_db()
    assert (estate.name, estate.slug) == ("置业集团", "estate")


def test_only_operators_make_companies(browse):
    assert browse("tenant_admin").post("/tenants/new", NEW).status_code == 403
    assert not Tenant.objects.filter(slug="chem").exists()


def test_query_counts(browse, django_assert_num_queries):
    Tenant.objects.bulk_create(
        Tenant(slug=f"c{n}", name=f"公司{n}", mark=f"{n:02x}", ordinal=100 + n) for n in range(80)
    )
    client, estate = browse("operator"), Tenant.objects.get(slug="estate")
    with django_assert_num_queries(13):
        assert len(listed(client)) == 50
    with django_assert_num_queries(18):
        client.get(f"/tenants/{estate.pk}")


def test_sorting_by_a_count(browse):
    rows = list(listed(browse("operator"), "?sort=-services").values())
    assert [row.service_count for row in rows] == sorted((row.service_count for row in rows), reverse=True)
