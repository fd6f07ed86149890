"""Pages of the preview: asked for with unsaved values, watched, ended, looked at again; and the fitted proposal."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone, translation

from console import state
from console.accounts.models import User
from console.audit.models import Entry
from console.jobs.models import Job
from console.policies.models import PolicyValue
from console.previews import jobs, page
from console.previews.past import LEAST_HOURS
from console.requests.models import Request
from console.usage.models import HourlyCalls
from demo import history
from tests.console import tried

pytestmark = pytest.mark.django_db
FORM = {"layer": "group", "section": "reclaim", "v.idle_unload_s": "15m"}


@pytest.fixture
def past(farm) -> None:
    history.make(timezone.localtime())


def person(name: str = "operator") -> User:
    return User.objects.get(username=name)


def text(answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_a_click_files_a_job_with_the_unsaved_values_and_saves_nothing(browse, past):
    before = state.policy()
    answer = browse("operator").post("/policies/previews/new", FORM)
    job = Job.objects.get(kind=jobs.KIND)
    assert answer.headers["Location"] == f"/policies/previews/{job.pk}"
    assert job.arguments["changes"] == {"idle_unload_s": 900}
    assert job.state == "waiting"
    assert state.policy() == before
    assert Entry.objects.filter(act="policy-preview-ask").count() == 1


def test_one_at_a_time_for_one_person(browse, past):
    client = browse("operator")
    client.post("/policies/previews/new", FORM)
    other = client.post("/policies/previews/new", FORM | {"v.idle_unload_s": "300"}, follow=True)
    assert Job.objects.filter(kind=jobs.KIND).count() == 1
    assert "还没算完" in text(other)


def test_what_is_mistyped_stays_beside_its_reason(browse, past):
    answer = browse("operator").post("/policies/previews/new", FORM | {"v.idle_unload_s": "soon"})
    assert answer.status_code == 422
    assert 'value="soon"' in answer.content.decode()
    assert not Job.objects.filter(kind=jobs.KIND).exists()


def test_no_difference_is_nothing_to_try(browse, past):
    answer = browse("operator").post("/policies/previews/new", FORM | {"v.idle_unload_s": "180"}, follow=True)
    assert "没有什么可试的" in text(answer)
    assert not Job.objects.filter(kind=jobs.KIND).exists()


def test_too_little_past_is_said_and_nothing_is_filed(browse, farm):
    hour = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
    HourlyCalls.objects.create(hour=hour, service="fund-qa", tenant="finance", key_id=1, calls=3)
    found = text(browse("operator").post("/policies/previews/new", FORM))
    assert "过去太短" in found
    assert f"只有 1 个小时，至少要 {LEAST_HOURS} 个" in found
    assert not Job.objects.filter(kind=jobs.KIND).exists()


def test_who_may_only_look_cannot_ask_or_end_but_may_look(browse, past):
    job = tried.job(person())
    waiting = tried.job(person(), "waiting")
    for role in ("auditor", "approver"):
        client = browse(role)
        assert client.get(f"/policies/previews/{job.pk}").status_code == 200
        assert client.post("/policies/previews/new", FORM).status_code == 403
        assert client.post(f"/policies/previews/{waiting.pk}/cancel").status_code == 403
        assert "停下" not in text(client.get(f"/policies/previews/{waiting.pk}"))
    assert browse("tenant_admin").get(f"/policies/previews/{job.pk}").status_code in (403, 404)


def test_another_kind_of_job_is_not_there(browse):
    other = Job.objects.create(kind="repack", arguments={})
    for path in ("", "/table.csv"):
        assert browse("operator").get(f"/policies/previews/{other.pk}{path}").status_code == 404


def test_progress_is_asked_for_until_it_is_over(browse):
    job = tried.job(person(), "running", progress=0.42)
    html = browse("operator").get(f"/policies/previews/{job.pk}").content.decode()
    assert 'hx-trigger="every 1s"' in html
    assert 'aria-valuenow="42"' in html
    Job.objects.update(state="done", result=tried.result(), progress=1.0)
    assert "every 1s" not in browse("operator").get(f"/policies/previews/{job.pk}").content.decode()


def test_one_that_waits_ends_at_once_and_one_that_runs_is_asked_to(browse):
    waiting, running = tried.job(person(), "waiting"), tried.job(person(), "running")
    client = browse("operator")
    for job in (waiting, running):
        client.post(f"/policies/previews/{job.pk}/cancel")
    assert Job.objects.get(pk=waiting.pk).state == "cancelled"
    assert Job.objects.get(pk=running.pk).cancel
    assert "没有结果" in text(client.get(f"/policies/previews/{waiting.pk}"))


def test_a_failure_says_what_to_do(browse):
    job = tried.job(person(), "failed", note="MemoryError: ")
    assert "什么也没有改。再试一次" in text(browse("operator").get(f"/policies/previews/{job.pk}"))


def test_better_and_worse_are_said_in_words(browse):
    job = tried.job(person())
    found = text(browse("operator").get(f"/policies/previews/{job.pk}"))
    assert "冷启动 −12 次" in found
    assert "费用 +1,277.00 元" in found
    for word in ("更好", "更差", "一样", "有变化"):
        assert word in found
    assert "一小时超过 150 次的" in found, "how it was worked out"


@pytest.mark.parametrize(
    ("key", "old", "new", "word", "tone"),
    [
        ("cold_starts", 5, 3, "更好", "ok"),
        ("cold_starts", 3, 5, "更差", "bad"),
        ("reclaims", 3, 5, "有变化", ""),
        ("fen", None, 5, "比不了", ""),
        ("fen", None, None, "", ""),
        ("wait_mean_s", 1.01, 1.02, "一样", ""),
        ("wait_mean_s", 1.04, 1.06, "更差", "bad"),
        ("wait_mean_s", None, 3.0, "更差", "bad"),
        ("wait_mean_s", 3.0, None, "更好", "ok"),
        ("fen", 100, 100.4, "一样", ""),
    ],
)
def test_the_verdict(key, old, new, word, tone):
    one = page.cell(next(m for m in page.MEASURES if m.key == key), old, new)
    assert (one.word, one.tone) == (word, tone)
    assert (one.old == "—") == (old is None)
    assert one.change not in ("+0.0", "−0.0", "+0", "−0")


def test_the_table_has_the_figures_of_the_page(browse):
    job = tried.job(person())
    answer = browse("operator").get(f"/policies/previews/{job.pk}/table.csv")
    rows = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))
    html = text(browse("operator").get(f"/policies/previews/{job.pk}"))
    whole = [row for row in rows if row[0] == "全部"]
    assert len(whole) == len(page.MEASURES) + 1
    for row in whole:
        assert row[4] in html
        assert row[5] in html
    assert {row[0] for row in rows[1:]} >= {"全部", "公司", "业务类别"}


def test_without_a_result_there_is_no_table(browse):
    job = tried.job(person(), "running")
    assert browse("operator").get(f"/policies/previews/{job.pk}/table.csv").status_code == 404


def test_all_of_them_are_listed(browse):
    assert "还没有人试过" in text(browse("auditor").get("/policies/previews/"))
    job = tried.job(person())
    gone = tried.job(person(), arguments={"layer": "service", "subject": "no-more"})
    html = browse("auditor").get("/policies/previews/").content.decode()
    assert f"/policies/previews/{job.pk}" in html
    assert f"/policies/previews/{gone.pk}" not in html
    assert "已经没有了" in text(browse("auditor").get(f"/policies/previews/{gone.pk}", follow=True))


def test_old_ones_of_a_person_go(browse, past):
    first = tried.job(person())
    others = tried.job(person("approver"))
    for _ in range(jobs.KEPT):
        tried.job(person())
    browse("operator").post("/policies/previews/new", FORM)
    assert not Job.objects.filter(pk=first.pk).exists()
    assert Job.objects.filter(pk=others.pk).exists()
    assert jobs.of(person()).count() == jobs.KEPT


def test_the_question_before_a_change_links_to_the_preview_of_these_values(browse):
    client = browse("operator")
    tried.job(person(), arguments={"changes": {"idle_unload_s": 800}})
    assert "过去七天上的预演" not in text(client.post("/policies/review", FORM))
    job = tried.job(person())
    assert f"/policies/previews/{job.pk}" in client.post("/policies/review", FORM).content.decode()


def test_the_approver_of_a_request_finds_the_preview_of_these_values(browse):
    job = tried.job(person())
    form = {"where": "group:", "v.idle_unload_s": "900", "why": "试过了"}
    browse("operator").post("/requests/new/policy", form)
    row = Request.objects.get(kind="policy")
    assert row.wanted["changes"] == job.arguments["changes"]
    assert f"/policies/previews/{job.pk}" in browse("approver").get(f"/requests/{row.pk}").content.decode()


def test_going_back_fills_the_form_again_and_saves_nothing(browse):
    job = tried.job(person())
    html = browse("operator").get(f"/policies/previews/{job.pk}").content.decode()
    back = re.search(r'href="(/policies/\?section=reclaim[^"]+)"', html)[1].replace("&amp;", "&")
    form = browse("operator").get(back)
    assert 'name="v.idle_unload_s" value="900"' in form.content.decode()
    assert "还没有保存" in text(form)
    assert state.policy().idle_unload_s == 180
    assert 'name="v.' not in browse("auditor").get(back).content.decode()


def test_fitted_thresholds_are_proposed_with_their_reasons_and_fill_the_form(browse, past):
    client, rules = browse("operator"), state.policy()
    html = client.get("/policies/proposal").content.decode()
    assert "/policies/proposal" in client.get("/policies/").content.decode()
    link = re.search(r'href="(/policies/\?section=tiers[^"]+)"', html)[1].replace("&amp;", "&")
    values = parse_qs(urlsplit(link).query)
    form = client.get(link).content.decode()
    for name in ("hot_calls_7d", "warm_calls_7d"):
        assert f'name="v.{name}" value="{values["v." + name][0]}"' in form
    assert int(values["v.hot_calls_7d"][0]) != rules.hot_calls_7d
    assert "GiB" in html
    assert state.policy() == rules, "nothing is saved until somebody saves"
    client.post("/policies/previews/new", {"layer": "group"} | {k: v[0] for k, v in values.items() if k != "section"})
    assert Job.objects.filter(kind=jobs.KIND).count() == 1


def test_there_is_no_proposal_where_nobody_called_or_the_fitted_hold_already(browse, farm):
    assert browse("operator").get("/policies/proposal").content.decode().strip() == ""
    history.make(timezone.localtime())
    PolicyValue.objects.create(name="tiers_fitted", value=1)
    assert browse("operator").get("/policies/proposal").content.decode().strip() == ""


def test_who_may_not_edit_sees_the_proposal_without_buttons(browse, past):
    html = browse("auditor").get("/policies/proposal").content.decode()
    assert "建议" in html
    assert "<form" not in html


def test_in_english_it_is_english(browse, past):
    job, client = tried.job(person()), browse("operator")
    client.cookies["gongka_language"] = "en"
    found = text(client.get(f"/policies/previews/{job.pk}"))
    for words in ("Better", "Worse", "Cold starts", "GiB·hours", "Asked for by"):
        assert words in found
    assert "they would be hot" in text(client.get("/policies/proposal"))
    translation.activate("zh-hans")
