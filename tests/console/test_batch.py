"""The catalogue as a file, and one change for many: looked at first, written whole or not at all."""

from __future__ import annotations

import re

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile

from console.catalog.models import Model, Service
from console.journal.models import Change
from console.services import yaml_text
from console.services.batch import MOST, exported, propose
from tests.console import rows

pytestmark = pytest.mark.django_db
NAME = "property-service"
NEW = """
models:
  tiny-1b:
    name: Tiny
    weights: tiny-1b
    weights_mib: 2400
    kv_bytes_per_token: 28672
    max_context: 32768
services:
  front-desk:
    tenant: estate
    model: tiny-1b
    label: 前台问答
    weights_mib: 2400
    kv_cap_mib: 2048
    headroom_mib: 512
    resident_hours: 工作日 10:30-18:00
    fallback: back-desk
  back-desk:
    {tenant: estate, model: tiny-1b, label: 后台问答, weights_mib: 2400, kv_cap_mib: 1024, headroom_mib: 512}
"""


def text(answer) -> str:
    return answer.content.decode()


def looked_at(client, written: str):
    return client.post("/services/import", {"text": written})


def confirmed(client, page):
    """The button of that page."""
    seen = re.search(r'name="seen" value="([^"]*)"', text(page))[1]
    return client.post("/services/import/write", {"text": page.context["text"], "seen": seen}, follow=True)


def test_what_went_out_comes_back_as_nothing_to_do(browse):
    operator = browse("operator")
    answer = operator.get("/services/export.yaml")
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert set(yaml.safe_load(answer.content)["services"]) == set(Service.objects.values_list("name", flat=True))
    page = operator.post("/services/import", {"file": SimpleUploadedFile("all.yaml", answer.content)})
    assert page.status_code == 200
    assert "什么都不用改" in text(page)
    assert page.context["batch"].untouched == Service.objects.count()


@pytest.mark.parametrize("value", ["no", "10:30", "", "'", "a: b", "#1", "81", "null", " padded ", "[", "多行\n文本"])
def test_what_was_read_is_read_again_as_the_same(value):
    services = {"a": {"label": value, "pools": [value, "x"], "resident_hours": [{"days": value}]}}
    assert yaml_text.load(yaml_text.dump({}, services, as_read=True)) == {"models": {}, "services": services}


def test_a_company_takes_away_only_what_is_its_own(browse):
    found = yaml.safe_load(browse("tenant_admin").get("/services/export.yaml").content)
    assert {one["tenant"] for one in found["services"].values()} == {"estate"}
    assert looked_at(browse("tenant_admin"), NEW).status_code == 403


def test_a_change_is_shown_then_written_then_in_the_record(browse):
    operator, before = browse("operator"), Service.objects.get(name=NAME)
    page = looked_at(operator, f"services:\n  {NAME}:\n    priority: 77\n    can_sleep: no\n    pools: []\n")
    assert {name for _line, changes, _e in page.context["services"] for name, *_ in changes} >= {"优先级"}
    assert Service.objects.get(name=NAME).priority == before.priority, "looking is not writing"
    assert "已写入 1 处" in text(confirmed(operator, page))
    after = Service.objects.get(name=NAME)
    assert (after.priority, after.can_sleep, after.kv_cap_mib) == (77, False, before.kv_cap_mib)
    assert Change.objects.get().after["priority"] == 77


def test_new_services_and_their_model_come_with_all_that_is_written(browse):
    operator = browse("operator")
    page = looked_at(operator, NEW)
    assert page.status_code == 200, page.context["services"]
    assert "已写入 3 处" in text(confirmed(operator, page))
    made = Service.objects.get(name="front-desk")
    assert (made.model.slug, made.fallback.name, made.tenant.slug) == ("tiny-1b", "back-desk", "estate")
    assert made.resident_hours == [{"days": "workday", "from": "10:30", "to": "18:00"}]
    assert "什么都不用改" in text(looked_at(operator, NEW)), "a second time changes nothing"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("services:\n  x: [1", "第 "),
        ("services:\n  a: {b: &x 1, c: *x}", "不用 &amp;"),
        ("- 1", "最外层写 services:"),
        ("services:\n  a: {priority: 1, priority: 2}", "写了两次"),
        (f"services:\n  {NAME}: {{priority: 500}}", "100"),
        (f"services:\n  {NAME}: {{colour: red}}", "没有这一项"),
        (f"services:\n  {NAME}: {{tenant: energy}}", "不能改"),
        (f"services:\n  {NAME}: {{pools: [nowhere]}}", "没有叫 nowhere 的"),
        (f"services:\n  {NAME}: {{pools: nowhere}}", "要一列"),
        (f"services:\n  {NAME}: {{priority: [1]}}", "要一个值"),
        (f"services:\n  {NAME}: {{can_sleep: perhaps}}", "true 或 false"),
        (f"services:\n  {NAME}: {{resident_hours: [{{days: workday}}]}}", "days、from、to"),
        (f"services:\n  {NAME}: {{min_replicas: 9, max_replicas: 2}}", "不能少于最少实例"),
        ("services:\n  New Name: {tenant: estate, model: qwen3-8b}", "只用小写字母"),
        ("services:\n  import: {tenant: estate}", "只用小写字母"),
        ("services:\n  fresh: {tenant: nobody, model: none}", "没有这家公司"),
        ("models:\n  m: {weights_mib: many}", "整数"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(browse, written, said):
    before = list(Service.objects.order_by("pk").values())
    page = looked_at(browse("operator"), written)
    assert page.status_code == 422
    assert said in text(page)
    assert "写入" not in re.sub(r"<title>.*?</title>", "", text(page)).split('class="gk-acts"')[-1]
    assert list(Service.objects.order_by("pk").values()) == before


def test_one_that_is_wrong_holds_back_all(browse):
    operator = browse("operator")
    page = looked_at(operator, f"services:\n  {NAME}: {{priority: 77}}\n  code-helper: {{priority: 500}}")
    assert page.status_code == 422
    answer = operator.post("/services/import/write", {"text": page.context["text"], "seen": page.context["batch"].seen})
    assert answer.status_code == 422
    assert Service.objects.get(name=NAME).priority != 77


def test_what_was_changed_meanwhile_is_not_overwritten(browse):
    operator = browse("operator")
    page = looked_at(operator, f"services:\n  {NAME}: {{priority: 77}}")
    Service.objects.filter(name=NAME).update(priority=66)
    answer = confirmed(operator, page)
    assert "这期间有人改过" in text(answer)
    assert Service.objects.get(name=NAME).priority == 66
    assert "已写入" in text(confirmed(operator, answer)), "and now it is known"


def test_more_than_can_be_looked_at_is_refused(browse):
    many = "".join(f"  s{n}: {{tenant: estate, model: none}}\n" for n in range(MOST + 1))
    assert f"一次最多改 {MOST} 个" in text(looked_at(browse("operator"), "services:\n" + many))


@pytest.mark.parametrize("file", [b"\xff\xfe\x00", b"services: {}", b"\x00"])
def test_files_that_are_none_are_answered(browse, file):
    page = browse("operator").post("/services/import", {"file": SimpleUploadedFile("x.yaml", file)})
    assert page.status_code in (200, 422)
    assert "什么都不用改" in text(page) or 'role="alert"' in text(page)


def test_one_change_for_those_that_were_picked_or_found(browse):
    operator = browse("operator")
    page = text(operator.get(f"/services/bulk?name={NAME}&name=code-helper"))
    assert "选中的 2 个" in page
    found = operator.post("/services/bulk", {"name": [NAME, "code-helper"], "priority": "61"})
    assert "已写入 2 处" in text(confirmed(operator, found))
    assert Service.objects.filter(priority=61).count() == 2
    found = operator.post("/services/bulk", {"of_tenant": "estate", "min_replicas": "0", "max_replicas": "4"})
    assert found.status_code == 200
    confirmed(operator, found)
    assert set(Service.objects.filter(tenant__slug="estate").values_list("max_replicas", flat=True)) == {4}
    assert "还没有说改什么" in text(operator.post("/services/bulk", {"of_tenant": "estate"}))


def test_a_thousand_that_stay_cost_few_queries(browse, django_assert_max_num_queries):
    browse("operator")
    operator = rows.person("operator")
    template = Service.objects.select_related("model", "tenant").get(name=NAME)
    for n in range(40):
        Service.objects.create(
            name=f"copy-{n}", label=f"c{n}", tenant=template.tenant, model=template.model, weights_mib=1000,
            kv_cap_mib=1000, headroom_mib=100,
        )  # fmt: skip
    many = Service.objects.select_related("tenant", "model", "fallback", "long_lane").prefetch_related(
        "pools", "audience_tenants"
    )
    parts = yaml_text.load(yaml_text.dump(*exported(many)))
    with django_assert_max_num_queries(8):
        batch = propose(operator, parts["models"], parts["services"])
    assert (batch.lines, batch.untouched) == ([], Service.objects.count())
    assert Model.objects.count() == len(parts["models"])
