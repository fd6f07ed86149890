"""The pages of the policy: what holds and whence, the question before a change, versions and the way back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone, translation

from console import state
from console.catalog.models import Service
from console.fleet.models import Pool
from console.policies.models import PolicyValue, PolicyVersion
from console.policy_pages import typed, words
from scheduler.settable import layer_of, numbers

pytestmark = pytest.mark.django_db


def test_every_number_has_words_in_one_section():
    named = [name for section in words.SECTIONS for name in section.words]
    assert sorted(named) == sorted(numbers())
    assert {about["unit"] for about in numbers().values()} <= words.UNITS.keys()


@pytest.mark.parametrize("name", numbers())
def test_words_are_in_the_readers_language(name):
    assert words.label(name) != name
    assert words.why(name)
    with translation.override("en"):
        assert words.label(name).isascii()
        assert words.why(name).endswith(".")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("idle_unload_s", "900", 900),
        ("idle_unload_s", " 15m ", 900),
        ("idle_unload_s", "1.5h", 5400),
        ("idle_unload_s", "20 分钟", 1200),
        ("hot_calls_7d", "12,000", 12000),
        ("buffer_pct", "9 %", 9),
        ("drain_factor", "2.5", 2.5),
        ("small_model_mib", "2048 MiB", 2048),
    ],
)
def test_values_are_read_as_people_type_them(name, text, value):
    assert typed.read(name, text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("idle_unload_s", "soon"),
        ("idle_unload_s", "15 MiB"),
        ("idle_unload_s", "5"),
        ("buffer_pct", "8.5"),
        ("buffer_pct", "99"),
        ("small_model_mib", "2 GB"),
        ("buffer_pct", "nan"),
        ("buffer_pct", "1e3"),
    ],
)
def test_what_cannot_be_meant_is_said(name, text):
    with pytest.raises(typed.Mistyped) as error:
        typed.read(name, text)
    assert str(error.value)


@pytest.mark.parametrize("section", [one.key for one in words.SECTIONS])
def test_each_section_of_each_layer_opens(browse, section):
    client = browse("operator")
    pool = Pool.objects.first().name
    for query in ("", "&layer=pool&subject=" + pool, "&layer=service&subject=fund-qa"):
        html = client.get(f"/policies/?section={section}{query}").content.decode()
        for name in next(one.words for one in words.SECTIONS if one.key == section):
            assert name in html


def test_an_unknown_layer_is_not_there(browse):
    client = browse("operator")
    for query in ("layer=pool&subject=none", "layer=service&subject=none", "layer=service", "layer=x", "subject=y"):
        assert client.get(f"/policies/?{query}").status_code == 404


def test_who_may_only_look_gets_no_fields(browse):
    html = browse("auditor").get("/policies/?section=reclaim").content.decode()
    assert "idle_unload_s" in html
    assert 'name="v.' not in html


def test_a_number_is_only_asked_for_where_it_may_be_set(browse):
    client, pool = browse("operator"), Pool.objects.first().name
    html = client.get(f"/policies/?section=faults&layer=pool&subject={pool}").content.decode()
    assert layer_of("silent_s") == "group"
    assert 'name="v.silent_s"' not in html
    assert "只在集团层" in html


def test_the_question_shows_the_difference_and_writes_nothing(browse):
    client, before = browse("operator"), state.policy()
    form = {"section": "reclaim", "v.idle_unload_s": "15m", "v.grace_s": f"{before.grace_s}"}
    answer = client.post("/policies/review", form)
    html = answer.content.decode()
    assert answer.status_code == 200
    assert "idle_unload_s" in html
    assert "grace_s" not in html, "unchanged"
    assert 'name="v.idle_unload_s" value="900"' in html
    assert state.policy() == before


def test_a_mistyped_value_stays_beside_its_reason(browse):
    answer = browse("operator").post("/policies/review", {"section": "reclaim", "v.idle_unload_s": "soon"})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="soon"' in html
    assert 'id="e-idle_unload_s"' in html


def saved(client, **more):
    return client.post("/policies/save", {"v.idle_unload_s": "900", "note": "夜里太满"} | more)


def test_saving_makes_a_version_and_the_planner_obeys(browse):
    answer = saved(browse("operator"))
    assert answer.status_code == 302
    assert state.policy().idle_unload_s == 900
    version = PolicyVersion.objects.get()
    assert (version.note, version.by.username, version.waits) == ("夜里太满", "operator", False)


@pytest.mark.parametrize("more", [{"note": " "}, {"when": "tomorrow"}, {"when": "2026-13-45T99:00"}])
def test_without_a_reason_or_with_an_odd_time_it_asks_again(browse, more):
    answer = saved(browse("operator"), **more)
    assert answer.status_code == 422
    assert not PolicyVersion.objects.exists()
    assert 'name="v.idle_unload_s" value="900"' in answer.content.decode(), "nothing typed is lost"


def test_one_for_later_waits_and_can_be_withdrawn(browse):
    client = browse("operator")
    before = state.policy()
    later = timezone.localtime(timezone.now() + timedelta(hours=2))
    saved(client, when=later.strftime("%Y-%m-%dT%H:%M"))
    version = PolicyVersion.objects.get()
    assert version.waits
    assert abs(version.effective_at - later) < timedelta(minutes=1)
    assert state.policy() == before
    client.post(f"/policies/versions/{version.pk}/withdraw")
    version.refresh_from_db()
    assert version.withdrawn_at is not None
    assert "已撤回" in client.get("/policies/versions").content.decode()


def test_back_to_a_version_asks_and_then_does(browse):
    client = browse("operator")
    saved(client)
    saved(client, **{"v.idle_unload_s": "600", "note": "再短些"})
    first = PolicyVersion.objects.order_by("pk").first()
    html = client.post(f"/policies/versions/{first.pk}/back").content.decode()
    assert f'name="back_to" value="{first.pk}"' in html
    assert 'name="v.idle_unload_s" value="900"' in html
    saved(client, note="退回", back_to=str(first.pk))
    assert state.policy().idle_unload_s == 900
    assert PolicyVersion.objects.first().back_to == first


def test_a_services_own_value_and_back_to_the_wider_layer(browse):
    client = browse("operator")
    at = {"layer": "service", "subject": "fund-qa"}
    saved(client, **at)
    assert state.policy().of_service("fund-qa").idle_unload_s == 900
    html = client.get("/policies/?section=reclaim&layer=service&subject=fund-qa").content.decode()
    assert '<span class="eff">业务 900</span>' in html
    saved(client, **at, **{"v.idle_unload_s": ""})
    assert not PolicyValue.objects.filter(layer="service").exists()


def test_the_question_tells_what_would_move_at_once(browse):
    """Half the farm is idle for longer than a minute: with so short a time they would get their notice."""
    client = browse("operator")
    Service.objects.update(tier="cold", min_replicas=0, whitelisted_until=None)
    html = client.post("/policies/review", {"v.idle_unload_s": "30", "v.half_empty_pct": "0"}).content.decode()
    assert "一生效就会" in html


def test_pages_cost_the_same_number_of_queries_whatever_was_set(browse, django_assert_num_queries):
    client = browse("operator")
    client.get("/policies/")
    with django_assert_num_queries(8):
        client.get("/policies/?section=reclaim")
    for service in Service.objects.values_list("name", flat=True)[:20]:
        PolicyValue.objects.create(layer="service", subject=service, name="grace_s", value=60)
    with django_assert_num_queries(8):
        client.get("/policies/?section=reclaim")
