"""The board as staff and as a tenant see it."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone

from console.accounts.models import Tenant
from console.board import rows as board_rows
from console.board.scopes import seen_by
from console.catalog.models import Replica, Service
from console.fleet.models import Card
from tests.console import rows

#: Session and person 2, policy 1, foreign use 1, memory 5 (replicas, services, hosts, pools, cards), tenants 1.
QUERIES = 10
TENANT_QUERIES = QUERIES + 3  # the hosts it has replicas on, its company's name, whom the person stands in for
pytestmark = pytest.mark.django_db


def test_it_draws_every_card_for_staff(browse):
    html = browse("operator").get("/").content.decode()
    assert len(re.findall(r'<article class="gk-tile', html)) == 32
    for text in (
        "热线问答",
        "3 在途",
        "装载",
        "62%",
        "宽限",
        "摘流中",
        "回收中",
        "陈旧",
        "停用",
        "不健康",
        "模拟卡",
        "休眠",
    ):
        assert text in html, text


def test_segments_of_every_tile_sum_to_its_card(browse):
    html = browse("operator").get("/").content.decode()
    totals = dict(Card.objects.values_list("pk", "total_mib"))
    for tile in re.split(r"<article ", html)[1:]:
        pk = int(re.search(r'id="card-(\d+)"', tile).group(1))
        sizes = re.findall(r'<i class="s-[a-z]+[^"]*" style="--m:(\d+)', tile)
        assert sum(map(int, sizes)) == totals[pk]


def test_a_tenant_sees_nothing_of_another_but_size_and_profile(browse):
    html = browse("tenant_member").get("/").content.decode()
    assert "公文写作" in html
    assert "物业客服" in html
    assert "s-anon" in html
    estate = Tenant.objects.get(slug="estate")
    for service in Service.objects.exclude(tenant=estate):
        assert service.label not in html
        assert service.name not in html
    for tenant in Tenant.objects.exclude(pk=estate.pk):
        assert tenant.name not in html
        assert f">{tenant.mark}<" not in html


def test_a_foreign_card_does_not_exist_for_a_tenant(browse):
    client, foreign, own = browse("tenant_member"), Card.objects.get(number=1), Card.objects.get(number=6)
    for part in ("", "/drawer"):
        assert client.get(f"/board/cards/{foreign.pk}{part}").status_code == 404
        assert client.get(f"/board/cards/{own.pk}{part}").status_code == 200
    drawer = client.get(f"/board/cards/{own.pk}/drawer").content.decode()
    assert "估价说明" in drawer
    assert "图纸问答" not in drawer


def test_the_drawer_tells_replicas_and_decisions_in_words(browse):
    html = browse("operator").get(f"/board/cards/{Card.objects.get(number=6).pk}/drawer").content.decode()
    for text in ("图纸问答", "摘流", "给在等的调用让出显存", "让给研报生成"):
        assert text in html, text


def test_the_drawer_tells_how_far_kv_is_oversold(browse):
    page = f"/board/cards/{Card.objects.get(number=6).pk}/drawer"
    client = browse("operator")
    seats = Replica.objects.filter(cards=[Card.objects.get(number=6).uuid], ended_at=None).select_related("service")
    for seat in seats:
        Replica.objects.filter(pk=seat.pk).update(kv_granted_mib=seat.service.kv_cap_mib)
    assert "KV 没有超卖" in client.get(page).content.decode()
    for seat in seats:
        Replica.objects.filter(pk=seat.pk).update(kv_granted_mib=seat.service.kv_cap_mib * 4 // 5)
    assert "KV 超卖 25.0%" in client.get(page).content.decode()
    Replica.objects.filter(pk__in=[seat.pk for seat in seats]).update(kv_granted_mib=0)
    assert "超卖" not in client.get(page).content.decode().split("<h3>")[0]


def test_an_alert_of_the_card_itself_is_in_its_drawer(browse):
    from console.journal.models import Decision

    card = Card.objects.get(number=6)
    numbers = {"used_pct": 99.1, "short_mib": 800}
    Decision.objects.create(
        at=timezone.now(), verb="drain", reason="pressure", refusal="no_victim", card=card, numbers=numbers
    )
    assert "99.1" in browse("operator").get(f"/board/cards/{card.pk}/drawer").content.decode()


def test_no_host_yet_says_what_to_do(client, db):
    from console.accounts.models import Role, User

    client.force_login(User.objects.create_user("first", role=Role.OPERATOR))
    assert "还没有主机" in client.get("/").content.decode()


def test_a_tenant_without_replicas_is_told_why_the_board_is_empty(browse, farm):
    from console.catalog.models import Replica

    Replica.objects.all().delete()
    assert "您的业务现在没有占用显存" in browse("tenant_admin").get("/").content.decode()


def test_queries_do_not_grow_with_cards(browse, django_assert_num_queries):
    client = browse("operator")
    with django_assert_num_queries(QUERIES):
        client.get("/")
    first = Card.objects.order_by("pk").last()
    for index in range(40):
        Card.objects.create(
            uuid=f"GPU-more-{index}",
            host=first.host,
            index=100 + index,
            name="L20",
            card_class="l20",
            pool=first.pool,
            total_mib=46068,
            free_mib=40000,
            sampled_at=rows.moment(),
        )
    with django_assert_num_queries(QUERIES):
        client.get("/")


def test_a_tenants_board_reads_its_own_hosts_and_loses_nothing(browse, django_assert_num_queries):
    estate, at = Tenant.objects.get(slug="estate").pk, rows.moment().timestamp()
    mine = board_rows.hosts_of(estate)
    some = board_rows.now(at, hosts=mine).cards
    assert mine
    assert len(some) < Card.objects.count()
    assert seen_by(some, estate) == seen_by(board_rows.now(at).cards, estate)
    client = browse("tenant_member")
    with django_assert_num_queries(TENANT_QUERIES):
        client.get("/")


def test_staff_read_every_host():
    assert board_rows.hosts_of(None) is None
