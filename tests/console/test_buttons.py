"""Buttons: what they say would happen, whom they obey, and the order they file."""

from __future__ import annotations

import pytest
from django.utils import timezone

from console.catalog.models import Order, Replica
from console.fleet.models import Card, Pool
from tests.console import rows

pytestmark = pytest.mark.django_db


def text(answer) -> str:
    return answer.content.decode()


@pytest.fixture
def operator(browse):
    return browse("operator")


def replica(service: str) -> Replica:
    return Replica.objects.filter(service__name=service, ended_at=None).order_by("pk").first()


def address(service: str, act: str) -> str:
    return f"/services/{service}/replicas/{replica(service).pk}/{act}"


def open_order() -> Order:
    return Order.objects.get(done_at=None)


def test_a_preload_says_where_beside_whom_and_what_is_left_then_files_an_order(operator):
    html = text(operator.get("/services/contract-review/preload"))
    for said in ("不用任何实例让位", "号卡（gpu-", "之后剩", "秒就绪"):
        assert said in html, said
    assert not Order.objects.exists(), "looking is no deed"
    answer = operator.post("/services/contract-review/preload")
    assert (answer.status_code, answer.url) == (302, "/services/contract-review")
    order = open_order()
    assert (order.act, order.count, order.force, order.by.username) == ("preload", 1, False, "operator")
    assert order.until > timezone.now()
    assert not Replica.objects.filter(service__name="contract-review").exists(), "the planner does it, not the page"
    html = text(operator.get("/services/contract-review"))
    assert "已下达：预热" in html
    assert "进行中" in html


def test_a_second_copy_is_asked_for_beside_the_one_that_is_there(operator):
    operator.post("/services/property-service/preload")
    assert open_order().count == 2


def test_a_sleeper_is_woken_rather_than_loaded_anew(operator):
    rows.place("contract-review", 16, "asleep")
    html = text(operator.get("/services/contract-review/preload"))
    assert "它在16 号卡（gpu-02）休眠，唤醒即可" in html
    html = text(operator.get(address("contract-review", "wake")))
    assert "显存多占" in html
    assert "秒就绪" in html


def test_what_waits_for_room_that_is_coming_says_where_and_how_long(operator):
    html = text(operator.get("/services/estate-valuation/preload"))
    for said in ("放得下，要等", "正在腾显存", "在06 号卡（gpu-01）", "约等", "排队预热"):
        assert said in html, said


def fill_all_cards() -> None:
    """Nothing fits anywhere, and all neighbours are idle for long."""
    Replica.objects.all().delete()
    for card in Card.objects.all():
        Card.objects.filter(pk=card.pk).update(free_mib=card.total_mib // 3, healthy=True, cordoned=False, release={})


def test_what_fits_nowhere_is_said_with_its_numbers_and_files_nothing(operator):
    fill_all_cards()
    html = text(operator.get("/services/monday-report/preload"))
    assert "现在放不下" in html
    assert "显存不够" in html
    assert "MiB" in html
    assert operator.post("/services/monday-report/preload").status_code == 409
    assert not Order.objects.exists()


def test_draining_says_what_is_in_flight_given_back_and_how_long_a_return_takes(operator):
    html = text(operator.get(address("equipment-kb", "drain")))
    for said in ("摘流设备知识库的一个实例", "01 号卡（gpu-01）", "休眠，还回", "MiB", "唤醒约", "都会做完"):
        assert said in html, said
    assert 'name="force"' not in html
    operator.post(address("equipment-kb", "drain"))
    assert (open_order().act, open_order().replica) == ("drain", replica("equipment-kb"))


def test_stopping_offers_force_only_with_what_it_would_cut(operator):
    url = address("code-helper", "stop")
    html = text(operator.get(url))
    for said in (
        "停止代码助手的一个实例",
        "做完后停止，还回",
        "装载约",
        "强制：到时限就切断",
        "秒；到时还没做完的会被切断",
    ):
        assert said in html, said
    assert "会马上在别处补一个" in html, "it shall be ready: another copy follows at once"
    operator.post(url)
    assert open_order().force is False
    operator.post(url, {"force": "1"})
    assert open_order().force is True
    assert Order.objects.get(outcome="replaced").force is False, "the last word counts"


def test_force_is_not_taken_where_it_was_not_offered(operator):
    operator.post("/services/contract-review/preload", {"force": "1"})
    assert open_order().force is False


def test_two_hosts_are_kept_and_the_page_says_so(operator):
    for url in (address("hotline-qa", "stop"), "/services/hotline-qa/stop"):
        rows.place("hotline-qa", 10)
        html = text(operator.get(url))
        if "两台主机上都要有实例" in html:
            assert operator.post(url).status_code == 409
            break
    else:
        raise AssertionError("neither was refused")


def test_in_a_pool_that_is_only_observed_no_button_acts(operator):
    Pool.objects.update(mode="observe")
    for url in (address("code-helper", "drain"), "/services/contract-review/preload", "/services/code-helper/stop"):
        assert "只观察，不动手" in text(operator.get(url))
        assert operator.post(url).status_code == 409
    assert not Order.objects.exists()


def test_a_notice_is_taken_back_for_a_while(operator):
    html = text(operator.get(address("due-diligence", "keep")))
    assert "原定" in html
    assert "60 分钟内不会" in html
    operator.post(address("due-diligence", "keep"))
    assert open_order().act == "keep"
    assert "现在没有通知" in text(operator.get(address("code-helper", "keep")))


@pytest.mark.parametrize("act", ["preload", "fly", "start"])
def test_only_what_a_replica_can_be_asked_is_an_address(operator, act):
    assert operator.get(address("code-helper", act)).status_code == 404


def test_a_replica_that_ended_or_belongs_elsewhere_is_not_there(operator):
    pk = replica("code-helper").pk
    assert operator.get(f"/services/hotline-qa/replicas/{pk}/drain").status_code == 404
    Replica.objects.filter(pk=pk).update(ended_at=timezone.now())
    assert operator.get(f"/services/code-helper/replicas/{pk}/drain").status_code == 404


@pytest.mark.parametrize("role", ["approver", "tenant_admin", "tenant_member", "manager", "auditor"])
def test_only_an_operator_presses(browse, role):
    client = browse(role)
    for url in ("preload", "stop"):
        assert client.post(f"/services/property-service/{url}").status_code == 403
    assert client.post(address("property-service", "drain")).status_code == 403
    assert not Order.objects.exists()


def test_a_forged_form_is_refused(farm):
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    client.force_login(rows.person("operator"))
    assert client.post("/services/contract-review/preload").status_code == 403
