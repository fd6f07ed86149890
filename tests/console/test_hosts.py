"""Hosts: how they stand, and what an operator may do with them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from console import state
from console.catalog.models import Order, Replica, Service
from console.fleet.models import Card, ForeignUse, Host
from scheduler.decision import Refusal
from scheduler.placement import place
from scheduler.policy import DEFAULT
from tests.console import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def host(farm) -> Host:
    return Host.objects.get(name="gpu-01")


def test_the_list_says_how_each_stands(browse, host):
    Host.objects.filter(name="gpu-02").update(seen_at=rows.moment(-30))
    Host.objects.filter(name="gpu-03").update(seen_at=rows.moment(-300))
    Host.objects.filter(name="gpu-04").update(cordoned=True)
    html = browse("auditor").get("/hosts/").content.decode()
    for text in ("正常", "没有消息", "失联", "停止调度", "5 分前", "1 张不健康"):
        assert text in html, text


def test_the_list_asks_a_fixed_number_of_times(browse, host, django_assert_num_queries):
    client = browse("operator")
    with django_assert_num_queries(6):
        client.get("/hosts/")


def test_a_page_tells_cards_replicas_and_sleeping_weights(browse, host):
    html = browse("auditor").get(f"/hosts/{host.pk}").content.decode()
    for text in ("热线问答", "估价说明", "休眠的权重占", "A-01"):
        assert text in html, text
    assert "腾空维护" not in html  # an auditor reads


def states(browse, host: Host) -> list[str]:
    """The last column of the host's cards."""
    html = browse("auditor").get(f"/hosts/{host.pk}").content.decode().split("<tbody>")[1].split("</tbody>")[0]
    return [re.sub(r"<[^>]*>", "", row.rpartition("<td>")[2]) for row in html.split("</tr>")[:-1]]


def test_a_card_nobody_measures_is_not_called_usable(browse, host):
    Host.objects.filter(pk=host.pk).update(seen_at=rows.moment())
    first, second, third = host.cards.order_by("index")[:3]
    Card.objects.filter(host=host).update(sampled_at=rows.moment(), healthy=True, cordoned=False)
    Card.objects.filter(pk=first.pk).update(free_mib=None)
    Card.objects.filter(pk=second.pk).update(sampled_at=None, free_mib=None)
    Card.objects.filter(pk=third.pk).update(cordoned=True)
    assert states(browse, host)[:4] == ["陈旧", "尚未报到", "停止调度", "可用"]
    Host.objects.filter(pk=host.pk).update(seen_at=rows.moment(-30))  # its last figures are half a minute old
    assert set(states(browse, host)) == {"陈旧", "尚未报到"}


def test_the_list_says_stale_where_cards_cannot_be_measured(browse, host):
    client = browse("auditor")
    Card.objects.update(sampled_at=rows.moment(), free_mib=1)
    assert "陈旧" not in client.get("/hosts/").content.decode()
    some = host.cards.order_by("index")
    Card.objects.filter(pk=some[0].pk).update(free_mib=None)
    Card.objects.filter(pk=some[1].pk).update(sampled_at=rows.moment(-60))
    Card.objects.filter(pk=some[2].pk).update(free_mib=None, sampled_at=None)  # never reported: not stale
    html = client.get("/hosts/").content.decode()
    assert "2 张陈旧" in html
    assert html.count(">陈旧<") == 1, "the host's word"


def test_cordon_asks_first_and_changes_only_what_was_shown(browse, host):
    client = browse("operator")
    assert "个在途调用不受影响" in client.get(f"/hosts/{host.pk}/cordon").content.decode()
    client.post(f"/hosts/{host.pk}/cordon", {"cordoned": "1"})
    assert Host.objects.get(pk=host.pk).cordoned
    again = client.post(f"/hosts/{host.pk}/cordon", {"cordoned": "1"}, follow=True)
    assert "什么也没有改" in again.content.decode()


def test_maintenance_is_planned_shown_in_progress_and_called_off(browse, host):
    client, until = browse("operator"), timezone.localtime() + timedelta(hours=1)
    here = Replica.objects.filter(host=host, ended_at=None).count()
    Service.objects.filter(name="hotline-qa").update(min_replicas=1)
    asked = client.get(f"/hosts/{host.pk}/maintenance").content.decode()
    assert "先在别的主机装好替身" in asked
    for _ in range(2):  # a second time it is a new deadline
        client.post(f"/hosts/{host.pk}/maintenance", {"until": f"{until:%Y-%m-%dT%H:%M}"})
    row = Host.objects.get(pk=host.pk)
    assert (row.cordoned, row.maintenance_of, Order.objects.exists()) == (True, here, False)
    planned = state.world(timezone.now().timestamp()).hosts["gpu-01"]
    assert planned.leave_by == row.maintenance_at.timestamp()
    html = client.get(f"/hosts/{host.pk}").content.decode()
    for said in (f"{here} 个实例走了 0 个", "等替身就绪", "取消维护", "改期限"):
        assert said in html, said
    going = Replica.objects.filter(host=host, ended_at=None).first()
    Replica.objects.filter(pk=going.pk).update(ended_at=timezone.now())
    assert f"{here} 个实例走了 1 个" in client.get(f"/hosts/{host.pk}").content.decode()
    Host.objects.filter(pk=host.pk).update(maintenance_at=rows.moment(-1))
    assert "正被切断" in client.get(f"/hosts/{host.pk}").content.decode()
    client.post(f"/hosts/{host.pk}/maintenance/end")
    row.refresh_from_db()
    assert (row.cordoned, row.maintenance_at, row.maintenance_of) == (False, None, 0)
    again = client.post(f"/hosts/{host.pk}/maintenance/end", follow=True).content.decode()
    assert "什么也没有改" in again


def test_an_empty_host_says_that_it_may_be_worked_on(browse, host):
    Replica.objects.filter(host=host).update(ended_at=timezone.now())
    Host.objects.filter(pk=host.pk).update(cordoned=True, maintenance_at=rows.moment(600), maintenance_of=3)
    html = browse("operator").get(f"/hosts/{host.pk}").content.decode()
    assert "已经腾空" in html
    assert "结束维护" in html


def test_a_cordon_that_is_lifted_ends_maintenance(browse, host):
    Host.objects.filter(pk=host.pk).update(cordoned=True, maintenance_at=rows.moment(600), maintenance_of=3)
    browse("operator").post(f"/hosts/{host.pk}/cordon", {"cordoned": "0"})
    assert Host.objects.get(pk=host.pk).maintenance_at is None


def test_a_deadline_that_has_passed_is_refused_beside_its_field(browse, host):
    answer = browse("operator").post(f"/hosts/{host.pk}/maintenance", {"until": "2020-01-01T00:00"})
    assert "这个时间已经过去了" in answer.content.decode()
    assert not Host.objects.get(pk=host.pk).cordoned


def test_only_a_silent_host_is_declared_gone(browse, host):
    client = browse("operator")
    client.post(f"/hosts/{host.pk}/gone", {"gone": "1"})
    assert not Host.objects.get(pk=host.pk).declared_gone
    Host.objects.filter(pk=host.pk).update(seen_at=rows.moment(-600))
    client.post(f"/hosts/{host.pk}/gone", {"gone": "1"})
    assert Host.objects.get(pk=host.pk).declared_gone
    client.post(f"/hosts/{host.pk}/gone", {"gone": "0"})
    assert not Host.objects.get(pk=host.pk).declared_gone


def test_a_foreign_use_is_entered_honoured_and_struck_out(browse, host):
    client, now = browse("operator"), timezone.localtime()
    form = {"card": "", "note": "研究院训练", "starts_at": f"{now - timedelta(hours=1):%Y-%m-%dT%H:%M}"}
    refused = client.post(f"/hosts/{host.pk}/foreign", form | {"ends_at": form["starts_at"]})
    assert "要晚于开始的时间" in refused.content.decode()
    client.post(f"/hosts/{host.pk}/foreign", form | {"ends_at": f"{now + timedelta(hours=1):%Y-%m-%dT%H:%M}"})
    use = ForeignUse.objects.get()
    assert all(
        card.cordoned for card in state.world(timezone.now().timestamp()).cards.values() if card.host == "gpu-01"
    )
    assert "外用至" in client.get("/").content.decode()
    assert "研究院训练" in client.get(f"/hosts/{host.pk}").content.decode()
    client.post(f"/hosts/{host.pk}/foreign/{use.pk}")
    assert not ForeignUse.objects.exists()


def test_nothing_is_placed_on_a_card_while_others_have_it(host):
    now = timezone.now()
    for one in Host.objects.all():
        ForeignUse.objects.create(host=one, starts_at=now - timedelta(1), ends_at=now + timedelta(1), note="x")
    world = state.world(now.timestamp())
    answer = place(world, DEFAULT, world.services["contract-review"], now.timestamp())
    assert isinstance(answer, Refusal)
    tomorrow = (now + timedelta(days=2)).timestamp()
    assert not any(card.cordoned for card in state.world(tomorrow).cards.values() if card.id != cordoned())


def cordoned() -> str:
    return Card.objects.get(number=14).uuid
