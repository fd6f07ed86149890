"""What of the board is shown: filters in the address, counts, density, and what a tile is drawn from."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from console.accounts.models import Tenant
from console.board import draw
from console.board import rows as board_rows
from console.board.choice import STATES
from console.catalog.models import Service
from console.fleet.models import Card
from tests.console import rows

pytestmark = pytest.mark.django_db


def shown(client, query: str) -> set[int]:
    html = client.get(f"/{query}").content.decode()
    numbers = dict(Card.objects.values_list("pk", "number"))
    return {numbers[int(pk)] for pk in re.findall(r'<article class="gk-[^"]*" id="card-(\d+)"', html)}


@pytest.mark.parametrize(
    ("query", "cards"),
    [
        ("?state=stale", {13}),
        ("?state=off", {14, 24}),
        ("?state=asleep", {6, 10}),
        ("?state=change", {4, 5, 6, 7, 27}),
        ("?state=pressure", set()),
        ("?tenant=estate", {3, 6, 10}),
        ("?tenant=estate&state=asleep", {6, 10}),
        ("?q=热线", {1, 9}),
        ("?q=gpu-04", set(range(25, 33))),
        ("?pool=shared-middle&q=10", {10}),
    ],
)
def test_the_address_chooses_cards(browse, query, cards):
    found = shown(browse("operator"), query)
    assert cards <= found if "tenant" in query and "state" not in query else found == cards


def test_counts_are_there_even_when_zero(browse):
    html = browse("operator").get("/?q=gpu-04").content.decode()
    counts = dict(re.findall(r'data-count="(\w*)"[^>]*>(\d+)<', html))
    assert set(counts) == set(STATES)
    assert (counts[""], counts["pressure"], counts["change"]) == ("8", "0", "1")


def test_nothing_found_says_so_and_leads_back(browse):
    html = browse("operator").get("/?q=nothing-like-it").content.decode()
    assert "没有符合筛选的卡" in html


def test_a_tenant_cannot_search_for_foreign_services(browse):
    assert shown(browse("tenant_member"), "?q=图纸") == set()
    assert shown(browse("tenant_member"), "?q=物业") == {10}


def test_a_card_above_the_line_is_under_pressure(browse):
    Card.objects.filter(number=8).update(free_mib=4000)
    client = browse("operator")
    assert shown(client, "?state=pressure") == {8}
    assert "压力 95.1%" in client.get("/").content.decode()


def test_dense_and_wall(browse):
    client = browse("operator")
    html = client.get("/?dense=1&wall=1").content.decode()
    assert html.count('<article class="gk-c') == 32
    assert "data-wall" in html
    pk = Card.objects.get(number=1).pk
    assert client.get(f"/board/cards/{pk}?dense=1").content.decode().startswith('<article class="gk-c')


def test_a_tile_is_drawn_anew_whatever_changes_on_it(farm):
    board = board_rows.board()
    numbers = next(one for one in board.now.cards if one.id == Card.objects.get(number=1).pk)
    first = draw.tile(numbers, board.names, 93)
    assert draw.tile(numbers, board.names, 93) is first
    for change in ({"load_pct": 99}, {"used_mib": 5}, {"healthy": False}, {"stale": True}, {"foreign_until": 2.0e9}):
        assert draw.tile(replace(numbers, **change), board.names, 93) != first
    assert draw.tile(numbers, board.names, 90) != first
    Tenant.objects.filter(slug="energy").update(mark="源")
    Service.objects.filter(name="hotline-qa").update(label="<b>改名</b>")
    html = draw.tile(numbers, board_rows.board().names, 93)
    assert "源" in html
    assert "&lt;b&gt;改名" in html
    assert "<b>改名" not in html


def test_if_a_card_failed_its_services_go_on_are_rebuilt_or_are_told_why_not(browse):
    client = browse("operator")
    by_number = {card.number: card.pk for card in Card.objects.all()}
    html = client.get(f"/board/cards/{by_number[1]}/failure").content.decode()
    assert "不断，另有就绪实例在 09 号卡" in html
    assert re.search(r"在 \d\d 号卡重建，约 \d+ 秒", html)
    for card in Card.objects.exclude(number=2):
        Card.objects.filter(pk=card.pk).update(cordoned=True)
    html = client.get(f"/board/cards/{by_number[2]}/failure").content.decode()
    assert "没有地方重建：卡或主机已停止调度" in html


def test_a_tenant_is_told_of_its_own_services_only(browse):
    pk = Card.objects.get(number=10).pk
    html = browse("tenant_member").get(f"/board/cards/{pk}/failure").content.decode()
    assert "物业客服" in html
    assert "理财问答" not in html
    assert "另有 1 个实例属于其他公司" in html


def test_cordon_asks_with_numbers_and_does_it_once(browse):
    client, card = browse("operator"), Card.objects.get(number=1)
    assert "卡上的 2 个实例留着，3 个在途调用不受影响" in client.get(f"/board/cards/{card.pk}/cordon").content.decode()
    client.post(f"/board/cards/{card.pk}/cordon", {"cordoned": "1"})
    card.refresh_from_db()
    assert card.cordoned
    again = client.post(f"/board/cards/{card.pk}/cordon", {"cordoned": "1"}, follow=True)
    assert "已经是这样了" in again.content.decode()


def test_one_tile_reads_one_host(browse, django_assert_num_queries):
    client, pk = browse("operator"), Card.objects.get(number=1).pk
    with django_assert_num_queries(11):
        client.get(f"/board/cards/{pk}")
    assert rows.person("operator").is_active
