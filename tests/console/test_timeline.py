"""Stories: what is told together, in which sentence, to whom, and how one pages through time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from console.catalog.models import Replica, Service
from console.fleet.models import Card
from console.journal.models import Decision, Event
from console.journal.stories import Kind, group
from console.journal.telling import tell
from scheduler.world import Phase
from tests.console import rows

pytestmark = pytest.mark.django_db


def happen(service: str, phase: str, number: int, at_s: float, **more: object) -> Event:
    of = Service.objects.get(name=service)
    replica = Replica.objects.filter(service=of).first()
    card = Card.objects.get(number=number)
    return Event.objects.create(
        at=rows.moment(at_s), phase=phase, service=of, replica=replica, card=card, **{"seconds": None, **more}
    )


def stories() -> list:
    ids = dict(Service.objects.values_list("name", "pk"))
    found = [
        *Decision.objects.select_related("service__tenant", "card__host"),
        *Event.objects.select_related("service"),
    ]
    return group(found, ids)


def sentences() -> list[str]:
    labels = dict(Service.objects.values_list("name", "label"))
    return [f"{(told := tell(story, labels)).service}：{told.sentence}" for story in stories()]


@pytest.fixture
def bare(farm):
    Decision.objects.all().delete()


@pytest.fixture
def hold(bare) -> Decision:
    """Somebody waits, room is made, it loads, it is ready."""
    replica = rows.place("research-writer", 3)
    first = rows.decide("research-writer", "start", "hold", numbers={"held": 2}, refusal="not_now", at=rows.moment(-20))
    room = {"numbers": {"room_for": "research-writer"}, "replica": Replica.objects.get(service__name="drawing-qa")}
    rows.decide("drawing-qa", "drain", "room", 6, at=rows.moment(-20), **room)
    happen("drawing-qa", "asleep", 6, -16, seconds=4.0)
    rows.decide("research-writer", "start", "hold", 3, numbers={"held": 2}, at=rows.moment(-15), replica=replica)
    happen("research-writer", "ready", 3, -5, seconds=9.6, how="start")
    return first


def test_a_hold_its_room_and_its_load_are_one_story(hold):
    assert sentences() == ["研报生成：2 个调用在等，图纸问答让出显存，在 03 号卡装载，9.6 秒后就绪"]
    (story,) = stories()
    assert [type(row).__name__ for row in story.rows] == ["Decision", "Decision", "Event", "Decision", "Event"]
    assert story.done


def test_a_notice_taken_back_a_sleep_and_a_second_notice_are_two_stories(bare):
    rows.decide("equipment-kb", "drain", "idle", 1, numbers={"idle_s": 183}, at=rows.moment(-500))
    rows.decide("equipment-kb", "wake", "call", 1, at=rows.moment(-480))
    rows.decide("equipment-kb", "drain", "idle", 1, numbers={"idle_s": 190}, at=rows.moment(-200))
    rows.decide("equipment-kb", "sleep", "idle", 1, at=rows.moment(-120))
    happen("equipment-kb", "asleep", 1, -118)
    assert sentences() == [
        "设备知识库：空闲 190 秒，已休眠",
        "设备知识库：空闲 183 秒，通知让位后来了调用，留下",
    ]


def test_a_crash_is_told_with_its_retries_and_its_end(bare):
    replica = Replica.objects.get(service__name="code-helper")
    happen("code-helper", "failed", 2, -60, how="crashed", text="exit 137")
    rows.decide("code-helper", "start", "fault", 2, numbers={"failures": 1}, at=rows.moment(-59), replica=replica)
    happen("code-helper", "failed", 2, -50, how="crashed")
    rows.decide("code-helper", "start", "fault", 2, numbers={"failures": 2}, at=rows.moment(-40), replica=replica)
    happen("code-helper", "ready", 2, -30, seconds=8.0, how="start")
    assert sentences() == ["代码助手：进程崩溃，失败 2 次，在 02 号卡装载，8 秒后就绪"]
    assert stories()[0].kind is Kind.FAULT


def test_a_refusal_ends_its_sentence_with_the_reason_and_numbers(bare):
    rows.decide("research-writer", "start", "hold", numbers={"short_mib": 2310}, refusal="short_of_memory")
    assert sentences() == ["研报生成：有调用在等它，未能装载：显存不够，差 2,310 MiB"]


def test_a_long_silence_begins_another_story(bare):
    for at in (-3000, -100):
        rows.decide("hotline-qa", "start", "minimum", 1, at=rows.moment(at))
    assert len(stories()) == 2


def test_every_phase_that_is_told_has_a_word():
    from console.journal.telling import ENDS

    assert set(ENDS) == {Phase.READY, Phase.ASLEEP, Phase.STOPPED, Phase.FAILED}


def test_the_page_shows_stories_and_each_has_an_address(browse, hold):
    client = browse("operator")
    html = client.get("/timeline/").content.decode()
    assert "9.6 秒后就绪" in html
    assert f"/timeline/{hold.pk}" in html
    alone = client.get(f"/timeline/{hold.pk}").content.decode()
    assert "图纸问答" in alone
    assert "用时 9.6 秒" in alone


def test_a_tenant_is_not_told_for_whom_it_made_room(browse, bare):
    row = rows.decide("estate-valuation", "drain", "room", 6, numbers={"room_for": "research-writer"})
    client = browse("tenant_admin")
    for address in ("/timeline/", f"/timeline/{row.pk}"):
        html = client.get(address).content.decode()
        assert "估价说明" in html
        assert all(one.label not in html for one in Service.objects.exclude(tenant__slug="estate"))
        assert "research-writer" not in html


def test_a_tenant_does_not_learn_it_by_asking_for_the_other_either(browse, bare):
    """A filter that finds something only where the guess is right would say the name."""
    rows.decide("estate-valuation", "drain", "room", 6, numbers={"room_for": "research-writer"})
    shown = {name: "估价说明" in page(browse, name, "?service=research-writer") for name in ("tenant_admin", "auditor")}
    assert shown == {"tenant_admin": False, "auditor": True}


def page(browse, name: str, query: str) -> str:
    told = browse(name).get(f"/timeline/{query}").context["stories"]
    return "".join(one.sentence + "".join(step.title for step in one.steps) for one in told)


ODD = ["", "-1", "x", "9" * 30, "253402300799", "-62135596800", "nan", "inf", "1e308", "%00", "٣", "²"]


@pytest.mark.parametrize("name", ["service", "tenant", "card", "host", "reason", "refused", "period", "before"])
def test_whatever_stands_in_the_address_is_answered(browse, hold, name):
    client = browse("operator")
    assert {client.get(f"/timeline/?{name}={value}").status_code for value in ODD} == {200}


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("service=research-writer", True),
        ("service=hotline-qa", False),
        ("tenant=energy", True),
        ("tenant=estate", False),
        ("host=gpu-01", True),
        ("host=gpu-04", False),
        ("reason=room", True),
        ("reason=repack", False),
        ("refused=1", True),
        ("period=1h", True),
        ("card=x&before=y", False),
    ],
)
def test_filters_stand_in_the_address(browse, hold, query, shown):
    html = browse("operator").get(f"/timeline/?{query}").content.decode()
    assert ("9.6 秒后就绪" in html) is shown


def test_paging_by_time_shows_every_story_once(browse, bare):
    for i in range(70):
        rows.decide("hotline-qa", "start", "minimum", 1, numbers={"ready": i}, at=rows.moment(-2000 * i))
    client, url, seen = browse("operator"), "/timeline/", []
    while url:
        page = client.get(url).context
        seen += [told.pk for told in page["stories"]]
        url = f"/timeline/?{page['older']}" if page["older"] else ""
    assert len(seen) == len(set(seen)) == 70


def test_the_timeline_asks_a_fixed_number_of_times(browse, hold, django_assert_num_queries):
    client = browse("operator")
    with django_assert_num_queries(9):
        client.get("/timeline/")
    for i in range(80):
        rows.decide("hotline-qa", "wake", "hold", 1, at=rows.moment(-60 * i))
    with django_assert_num_queries(9):
        client.get("/timeline/")


def test_a_filter_asks_no_more_than_for_what_is_beside(browse, hold, django_assert_num_queries):
    """Services and cards of what it found are not asked for again with what was decided around them."""
    client = browse("operator")
    with django_assert_num_queries(10):
        page = client.get("/timeline/?period=24h")
    told = page.context["stories"][0]
    assert f'href="/timeline/{told.pk}"' in page.content.decode()
    assert (told.url, replace(told, pk=None).url) == (f"/timeline/{told.pk}", "")


def test_an_empty_timeline_says_what_to_do(browse, bare):
    assert "还没有发生过什么" in browse("auditor").get("/timeline/").content.decode()
    assert "没有符合筛选的事" in browse("auditor").get("/timeline/?refused=1").content.decode()


def test_stories_are_no_longer_than_their_span(bare):
    for i in range(12):
        rows.decide("hotline-qa", "start", "minimum", 1, at=rows.moment(-600 * i))
    assert len(stories()) == 2
    assert all(story.end - story.start <= timedelta(hours=1) for story in stories())
