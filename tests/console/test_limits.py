"""What limits batch and long calls is said on the service's page, in the card's drawer and in the journal."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone, translation

from console.catalog.models import Replica, Service
from console.fleet.models import Card
from console.journal.models import Decision
from console.journal.stories import Kind, group
from console.journal.telling import tell
from console.services import limits
from scheduler.policy import Policy
from tests.console import rows

pytestmark = pytest.mark.django_db
POLICY = Policy()


@pytest.fixture(autouse=True)
def in_chinese():
    with translation.override("zh-hans"):
        yield


@pytest.fixture
def batch(farm) -> Replica:
    """A ready replica of a batch service."""
    replica = Replica.objects.filter(phase="ready", want="ready", ended_at=None).select_related("service")[0]
    Service.objects.filter(pk=replica.service_id).update(profile="batch")
    return replica


def card_of(replica: Replica) -> Card:
    return Card.objects.get(uuid=replica.cards[0])


def text(answer) -> str:
    assert answer.status_code == 200
    return answer.content.decode()


def at(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=ZoneInfo("Asia/Shanghai")).timestamp()


NIGHTS = [{"days": day, "from": "22:00", "to": "06:00"} for day in ("mon", "tue", "wed", "thu", "fri")]
NIGHTS += [{"days": "sat", "from": "05:00", "to": "07:00"}]


@pytest.mark.parametrize(
    ("hours", "now", "said"),
    [
        ([], "2026-11-27 21:00", "现在在时段外，11-27 22:00 开始。"),
        ([], "2026-11-27 23:00", "现在在时段内，到 11-28 07:00。"),
        ([], "2026-11-28 06:59", "现在在时段内，到 11-28 07:00。"),
        (NIGHTS, "2026-11-27 21:59", "现在在时段外，11-27 22:00 开始。"),
        (NIGHTS, "2026-11-27 22:00", "现在在时段内，到 11-28 07:00。"),
        (NIGHTS, "2026-11-28 05:30", "现在在时段内，到 11-28 07:00。"),
        (NIGHTS, "2026-11-28 22:30", "现在在时段外。"),
        (NIGHTS, "2026-11-29 23:30", "现在在时段外，11-30 22:00 开始。"),
        ([{"days": "daily", "from": "08:00", "to": "08:00"}], "2026-11-29 23:30", "现在在时段内。"),
    ],
)
def test_whether_it_may_run_now_and_until_when_is_told(hours, now, said) -> None:
    assert limits.standing(Service(batch_hours=hours), POLICY, at(now)).said == said


def test_the_week_is_drawn_with_these_very_spans() -> None:
    week = limits.coming_week(Service(batch_hours=NIGHTS), POLICY, at("2026-11-27 12:00"))
    assert [[said for _left, _width, said in day.spans] for day in week] == [
        ["00:00–06:00", "22:00–24:00"],
        ["00:00–07:00"],
        [],
        ["22:00–24:00"],
        *[["00:00–06:00", "22:00–24:00"]] * 3,
    ]
    assert week[0].label == "11-27 星期五"
    assert week[1].spans == [(0.0, 29.17, "00:00–07:00")]
    daily = limits.coming_week(Service(), POLICY, at("2026-11-27 12:00"))
    assert all([said for *_place, said in day.spans] == ["00:00–07:00", "22:00–24:00"] for day in daily)
    always = Service(batch_hours=[{"days": "daily", "from": "08:00", "to": "08:00"}])
    assert limits.coming_week(always, POLICY, at("2026-11-27 12:00"))[3].spans == [(0.0, 100.0, "00:00–24:00")]


def test_its_own_hours_are_told_or_the_policys() -> None:
    assert limits.hours_of(Service(), POLICY) == [{"days": "daily", "from": "22:00", "to": "07:00"}]
    assert limits.hours_of(Service(batch_hours=NIGHTS), POLICY) == NIGHTS


def test_a_cards_limit_is_told() -> None:
    assert limits.card_limit(Card()) == ""
    assert limits.card_limit(Card(batch_calls=2)) == "批处理至多 2 个并发：同卡的在线业务变慢"


def test_since_when_is_told_in_site_time() -> None:
    since = timezone.now()
    said = limits.card_limit(Card(batch_calls=1, batch_calls_at=since))
    assert said.endswith(f"，自 {timezone.localtime(since):%H:%M} 起")


def test_the_page_of_a_batch_service_says_window_and_limit(browse, batch) -> None:
    Card.objects.filter(pk=card_of(batch).pk).update(batch_calls=1, batch_calls_at=timezone.now())
    html = text(browse("operator").get(f"/services/{batch.service.name}"))
    assert "批处理时段：每天 22:00–07:00" in html
    assert "批处理至多 1 个并发：同卡的在线业务变慢" in html
    assert html.count("22:00–24:00") == 2 * 7


def test_no_other_page_speaks_of_it(browse, farm) -> None:
    service = Service.objects.exclude(profile="batch")[0]
    assert "批处理时段" not in text(browse("operator").get(f"/services/{service.name}"))


def test_limits_on_length_are_told(browse, farm) -> None:
    service, lane = Service.objects.order_by("pk")[:2]
    Service.objects.filter(pk=service.pk).update(
        max_prompt_tokens=8000, max_total_tokens=12000, long_from_tokens=4000, long_lane=lane
    )
    html = text(browse("operator").get(f"/services/{service.name}"))
    assert "提示词至多 8,000 个 token" in html
    assert "提示词加回答至多 12,000 个 token" in html
    assert f"4,000 个 token 起算长请求，由“{lane.label}”应答" in html
    Service.objects.filter(pk=service.pk).update(long_lane=None, long_share_pct=25)
    assert "专用 25% 的实例" in text(browse("operator").get(f"/services/{service.name}"))


def test_the_drawer_of_the_card_says_it(browse, batch) -> None:
    card = card_of(batch)
    Card.objects.filter(pk=card.pk).update(batch_calls=1)
    page = f"/board/cards/{card.pk}/drawer"
    assert "批处理至多 1 个并发" in text(browse("operator").get(page))
    Service.objects.filter(pk=batch.service_id).update(profile="online")
    assert "批处理至多" not in text(browse("operator").get(page))


def test_english_too(browse, batch) -> None:
    client = browse("operator")
    Card.objects.filter(pk=card_of(batch).pk).update(batch_calls=1)
    html = text(client.get(f"/services/{batch.service.name}", headers={"accept-language": "en"}))
    assert "Batch hours: " in html
    assert "22:00–07:00" in html
    assert "at most 1 batch calls at once" in html


def entry(replica: Replica, seconds: int = 0, **fields) -> Decision:
    at = rows.moment() + timedelta(seconds=seconds)
    return Decision.objects.create(at=at, service=replica.service, replica=replica, card=card_of(replica), **fields)


def test_a_change_of_the_limit_is_a_story_with_its_numbers(batch) -> None:
    numbers = {"neighbour": "desk", "rise_pct": 19.0, "in_flight": 8, "limit_to": 4}
    row = entry(batch, verb="limit", reason="neighbour", numbers=numbers)
    (story,) = group([row], {})
    told = tell(story, {"desk": "前台"})
    assert "在线邻居变慢" in told.sentence
    assert "调整批处理并发" in told.sentence
    detail = told.steps[0].detail
    assert all(part in detail for part in ("邻居：前台", "邻居 P99 升 19%", "至多 4 个并发"))
    assert "其他公司的业务" in tell(story, {}).steps[0].detail, "another company's service has no name here"


def test_a_preload_that_gave_way_is_one_story(batch) -> None:
    started = entry(batch, verb="start", reason="forecast", numbers={})
    numbers = {"neighbour": "desk", "disturbance_pct": 35.0}
    stopped = entry(batch, 12, verb="stop", reason="throttle", numbers=numbers)
    (story,) = group([started, stopped], {})
    assert story.kind is Kind.LOAD
    assert tell(story, {}).sentence.endswith("邻居变慢，停下等待")
