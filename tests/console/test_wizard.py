"""Registration: the claim filled in, the planner's answer, and a service only by an operator's click."""

from __future__ import annotations

import pytest

from console.catalog.models import Model, Order, Service
from console.fleet.models import Card, Pool
from console.services import draft
from console.services.shapes import choices, shape

pytestmark = pytest.mark.django_db

FIELDS = {
    "model": "used:qwen3-8b-bf16",
    "name": "contract-compare",
    "label": "合同比对",
    "tokens": "2048",
    "concurrency": "8",
    "max_model_len": "8192",
    "unit": "gib",
    "weights": "15.3",
    "kv_cap": "2.3",
    "headroom": "1",
    "profile": "online",
    "tier": "warm",
    "priority": "50",
    "audience": "own",
    "min_replicas": "0",
    "max_replicas": "1",
}


def text(answer) -> str:
    return answer.content.decode()


def fields(**more: object) -> dict[str, object]:
    from console.accounts.models import Tenant

    return FIELDS | {"tenant": Tenant.objects.get(slug="estate").pk} | more


@pytest.fixture
def operator(browse):
    return browse("operator")


@pytest.mark.parametrize(
    ("value", "unit", "mib"), [(1, "gib", 1024), (1, "gb", 954), (1, "mib", 1), (15.26, "gib", 15627), (0.5, "gb", 477)]
)
def test_sizes_are_rounded_against_the_newcomer(value, unit, mib):
    assert draft.to_mib(value, unit) == mib
    assert draft.to_mib(draft.from_mib(mib, unit), unit) >= mib


def test_the_claim_is_filled_in_from_model_and_use(operator):
    html = text(operator.post("/services/new/claim", fields(weights="", kv_cap="", headroom="", name="")))
    assert 'value="15.26"' in html  # 15,626 MiB
    assert 'value="2.25"' in html  # 2048 tokens × 8 × 144 KiB
    assert 'value="1.0"' in html
    assert "gk-bad" not in html, "nobody has handed it in yet"
    longer = text(operator.post("/services/new/claim", fields(max_model_len="32768", concurrency="1")))
    assert 'value="4.5"' in longer, "one longest request must fit"
    assert "16.39" in text(operator.post("/services/new/claim", fields(unit="gb")))


def test_it_fits_beside_whom_and_what_is_left(operator):
    html = text(operator.post("/services/new/answer", fields(card_classes=["a800-80"])))
    for said in ("放得下：", "号卡（gpu-01）", "之后剩", "秒就绪", "权重 15,668 + KV 2,356 + 余量 1,024"):
        assert said in html, said
    assert not Service.objects.filter(name="contract-compare").exists()


def test_the_answer_does_not_wait_for_a_name(operator):
    html = text(operator.post("/services/new/answer", fields(name="", label="")))
    assert "放得下：" in html
    assert "登记前还差：" in html
    assert "显示名" in html


def test_two_at_least_go_to_two_hosts(operator):
    html = text(operator.post("/services/new/answer", fields(min_replicas="2", max_replicas="2")))
    assert html.count("放得下：") + html.count("要等：") == 2


def test_what_is_too_large_says_every_cards_reason_and_what_would_help(operator):
    Card.objects.exclude(host__name="gpu-01").update(healthy=False)
    html = text(operator.post("/services/new/answer", fields(weights="60", kv_cap="40")))
    for said in ("放不下：", "显存不够", "每张卡怎么说", "卡不健康", "24 张", "怎样就放得下", "KV 上限降到"):
        assert said in html, said


def test_a_draft_that_is_not_whole_says_what_is_missing(operator):
    html = text(operator.post("/services/new/answer", fields(weights="", priority="500")))
    assert "还差：" in html
    assert "权重" in html
    assert "优先级" in html
    assert "选好模型" in text(operator.get("/services/new/answer"))


def test_registering_stores_it_cold(operator):
    pool = Pool.objects.get(name="shared-large")
    answer = operator.post("/services/new/register", fields(pools=[pool.pk], card_classes=["a800-80"], then=""))
    assert (answer.status_code, answer.url) == (302, "/services/contract-compare")
    service = Service.objects.get(name="contract-compare")
    assert (service.weights_mib, service.kv_cap_mib, service.headroom_mib) == (15668, 2356, 1024)
    assert (service.tenant.slug, service.tier, service.max_num_seqs) == ("estate", "warm", 8)
    assert list(service.pools.all()) == [pool]
    assert (service.model.slug, service.model.min_compute_cap) == ("qwen3-8b-bf16", 8.0)
    assert not Order.objects.exists()
    assert "已登记合同比对" in text(operator.get(answer.url))


def test_a_model_of_the_shipped_catalogue_becomes_a_row(operator):
    operator.post("/services/new/register", fields(model="shipped:llama3.1-8b:fp8", weights="8.5"))
    model = Service.objects.get(name="contract-compare").model
    assert (model.slug, model.weights_mib, model.min_compute_cap) == ("llama3.1-8b-fp8", 8663, 8.9)


def test_registering_with_a_preload_files_the_order(operator):
    operator.post("/services/new/register", fields(then="preload"))
    order = Order.objects.get()
    assert (order.act, order.service.name) == ("preload", "contract-compare")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "hotline-qa"}, "已经有业务在用"),
        ({"name": "new"}, "已经有业务在用"),
        ({"name": "Hot Line"}, "只用小写字母"),
        ({"min_replicas": "3"}, "不能少于最少实例"),
        ({"max_model_len": "99999999"}, ""),
        ({"max_model_len": "999999"}, "这个模型最长 40,960"),
        ({"model": "other"}, "选“其他模型”时要填"),
        ({"model": "shipped:none:bf16"}, ""),
        ({"kv_cap": "0"}, "要大于 0"),
        ({"tenant": "x"}, ""),
    ],
)
def test_errors_stand_beside_their_field_and_nothing_typed_is_lost(operator, wrong, said):
    answer = operator.post("/services/new/register", fields(**wrong))
    html = text(answer)
    assert answer.status_code == 422
    assert said in html
    assert 'role="alert"' in html
    assert 'value="合同比对"' in html
    assert not Service.objects.filter(label="合同比对").exists()


def test_a_model_that_nobody_knows_is_described_by_hand(operator):
    known = {"model": "other", "weights_path": "own/tuned-7b", "kv_bytes": "57344"}
    assert "放得下：" in text(operator.post("/services/new/answer", fields(**known)))
    operator.post("/services/new/register", fields(**known))
    model = Service.objects.get(name="contract-compare").model
    assert (model.weights, model.kv_bytes_per_token, model.weights_mib) == ("own/tuned-7b", 57344, 15668)


def test_a_member_is_answered_and_told_that_the_centre_approves(browse):
    client = browse("tenant_member")
    html = text(client.get("/services/new"))
    assert "登记由信息中心批准" in html
    assert 'value="preload"' not in html
    answer = text(client.post("/services/new/answer", fields(card_classes=["l20"])))
    assert "放得下：" in answer
    assert not any(one.label in answer for one in Service.objects.exclude(tenant__slug="estate"))
    assert client.post("/services/new/register", fields()).status_code == 403
    other = client.post("/services/new/answer", fields(tenant="1"))
    assert "公司" in text(other), "another company is no choice"


def test_the_catalogue_is_offered_once(operator):
    groups = dict(pair for pair in choices() if isinstance(pair[1], list))
    used, shipped = list(groups.values())
    assert len(used) == Model.objects.count()
    assert not {value.removeprefix("shipped:").replace(":", "-") for value, _ in shipped} & set(
        Model.objects.values_list("slug", flat=True)
    )
    assert all(shape(value) is not None for value, _ in [*used, *shipped])
    assert shape("used:none") is None
    assert shape("") is None


def test_a_model_over_several_cards_is_declared_card_by_card(operator):
    html = text(operator.post("/services/new/claim", fields(weights="", kv_cap="", headroom="", cards_per_replica="2")))
    assert 'value="7.63"' in html  # half of 15,626 MiB
    assert 'value="1.13"' in html
    operator.post("/services/new/register", fields(weights="7.63", kv_cap="1.13", cards_per_replica="2"))
    row = Service.objects.get(name="contract-compare")
    assert (row.cards_per_replica, row.weights_mib) == (2, 7814)


def test_the_answer_for_several_cards_says_how_many_of_one_host(operator):
    sent = fields(weights="7.63", kv_cap="1.13", cards_per_replica="4")
    html = text(operator.post("/services/new/answer", sent))
    assert "另 3 张卡" in html
    assert "没有哪台主机有这么多张卡" in text(operator.post("/services/new/answer", sent | {"cards_per_replica": "9"}))
