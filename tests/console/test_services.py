"""The list of services and the page of one: what they say, to whom, and at what cost."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone, translation

from console.accounts.models import Tenant
from console.catalog.models import LoadTime, Replica, Scaling, Service
from console.fleet.models import Card, Host
from console.looks import written
from console.services import hours
from console.services.loads import loads, summed
from console.services.standing import State, standing
from console.usage.models import HourlyCalls
from console.wire import Gateways, Latencies, ReplicaLatency, ServiceLatency
from scheduler import looks
from scheduler.looks import Day, Minute
from scheduler.policy import Policy
from scheduler.world import Phase
from tests.console import rows
from tests.console.test_reading import WORLD_QUERIES

pytestmark = pytest.mark.django_db
NOW = 1_764_000_000.0


def text(answer) -> str:
    return answer.content.decode()


def calls(service: str, hours_ago: int, count: int, **more: int) -> None:
    hour = (timezone.now() - timedelta(hours=hours_ago)).replace(minute=0, second=0, microsecond=0)
    HourlyCalls.objects.create(hour=hour, service=service, tenant="estate", key_id=1, calls=count, **more)


def failed(card: str, ago_s: float = 10.0, **more: object) -> dict[str, object]:
    return {"card": card, "at": NOW - ago_s, "code": "oom", "message": "CUDA error", **more}


@pytest.mark.parametrize(
    ("phases", "failures", "state"),
    [
        ({}, [], State.COLD),
        ({Phase.READY: 1, Phase.STARTING: 1}, [failed("a")], State.READY),
        ({Phase.STARTING: 1, Phase.ASLEEP: 1}, [], State.LOADING),
        ({Phase.ASLEEP: 1}, [], State.ASLEEP),
        ({Phase.DRAINING: 1}, [], State.DRAINING),
        ({Phase.FAILED: 1}, [failed("a")], State.RETRYING),
        ({}, [failed("a")], State.COLD),
        ({}, [failed("a"), failed("b"), failed("c")], State.DOWN),
        ({}, [failed("a", fatal=True)], State.DOWN),
        ({}, [failed("a", fatal=True, ago_s=10_000)], State.COLD),
        ({Phase.STOPPED: 2}, [], State.COLD),
    ],
)
def test_a_service_is_down_only_while_no_card_is_tried(phases, failures, state):
    with translation.override("zh-hans"):
        found = standing(failures, phases, Policy(), NOW)
    assert (found.state, bool(found.word)) == (state, True)
    if state in (State.DOWN, State.RETRYING):
        assert found.detail == "CUDA error"
    if failures and state is State.COLD:
        assert "1 张卡" in str(found.detail)


def test_the_list_filters_sorts_and_searches_in_the_address(browse):
    client = browse("operator")
    assert "热线问答" not in text(client.get("/services/?tenant=estate"))
    assert "物业客服" in text(client.get("/services/?tenant=estate"))
    loading = text(client.get("/services/?tenant=&state=loading"))
    assert "风险摘要" in loading or "risk-summary" in loading
    assert "hotline-qa" not in loading
    assert "hotline-qa" in text(client.get("/services/?state=&q=hotline"))
    html = text(client.get("/services/?q=&sort=-present"))
    assert html.index("hotline-qa") < html.index("contract-review")
    assert "没有符合条件的" in text(client.get("/services/?q=nothing-like-it"))


def test_the_list_says_calls_whitelist_and_unknown_counts(browse):
    calls("hotline-qa", 2, 1234)
    Service.objects.filter(name="fund-qa").update(whitelisted_until=timezone.now() + timedelta(days=400))
    Service.objects.filter(name="code-helper").update(whitelisted_until=timezone.now() - timedelta(days=1))
    html = text(browse("operator").get("/services/"))
    assert "1,234" in html
    year = timezone.localtime(timezone.now() + timedelta(days=400)).year
    assert html.count(f"{year}-") == 1, "an exemption that ran out is none"
    assert "—<span" in html, "without gateways nobody knows what is in flight: a dash, never zero"


def test_the_page_of_one_service(browse):
    calls("hotline-qa", 3, 200, ok=190, failed=10, cold=5, hold_ms=40_000, total_ms=190_000)
    html = text(browse("operator").get("/services/hotline-qa"))
    for said in (
        "声明", "KV 上限", "余量", "进程开销", "档位：高频", "常驻：闲着也不收回", "01 号卡", "09 号卡", "gpu-01",
        "共 200 次", "5 次", "8.0 秒", "粗估：读权重", "curl -N", "from openai import OpenAI", "GONGKA_KEY", "预热",
    ):  # fmt: skip
        assert said in html, said
    assert "gk_" not in html.replace("以 gk_ 开头", "").replace("gongka", ""), "no key is printed"


def test_a_load_that_was_measured_says_what_it_rests_on(browse):
    service, host = Service.objects.get(name="hotline-qa"), Replica.objects.first().host
    LoadTime.objects.create(service=service, host=host, kind="start", seconds=[11.0, 11.0])
    html = text(browse("operator").get("/services/hotline-qa"))
    assert "最近 2 次真实装载" in html
    assert "11.0 秒" in html


def test_progress_notice_and_the_engines_own_words(browse):
    client = browse("operator")
    assert "读权重 62%" in text(client.get("/services/risk-summary"))
    assert "已通知" in text(client.get("/services/due-diligence"))
    Replica.objects.filter(service__name="code-helper").update(
        phase="failed", fault="oom", fault_text="torch.OutOfMemoryError: <b>tried</b>", failed_at=timezone.now()
    )
    html = text(client.get("/services/code-helper"))
    assert "torch.OutOfMemoryError: &lt;b&gt;tried&lt;/b&gt;" in html
    Service.objects.filter(name="contract-review").update(
        failures=[{"card": "x", "at": 1.0, "code": "bad_arguments", "message": "unknown flag", "fatal": True}]
    )
    assert "unknown flag" in text(client.get("/services/contract-review/now"))


def test_a_drain_that_outlasts_its_answers_is_shown_overdue(browse):
    client, late = browse("operator"), "摘流超时，等在途做完"
    copy = Replica.objects.filter(service__name="drawing-qa", phase="draining")
    copy.update(want_since=timezone.now() - timedelta(seconds=500))
    assert late not in text(client.get("/services/drawing-qa/now")), "nobody knows how long its answers take: 600 s"
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    of = {"hour": hour, "service": "drawing-qa", "tenant": "manufacturing", "key_id": 1}
    HourlyCalls.objects.create(**of, calls=10, ok=10, total_ms=10 * 20_000)  # 3 x 20 s + 15 s
    assert late in text(client.get("/services/drawing-qa/now"))
    copy.update(want_since=timezone.now() - timedelta(seconds=60))
    assert late not in text(client.get("/services/drawing-qa/now"))


def test_scaling_says_what_a_copy_carries_and_what_was_done_last(browse):
    client, now = browse("operator"), time.time()
    assert "扩缩容" not in text(client.get("/services/hotline-qa/now")), "nobody looked yet"
    minute = Minute(int(now) // 60, looks=2, copies=4, running=24, waiting=10)
    known = looks.Scaling(looked_at=now, ready=2, live=2, minutes=(minute,))
    at = timezone.now()
    row = Scaling.objects.create(
        service=Service.objects.get(name="hotline-qa"),
        looks=written(known),
        raised_to=4,
        raised_waiting=18,
        raised_at=at,
    )
    html = text(client.get("/services/hotline-qa/now"))
    assert "承载约 8.0 个并发调用（初始值），按 70% 计" in html
    assert "处理 12.0 个、排队 5.0 个，要 4 个实例" in html  # 17 / 5.6
    assert "扩到 4 个实例，当时排队 18 个" in html
    learned = replace(known, looked_at=now - 300, days=(Day(int(now) // 86400, 11.0),))
    row.looks, row.came_from, row.came_from_at = written(learned), 4, at
    row.save()
    html = text(client.get("/services/hotline-qa/now"))
    assert "承载约 11.0 个并发调用（学得）" in html
    assert "这一分钟" not in html, "an old look says nothing of now"
    assert "缩容前有 4 个实例" in html
    assert "扩缩容" not in text(client.get("/services/contract-review/now")), "one copy at most"


def test_a_member_sees_its_own_service_and_no_buttons(browse):
    client = browse("tenant_member")
    html = text(client.get("/services/property-service"))
    assert "需要时请向中心申请" in html
    for button in ("/preload", "/stop", "/edit", "/drain"):
        assert f"property-service{button}" not in html
    assert client.get("/services/hotline-qa").status_code == 404
    assert client.get("/services/hotline-qa/now").status_code == 404


def test_an_embedding_service_is_called_as_one(browse):
    service = Service.objects.select_related("model").get(name="hotline-qa")
    service.model.task = "embedding"
    service.model.save()
    html = text(browse("operator").get("/services/hotline-qa"))
    assert "/v1/embeddings" in html
    assert "client.embeddings.create" in html


def test_the_week_is_seven_days_of_site_time():
    assert hours.week("hotline-qa").calls == 0
    now = timezone.now()
    calls("hotline-qa", 1, 10, cold=2, hold_ms=6000, hold_max_ms=5500)
    calls("hotline-qa", 1 + 24 * 3, 40, cold=1, hold_ms=9000, hold_max_ms=9000)
    calls("hotline-qa", 24 * 8, 99)
    week = hours.week("hotline-qa", now)
    assert (len(week.days), week.calls, week.most, week.cold) == (7, 50, 40, 3)
    assert (week.hold_mean_s, week.hold_worst_s) == (5.0, 9.0)
    assert sum(day.calls for day in week.days) == 50
    today = week.days[-1].cells
    assert [cell.now for cell in today].count(True) == 1
    assert all(cell.calls is None for cell in today if cell.hour > timezone.localtime(now).hour)
    assert max(cell.pct for day in week.days for cell in day.cells) == 100


def test_hours_that_nobody_had_to_wait_in_have_no_mean():
    calls("hotline-qa", 1, 10)
    week = hours.week("hotline-qa")
    assert (week.hold_mean_s, week.hold_worst_s, week.answer_mean_s) == (None, None, None)


PINNED = [
    ("/services/", 8),
    ("/services/hotline-qa", 22),
    ("/services/hotline-qa/now", 9),
    ("/services/hotline-qa/whitelist", 5),
    ("/services/hotline-qa/edit", 12),
    ("/services/new", 8),
]
#: A plan is made: the World's own queries are pinned where it is read.
PLANNED = ["/services/contract-review/preload", "/services/hotline-qa/stop"]


def grow() -> None:
    """Thirty services, copies and decisions more."""
    origin = Service.objects.get(name="hotline-qa")
    for number in range(30):
        fields = {f.attname: getattr(origin, f.attname) for f in Service._meta.fields if f.name not in ("id", "name")}
        other = Service.objects.create(name=f"copy-{number}", **fields)
        Replica.objects.filter(service__name="code-helper").update(service=other)
        rows.place("hotline-qa", 16 + number % 16)
        rows.decide("hotline-qa", "wake", "hold", 1)


@pytest.mark.parametrize(("address", "queries"), PINNED)
def test_pages_ask_the_database_a_fixed_number_of_times(browse, django_assert_num_queries, address, queries):
    client = browse("operator")
    client.get(address)
    grow()
    with django_assert_num_queries(queries):
        assert client.get(address).status_code == 200


@pytest.mark.parametrize("address", PLANNED)
def test_a_plan_asks_no_more_on_a_larger_farm(browse, django_assert_max_num_queries, address):
    client = browse("operator")
    client.get(address)
    grow()
    with django_assert_max_num_queries(WORLD_QUERIES + 6):
        assert client.get(address).status_code == 200


def test_p99_is_shown_with_its_samples_and_unknown_below_enough(browse, monkeypatch):
    client = browse("operator")
    copy = Replica.objects.filter(service__name="hotline-qa", ended_at=None).first()

    def measured(ms: float | None, samples: int) -> None:
        found = Latencies(0.0, {"hotline-qa": ServiceLatency(ms, samples)}, {copy.pk: ReplicaLatency(ms)})
        monkeypatch.setattr("console.services.views.read_gateways", lambda: Gateways(True, (), found))
        monkeypatch.setattr("console.board.drawer.read_gateways", lambda: Gateways(True, (), found))

    measured(812.4, 230)
    for address in ("/services/hotline-qa", "/services/hotline-qa/now"):
        html = text(client.get(address))
        assert html.count("812 毫秒") == 2, "the service's and its copy's"
        assert "首 Token 时间，230 次调用" in html
    assert "812 毫秒" in text(client.get("/services/"))
    card = Card.objects.get(uuid=copy.cards[0])
    assert "812 毫秒" in text(client.get(f"/board/cards/{card.pk}/drawer"))
    Service.objects.filter(name="hotline-qa").update(p99_target_ms=500)
    assert "is-bad" in text(client.get("/services/hotline-qa/now"))
    measured(None, 49)
    html = text(client.get("/services/hotline-qa"))
    assert "毫秒" not in html
    assert "49 次调用，满 50 次才算" in html
    measured(None, 0)
    assert "近几分钟没有调用" in text(client.get("/services/hotline-qa"))


def test_what_depends_on_the_second_is_refreshed_wherever_it_stands(browse):
    client = browse("operator")
    html = text(client.get("/services/contract-review/now"))
    for part in ("service-head", "service-try", "service-keeps"):
        assert f'id="{part}" hx-swap-oob="true"' in html, part
    assert "全部停止" not in html
    rows.place("contract-review", 16)
    html = text(client.get("/services/contract-review/now"))
    assert "全部停止" in html
    assert "再预热一个" in html
    assert "现在就绪，马上应答" in html
    whole = text(client.get("/services/contract-review"))
    assert "hx-swap-oob" not in whole
    assert whole.count('id="service-head"') == whole.count('id="service-try"') == whole.count('id="service-keeps"') == 1


def test_a_company_alone_has_no_filter_by_company(browse):
    assert 'name="tenant"' not in text(browse("tenant_member").get("/services/"))
    assert Tenant.objects.count() > 1
    assert 'name="tenant"' in text(browse("operator").get("/services/"))


def test_hosts_of_which_the_same_is_known_are_one_line(browse):
    service = Service.objects.get(name="contract-review")
    Service.objects.filter(pk=service.pk).update(card_classes=[])
    Host.objects.update(bandwidth_mib_s=2000)
    service.refresh_from_db()
    found = loads(service, Policy())
    (line,) = summed(found)
    assert (line.host, line.alike) == (found[0].host, len(found) - 1)
    assert f"和另外 {line.alike} 台" in text(browse("operator").get("/services/contract-review"))
    LoadTime.objects.create(service=service, host=Host.objects.get(name="gpu-02"), kind="start", seconds=[11.0])
    assert [one.alike for one in summed(loads(service, Policy()))] == [len(found) - 2, 0]
