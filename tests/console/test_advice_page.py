"""The page of advice: what waits for a click, what is about to happen, who may press what."""

from __future__ import annotations

from datetime import timedelta
from html import unescape

import pytest
from django.utils import timezone

from console.accounts.models import User
from console.advising.gain import gains
from console.advising.modes import set_mode
from console.catalog.models import Order, Service
from console.fleet.models import Pool
from console.journal.models import Advice, Change, Notice
from scheduler.policy import Policy
from tests.console.addresses import FOREIGN, MINE, SERVICES, a_notice, an_advice

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    """Nudges need Redis; the page does not."""
    monkeypatch.setattr("console.advising.views.hurry", lambda name: None)


def text(answer) -> str:
    return unescape(answer.content.decode())


def an_open_one(owner: str = MINE, **changes) -> Advice:
    row = Advice.objects.get(pk=an_advice(SERVICES[owner])()["pk"])
    Advice.objects.filter(pk=row.pk).update(**changes)
    row.refresh_from_db()
    return row


def notice(kind: str, **numbers) -> Notice:
    now = timezone.now()
    fields = {} if kind in ("waterline", "tiers") else {"service": Service.objects.get(name=SERVICES[MINE])}
    if kind == "waterline":
        fields = {"pool": Pool.objects.first()}
    return Notice.objects.create(kind=kind, subject=kind, numbers=numbers, opened_at=now, refreshed_at=now, **fields)


def test_an_operator_sees_what_would_be_done_and_approves_it(browse):
    row = an_open_one()
    operator = browse("operator")
    html = text(operator.get("/advice/"))
    for word in ("摘流", "空闲已满时限", "空闲 1,300 秒", "批准"):
        assert word in html, word
    html = text(operator.get(f"/advice/{row.pk}/approve"))
    assert "仍然需要才做" in html
    assert "10 分钟" in html
    assert operator.post(f"/advice/{row.pk}/approve").status_code == 302
    row.refresh_from_db()
    assert row.approved_by.username == "operator"
    assert timedelta(seconds=590) < row.approved_until - timezone.now() <= timedelta(seconds=600)
    assert "已批，等下一轮调度" in text(operator.get("/advice/"))


def test_leave_to_make_room_asks_for_what_the_room_is_for(browse):
    """Its caller was told to wait for somebody's leave and has gone: without a wish nothing would follow the click."""
    waiting = Service.objects.get(name=SERVICES[FOREIGN])
    row = an_open_one(reason="room", numbers={"room_for": waiting.name})
    operator = browse("operator")
    operator.post(f"/advice/{row.pk}/approve")
    order = Order.objects.get(done_at=None)
    assert (order.service, order.act, order.force, order.by.username) == (waiting, "preload", True, "operator")
    row.refresh_from_db()
    assert order.until == row.approved_until
    operator.post(f"/advice/{row.pk}/approve")
    assert Order.objects.filter(done_at=None).count() == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"told": "not_managed"},
        {"approved_until": timezone.now() + timedelta(hours=1), "approved_at": timezone.now()},
    ],
)
def test_a_click_writes_only_where_it_still_means_something(browse, changes):
    row = an_open_one(**changes)
    answer = browse("operator").post(f"/advice/{row.pk}/approve", follow=True)
    assert "什么也没有做" in text(answer)
    row.refresh_from_db()
    assert row.approved_by is None


def test_what_lapsed_may_be_approved_anew_and_what_is_closed_is_gone(browse):
    row = an_open_one(approved_until=timezone.now() - timedelta(seconds=1))
    operator = browse("operator")
    operator.post(f"/advice/{row.pk}/approve")
    row.refresh_from_db()
    assert row.approved_until > timezone.now()
    Advice.objects.update(closed_at=timezone.now())
    assert operator.get(f"/advice/{row.pk}/approve").status_code == 404


def test_where_a_pool_only_observes_there_is_no_button(browse):
    an_open_one(told="not_managed")
    html = text(browse("operator").get("/advice/"))
    assert "只观察" in html
    assert "/approve" not in html


def test_a_company_sees_its_own_and_cannot_approve(browse):
    mine, foreign = an_open_one(), an_open_one(FOREIGN)
    html = text(browse("tenant_admin").get("/advice/"))
    assert f'id="advice-{mine.pk}"' in html
    assert f'id="advice-{foreign.pk}"' not in html
    assert "等人点头" in html
    assert "/approve" not in html


def test_an_owner_keeps_a_copy_with_one_click(browse):
    row = Notice.objects.get(pk=a_notice(SERVICES[MINE])()["pk"])
    member = browse("tenant_member")
    html = text(member.get("/advice/"))
    assert "还回 20.0 GiB" in html
    assert f"/advice/notices/{row.pk}/keep" in html
    assert "60 分钟" in text(member.get(f"/advice/notices/{row.pk}/keep"))
    member.post(f"/advice/notices/{row.pk}/keep")
    order = Order.objects.get(done_at=None)
    assert (order.act, order.replica_id, order.by.username) == ("keep", row.replica_id, "tenant_member")
    member.post(f"/advice/notices/{row.pk}/keep")
    assert Order.objects.filter(done_at=None).count() == 1, "the last word counts"


def test_every_kind_has_its_sentence(browse):
    notice("waterline", used_pct=91, total_mib=81920 * 4, first=[SERVICES[MINE], SERVICES[FOREIGN]])
    notice("thrash", loads=20, waits=3, calls=30, slot_fen_h=400, tier_fen_h=40, tier_to="warm")
    notice("regret", regrets=12, idle_s=1200, longer_idle_s=2160)
    notice("tiers", hot_calls_7d=900, warm_calls_7d=40, hot=7, warm=11, up=3, down=2)
    html = text(browse("operator").get("/advice/"))
    for words in (
        "已用 91%，共 320.0 GiB",
        "30 次调用，装载 20 次，因为刚换过而等候 3 次",
        "多留一个它的位置，每小时 4.00 元；或升到中频，每小时 0.40 元",
        "12 次刚收回又被叫回。空闲时限从 20 分改到 36 分",
        "七日多于 900 次，有 7 个业务；中频多于 40 次，有 11 个；3 个升档，2 个降档",
    ):
        assert words in html, words


def test_a_pool_with_nothing_idle_and_a_price_that_nobody_knows_say_so(browse):
    notice("waterline", used_pct=91, total_mib=81920, first=[])
    notice("thrash", loads=20, waits=0, calls=30)
    html = text(browse("operator").get("/advice/"))
    assert "现在没有空闲的可以让位" in html
    assert "办法" not in html


def test_notices_of_pools_and_of_the_site_are_the_staffs(browse):
    notice("waterline", used_pct=91, total_mib=81920, first=[SERVICES[FOREIGN]])
    notice("tiers", hot_calls_7d=900, warm_calls_7d=40, hot=7, warm=11, up=3, down=2)
    html = text(browse("tenant_admin").get("/advice/"))
    assert "没有要提醒的" in html
    assert SERVICES[FOREIGN] not in html


def test_the_badge_counts_what_waits_for_the_reader(browse):
    operator, member = browse("operator"), browse("tenant_member")
    assert text(operator.get("/advice/badge")).strip() == ""
    an_open_one()
    an_open_one(FOREIGN, told="not_managed")
    a_notice(SERVICES[MINE])()
    a_notice(SERVICES[FOREIGN])()
    assert ">3<" in text(operator.get("/advice/badge"))
    assert ">1<" in text(member.get("/advice/badge"))
    assert 'hx-get="/advice/badge"' in text(operator.get("/advice/"))


def test_an_empty_page_says_what_to_do(browse):
    html = text(browse("auditor").get("/advice/"))
    assert "没有建议" in html
    assert "没有要提醒的" in html


def test_what_letting_a_pool_act_would_have_given_is_told_to_staff(browse):
    now = timezone.now()
    row = an_open_one(opened_at=now - timedelta(hours=10), told="not_managed")
    Pool.objects.filter(pk=row.pool_id).update(mode="observe")
    an_open_one(FOREIGN, opened_at=now - timedelta(days=40), closed_at=now - timedelta(days=31))
    (gain,) = gains(now, Policy())
    held = row.service.weights_mib + row.service.headroom_mib + row.replica.kv_granted_mib + 600
    assert gain.counts == [("空闲已满时限", 1)]
    assert gain.mib_h == pytest.approx(held * 10)
    assert gain.mean_gib == pytest.approx(held * 10 / 1024 / 720)
    html = text(browse("operator").get("/advice/"))
    assert "放手去做会怎样" in html
    assert "空闲已满时限 1" in html
    assert "放手去做会怎样" not in text(browse("tenant_admin").get("/advice/"))


def test_how_many_services_a_pool_has_room_for_is_shown_to_staff(browse):
    Pool.objects.filter(pk=Pool.objects.first().pk).update(level={"used_pct": 71, "awake": 9, "n": 14, "services": 23})
    html = text(browse("operator").get("/advice/"))
    for shown in ("71%", ">9<", ">14<", ">23<", "最多容得下"):
        assert shown in html, shown
    assert "最多容得下" not in text(browse("tenant_admin").get("/advice/"))


def test_pools_that_act_have_nothing_to_gain(browse):
    an_open_one()
    Pool.objects.update(mode="enforce")
    assert gains(timezone.now(), Policy()) == []


def test_a_pools_mode_is_changed_with_what_it_means_and_written_down(browse):
    row = an_open_one()
    pool, operator = row.pool, browse("operator")
    Pool.objects.filter(pk=pool.pk).update(mode="suggest")
    html = text(operator.get(f"/advice/pools/{pool.pk}/mode"))
    for words in ("现在是建议", "1 条建议没有做：其中 1 条要收回", "随时可以改回来"):
        assert words in html, words
    assert "已改" in text(operator.post(f"/advice/pools/{pool.pk}/mode", {"mode": "enforce"}, follow=True))
    pool.refresh_from_db()
    change = Change.objects.get()
    assert (pool.mode, change.before, change.after) == ("enforce", {"mode": "suggest"}, {"mode": "enforce"})
    assert (change.subject, change.by.username) == (pool.name, "operator")
    assert "没有什么不同" in text(operator.post(f"/advice/pools/{pool.pk}/mode", {"mode": "enforce"}, follow=True))
    assert Change.objects.count() == 1


def test_a_mode_that_does_not_exist_or_was_changed_meanwhile_writes_nothing(browse):
    pool, operator = Pool.objects.first(), browse("operator")
    assert operator.post(f"/advice/pools/{pool.pk}/mode", {"mode": "guess"}).status_code == 200
    Pool.objects.filter(pk=pool.pk).update(mode="observe")
    assert not set_mode(pool, "suggest", User.objects.get(username="operator")), "it was seen as something else"
    assert not Change.objects.exists()


def test_only_operators_find_the_way_to_the_mode(browse):
    assert "/mode" in text(browse("operator").get("/advice/"))
    assert "/mode" not in text(browse("auditor").get("/advice/"))


def test_the_number_of_queries_does_not_grow_with_the_rows(browse, django_assert_max_num_queries):
    now, pool, of = timezone.now(), Pool.objects.first(), Service.objects.get(name=SERVICES[MINE])
    Advice.objects.bulk_create(
        Advice(
            pool=pool, subject=f"replica {n}", verb="drain", reason="idle", service=of, numbers={},
            opened_at=now, refreshed_at=now, told="awaiting_approval",
        )
        for n in range(120)
    )  # fmt: skip
    client = browse("operator")
    with django_assert_max_num_queries(10):
        html = text(client.get("/advice/"))
    assert "第 1 / 3 页" in html
