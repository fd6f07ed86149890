"""One box for everything, within what the person may see."""

from __future__ import annotations

import pytest

from console.accounts.models import Application, Tenant, User
from console.catalog.models import Replica
from console.search import found
from tests.console import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def look(farm):
    def titles(name: str, text: str) -> dict[str, list[str]]:
        return {kind.label: [hit.title for hit in kind.hits] for kind in found(rows.person(name), text)}

    return titles


def test_everything_with_a_name_is_found_by_staff(look):
    assert "物业客服" in look("operator", "property-service")["业务"]
    assert look("operator", "置业")["公司"] == ["置业公司"]
    assert look("operator", "10")["卡"] == ["10 号卡"]
    assert look("operator", "gpu-0")["主机"] == ["gpu-01", "gpu-02", "gpu-03", "gpu-04"]
    replica = Replica.objects.filter(ended_at=None).first()
    assert look("operator", f"#{replica.pk}")["实例"] == [f"{replica.service.label} 的实例 #{replica.pk}"]


def test_a_company_finds_nothing_of_another(look):
    for text in ("fund-qa", "理财问答", "金服", "finance", "gpu-01"):
        assert look("tenant_member", text) == {}, text
    assert set(look("tenant_member", "property-service")) == {"业务", "实例"}
    assert look("tenant_member", "17") == {} or "卡" not in look("tenant_member", "17")
    assert look("tenant_member", "10")["卡"] == ["10 号卡"]
    foreign = Replica.objects.filter(ended_at=None, service__name="fund-qa").first()
    assert "实例" not in look("tenant_member", f"#{foreign.pk}")


def test_applications_are_found_within_the_company(look):
    for slug, name in (("estate", "报修台"), ("finance", "报销台")):
        Application.objects.create(tenant=Tenant.objects.get(slug=slug), slug=f"{slug}-desk", name=name)
    assert look("operator", "desk")["应用"] == ["报销台", "报修台"]
    assert look("tenant_member", "报") == {"应用": ["报修台"]}
    assert look("tenant_member", "finance-desk") == {}


def test_every_hit_leads_to_a_page(browse):
    client = browse("operator")
    for kind in found(rows.person("operator"), "gpu") + found(rows.person("operator"), "qa"):
        for hit in kind.hits:
            assert client.get(hit.url).status_code == 200, hit


def test_the_page_says_what_to_do_when_there_is_nothing(browse):
    client = browse("operator")
    assert "没有找到" in client.get("/search?q=zzz").content.decode()
    assert "找什么" in client.get("/search").content.decode()


@pytest.mark.parametrize("text", ["%", "'", "<script>", "9" * 40, "\\", "a" * 500])
def test_odd_words_are_only_words(browse, text):
    answer = browse("operator").get("/search", {"q": text})
    assert answer.status_code == 200
    assert "<script>alert" not in answer.content.decode()


def test_the_number_of_queries_is_fixed(farm, django_assert_num_queries):
    person = User.objects.select_related("tenant").get(username="tenant_member")
    for text in ("q", "a", "10"):
        with django_assert_num_queries(6):
            found(person, text)
