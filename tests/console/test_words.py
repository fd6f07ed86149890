"""Decisions, services and numbers in plain words."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from console import filters
from console.accounts.models import Tenant
from console.catalog.models import Replica, Service
from console.journal import words
from console.journal.models import Decision
from scheduler.decision import Code, Reason, Verb
from tests.console import rows

pytestmark = pytest.mark.django_db


def test_every_verb_reason_and_refusal_has_a_word():
    assert set(words.VERBS) == set(Verb)
    assert set(words.REASONS) == set(Reason)
    assert set(words.REFUSALS) == set(Code)


def test_the_journal_tells_what_why_and_how_much(browse):
    html = browse("operator").get("/decisions/").content.decode()
    for text in ("装载未成：显存不够", "差 2,310 MiB", "通知让位", "空闲 201 秒", "撤回通知", "让给研报生成", "06 号"):
        assert text in html, text
    assert html.index("研报生成") < html.index("设备知识库")  # newest first


def test_a_tenant_reads_its_own_decisions_and_no_foreign_name(browse):
    rows.decide("estate-valuation", "drain", "room", 6, numbers={"room_for": "research-writer"})
    html = browse("tenant_admin").get("/decisions/").content.decode()
    assert "让给其他公司的业务" in html
    for service in Service.objects.exclude(tenant__slug="estate"):
        assert service.label not in html
        assert service.name not in html


def test_the_journal_has_pages(browse, django_assert_num_queries):
    for _ in range(60):
        rows.decide("hotline-qa", "wake", "hold", 1)
    client = browse("operator")
    with django_assert_num_queries(5):
        html = client.get("/decisions/").content.decode()
    assert "第 1 / 2 页" in html
    assert "公文写作" in client.get("/decisions/?page=2").content.decode()
    assert client.get("/decisions/?page=x").status_code == 200


def test_an_empty_journal_says_what_to_do(browse):
    Decision.objects.all().delete()
    assert "还没有决策" in browse("auditor").get("/decisions/").content.decode()


def test_services_stand_as_they_do(browse):
    html = browse("operator").get("/services/").content.decode()
    for text in (
        "热线问答",
        "hotline-qa",
        "2–4",
        "高频",
        "装载中",
        "休眠",
        "未装载",
        "摘流中",
        "全集团可调用",
        "还没有",
    ):
        assert text in html, text


def test_a_tenant_lists_its_own_services_only(browse):
    html = browse("tenant_member").get("/services/").content.decode()
    assert "contract-review" in html
    assert all(one.name not in html for one in Service.objects.exclude(tenant__slug="estate"))


def test_a_failed_service_says_why(browse):
    failure = {"at": time.time(), "code": "out_of_memory", "message": "还差 310 MiB", "fatal": False}
    Service.objects.filter(name="product-copy").update(failures=[failure | {"card": card} for card in "xyz"])
    html = browse("operator").get("/services/").content.decode()
    assert "装载失败" in html
    assert "还差 310 MiB" in html


def test_no_service_yet(client, db):
    from console.accounts.models import Role, User

    tenant = Tenant.objects.create(slug="new", name="新公司", mark="新", ordinal=7)
    client.force_login(User.objects.create_user("newcomer", role=Role.TENANT_MEMBER, tenant=tenant))
    assert "还没有业务" in client.get("/services/").content.decode()


def test_the_services_page_asks_the_database_a_fixed_number_of_times(browse, django_assert_num_queries):
    client = browse("operator")
    with django_assert_num_queries(8):
        client.get("/services/")


def test_a_replica_that_ended_is_not_counted(browse):
    Replica.objects.update(ended_at=timezone.now())
    assert "就绪</span>" not in browse("operator").get("/services/").content.decode()


def test_units_and_times():
    assert filters.gib(None) == "—"
    assert filters.gib(0) == "0.0"
    assert filters.gib(46068) == "45.0"
    assert filters.pct(None) == "—"
    assert filters.pct(0.625) == "62%"
    now = timezone.now()
    assert filters.when(None) == "—"
    assert filters.when(now).startswith("今天")
    assert filters.when(now - timedelta(days=1)).startswith("昨天")
    assert len(filters.when(now - timedelta(days=800))) == len("2024-01-01 10:00")
