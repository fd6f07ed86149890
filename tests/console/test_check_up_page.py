"""The check-up page: six kinds in words with their figures, buttons for who may, names for who may know them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone, translation

from console.catalog.models import Replica, Service
from console.costs import check_up
from console.money.models import Symptom
from scheduler import symptoms
from scheduler.policy import Policy
from scheduler.symptoms import Cure, Kind
from scheduler.thrash import Hour
from workers.control.check_up import keep

URL = "/check-up/"
POLICY = Policy()


def found(name: str, neighbour: str, replica: int) -> list[symptoms.Symptom]:
    """One of each kind, out of the detectors themselves."""
    figures = symptoms.Figures(
        pools=[symptoms.PoolUse("shared-large", 29, 92, 3, (symptoms.Resident(neighbour, 20480, 1),))],
        mornings=[symptoms.Mornings(name, (12.0, 14.0, 16.0), 8)],
        caps=[symptoms.Caps(name, 12, 40, 15, 22.0)],
        broken=[symptoms.Broken(name, 700, 3, "out_of_memory", 0, calls=17)],
        swaps=[symptoms.Swaps(name, Hour(30, 4, 50), (neighbour,), 120, 30)],
        busy=[symptoms.Busy(name, 9, 2400, 800, (symptoms.Neighbour(neighbour, replica, 4000, 30720),))],
    )
    return symptoms.check_up(figures, POLICY)


@pytest.fixture
def ill(farm):
    copy = Replica.objects.get(service__name="equipment-kb")
    keep(found("property-service", "equipment-kb", copy.pk), timezone.now().timestamp())
    return copy


def test_every_kind_and_cure_has_words():
    assert set(check_up.TITLES) == set(check_up.SAYS) == set(Kind)
    assert set(check_up.CURES) == set(check_up.WAYS) == set(Cure)


def test_six_symptoms_with_their_figures(ill, browse):
    html = browse("operator").get(URL).content.decode()
    for title in check_up.TITLES.values():
        assert str(title) in html
    for text in (
        "29 张卡显存平均用了 92%，芯片负载只有 3%", "可还 20.0 GiB", "平均等 14.0 秒", "通常在 8 点", "12 个等满 15 秒",
        "实际装载要 22.0 秒", "out_of_memory", "11 分前", "30 次装载", "每小时 1.20 元", "P99 2400 毫秒",
        "占着 30.0 GiB", "设备知识库", "物业客服",
    ):  # fmt: skip
        assert text in html, text


def test_buttons_lead_where_the_cure_is(ill, browse):
    client = browse("operator")
    html = client.get(URL).content.decode()
    for url in (
        "/services/equipment-kb/edit",
        f"/services/equipment-kb/replicas/{ill.pk}/drain",
        "/services/property-service/preload",
        "/services/property-service/whitelist",
    ):
        assert f'href="{url}"' in html, url
        assert client.get(url).status_code == 200
    assert "/preload" not in browse("auditor").get(URL).content.decode(), "who may not has no button"


def test_a_company_sees_its_own_and_no_foreign_name(ill, browse):
    html = browse("tenant_member").get(URL).content.decode()
    assert "物业客服" in html
    assert "其他公司的业务" in html
    for foreign in ("设备知识库", "equipment-kb", "29 张卡"):
        assert foreign not in html, foreign
    keep(found("hotline-qa", "equipment-kb", ill.pk), timezone.now().timestamp())
    assert "没有症状" in browse("tenant_member").get(URL).content.decode()


def test_what_is_gone_is_listed_as_gone(ill, browse):
    keep([], timezone.now().timestamp())
    html = browse("operator").get(URL).content.decode()
    assert "没有症状" in html
    assert "已经好了的" in html
    assert Symptom.objects.filter(closed_at=None).count() == 0


def test_many_are_named_and_the_rest_counted(farm, browse):
    residents = tuple(symptoms.Resident(s.name, 1024, 0) for s in Service.objects.all())
    keep(symptoms.check_up(symptoms.Figures([symptoms.PoolUse("shared-large", 9, 95, 1, residents)]), POLICY), 1e9)
    html = browse("operator").get(URL).content.decode()
    assert f"另有 {len(residents) - check_up.NAMED} 个" in html


def test_in_english_too(ill, browse):
    client = browse("operator")
    client.cookies["gongka_language"] = "en"
    with translation.override("zh-hans"):  # what a request leaves active goes with it
        html = client.get(URL).content.decode()
    for text in ("Memory full, few requests", "One more slot costs 1.20 yuan an hour", "Ask the neighbour to leave"):
        assert text in html, text


def test_the_number_of_queries_is_fixed(ill, browse, django_assert_max_num_queries):
    client, now = browse("operator"), timezone.now()
    for i, service in enumerate(Service.objects.all()):
        Symptom.objects.create(
            kind=Kind.LOAD_FAILED, service=service, opened_at=now, seen_at=now, closed_at=now - timedelta(days=i),
            numbers={"failures": 1, "failed_s": 5, "fault": "x", "calls": 0}, remedies=[["retry", "", None]],
        )  # fmt: skip
    with django_assert_max_num_queries(7):
        client.get(URL)
