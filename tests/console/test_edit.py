"""Changing a service: who may change what, what the planner says before, and what is written down after."""

from __future__ import annotations

import pytest

from console.accounts.models import Tenant
from console.catalog.models import Replica, Service
from console.fleet.models import Pool
from console.journal.models import Change
from console.services.edit import BOUNDS, LABELS, PANELS, EditForm, Overtaken, save
from tests.console import rows

pytestmark = pytest.mark.django_db
NAME = "property-service"
PAGE = f"/services/{NAME}/edit"


def text(answer) -> str:
    return answer.content.decode()


def service() -> Service:
    return Service.objects.select_related("tenant", "model").get(name=NAME)


def filled(person: str = "operator", **changed: object) -> dict[str, object]:
    """What the browser would send: every field as it is, and what was changed."""
    form = EditForm(rows.person(person), service())
    sent: dict[str, object] = {}
    for bound in form:
        value = bound.value()
        if value is None or value is False:
            continue
        sent[bound.name] = [getattr(one, "pk", one) for one in value] if isinstance(value, list) else value
    return {**sent, **changed}


def test_what_was_changed_is_saved_and_written_down(browse):
    operator, before = browse("operator"), service()
    sent = filled(max_replicas=before.max_replicas + 2, label="物业答疑台", waiter="background")
    answer = operator.post(PAGE, sent)
    assert (answer.status_code, answer.url) == (302, f"/services/{NAME}")
    after = service()
    assert (after.max_replicas, after.label, after.waiter) == (before.max_replicas + 2, "物业答疑台", "background")
    row = Change.objects.get()
    assert set(row.after) == {"max_replicas", "label", "waiter"}
    assert (row.before["label"], row.after["label"], row.by) == (before.label, "物业答疑台", rows.person("operator"))
    html = text(operator.get(f"/services/{NAME}"))
    for said in ("已改 3 项", "最多实例", "后台", "物业答疑台"):
        assert said in html, said


def test_nothing_changed_writes_nothing(browse):
    before = Service.objects.values().get(name=NAME)
    assert "没有什么不同" in text(browse("operator").post(PAGE, filled(), follow=True))
    assert Service.objects.values().get(name=NAME) == before
    assert not Change.objects.exists()


def test_a_companys_admin_changes_its_own_things_and_not_the_centres(browse):
    admin, before = browse("tenant_admin"), service()
    html = text(admin.get(PAGE))
    for name in PANELS["centre"][1]:
        assert f'name="{name}"' not in html, name
    sent = filled("tenant_admin", kv_cap_mib=before.kv_cap_mib + 512)
    admin.post(PAGE, {**sent, "priority": 99, "tier": "hot", "max_replicas": 60, "name": "stolen"})
    after = service()
    assert after.kv_cap_mib == before.kv_cap_mib + 512
    assert (after.priority, after.tier, after.max_replicas) == (before.priority, before.tier, before.max_replicas)
    assert set(Change.objects.get().after) == {"kv_cap_mib"}


def test_a_tier_that_a_person_sets_is_not_recomputed(browse):
    other = "cold" if service().tier != "cold" else "warm"
    browse("operator").post(PAGE, filled(tier=other))
    assert (service().tier, service().tier_fixed) == (other, True)


def test_named_companies_may_call_and_are_forgotten_with_the_range(browse):
    operator = browse("operator")
    others = list(Tenant.objects.exclude(pk=service().tenant_id)[:2])
    assert "至少选一家公司" in text(operator.post(PAGE, filled(audience="named")))
    operator.post(PAGE, filled(audience="named", audience_tenants=[one.pk for one in others]))
    assert set(service().audience_tenants.all()) == set(others)
    assert Change.objects.get().after["audience_tenants"] == sorted(one.name for one in others)
    operator.post(PAGE, filled(audience="own"))
    assert not service().audience_tenants.exists()


def test_a_changed_claim_is_answered_for_copies_that_are_there_and_for_the_next(browse):
    operator, before = browse("operator"), service()
    copy = Replica.objects.filter(service=before, ended_at=None).first()
    html = text(operator.post(PAGE + "/answer", filled(kv_cap_mib=before.kv_cap_mib + 1024)))
    for said in ("已在的实例", f"KV 仍是已授予的 {copy.kv_granted_mib:,} MiB", "下一个实例"):
        assert said in html, said
    assert "放得下：" in html or "要等：" in html or "放不下：" in html
    assert "账面超出" in text(operator.post(PAGE + "/answer", filled(weights_mib=200_000)))
    assert service().kv_cap_mib == before.kv_cap_mib, "asking is not saving"


def test_a_change_of_words_asks_the_planner_nothing(browse):
    operator = browse("operator")
    assert "就有调度按此刻的卡给出的答复" in text(operator.post(PAGE + "/answer", filled(label="改个名")))
    assert "先改好标红的几项" in text(operator.post(PAGE + "/answer", filled(kv_cap_mib=0)))


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(browse):
    sent = filled(label="我的")
    Service.objects.filter(name=NAME).update(label="别人的")
    answer = browse("operator").post(PAGE, sent)
    assert answer.status_code == 422
    assert "这期间有人改过" in text(answer)
    assert 'value="我的"' in text(answer), "what was typed stays"
    assert service().label == "别人的"


def test_of_two_who_save_at_once_one_does(farm):
    one, two = (EditForm(rows.person("operator"), service(), filled(priority=p)) for p in (71, 72))
    assert one.is_valid()
    assert two.is_valid()
    assert save(one, rows.person("operator")) is not None
    with pytest.raises(Overtaken):
        save(two, rows.person("operator"))
    assert (service().priority, Change.objects.count()) == (71, 1)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"min_replicas": 5, "max_replicas": 2}, "不能少于最少实例"),
        ({"max_model_len": 9_999_999}, "这个模型最长"),
        ({"label": ""}, "gk-bad"),
        ({"priority": 101}, "100"),
        ({"cards_per_replica": 2}, "先全部停止再改"),
        ({"max_prompt_tokens": 900, "max_total_tokens": 800}, "不能少于提问的上限"),
        ({"p99_target_ms": 0}, "gk-bad"),
        ({"long_share_pct": 95}, "90"),
    ],
)
def test_what_cannot_be_stands_beside_its_field(browse, changed, said):
    before = Service.objects.values().get(name=NAME)
    answer = browse("operator").post(PAGE, filled(**changed))
    assert answer.status_code == 422
    assert said in text(answer)
    assert Service.objects.values().get(name=NAME) == before


def test_pools_and_classes_are_chosen_by_the_centre(browse):
    pool = Pool.objects.create(name="named", label="专用")
    browse("operator").post(PAGE, filled(pools=[pool.pk], card_classes=["a800-80"]))
    assert list(service().pools.all()) == [pool]
    assert service().card_classes == ["a800-80"]
    assert Change.objects.get().after["pools"] == ["专用"]


#: Written by control or by another page, or never after registration; everything else can be edited here.
NOT_EDITED = {
    "id", "name", "tenant", "model", "created_at", "whitelisted_until", "resident_hours", "starts_28d",
    "wished_at", "last_reclaimed_at", "let_go_at", "failures", "last_call_at",
}  # fmt: skip


def test_every_column_a_person_decides_can_be_edited():
    columns = {field.name for field in (*Service._meta.fields, *Service._meta.many_to_many)}
    assert set(LABELS) <= columns
    assert columns - set(LABELS) - NOT_EDITED == set(), "a new column is either edited here or listed as not"


def test_two_services_do_not_hand_long_calls_to_each_other(browse):
    other = Service.objects.filter(audience="group").exclude(name=NAME).first()
    Service.objects.filter(pk=other.pk).update(long_lane=service())
    assert "不能互相交给对方" in text(browse("operator").post(PAGE, filled(long_lane=other.pk)))
    Service.objects.filter(pk=other.pk).update(long_lane=None)
    browse("operator").post(PAGE, filled(long_lane=other.pk, long_from_tokens=4000))
    assert (service().long_lane, service().long_from_tokens) == (other, 4000)


def test_every_field_of_a_panel_has_a_name_and_every_bound_a_field():
    named = [name for _title, names in PANELS.values() for name in names]
    assert sorted(named) == sorted(LABELS)
    assert set(BOUNDS) <= set(named)
    assert all(low < high for low, high in BOUNDS.values())


def test_who_answers_while_it_cannot_be_loaded_is_a_service_of_the_same_task(browse):
    other = Service.objects.filter(tenant=service().tenant, model__task=service().model.task).exclude(pk=service().pk)[
        0
    ]
    browse("tenant_admin").post(PAGE, filled(fallback=other.pk))
    assert service().fallback == other
    foreign = Service.objects.exclude(tenant=service().tenant).filter(audience="own")[0]
    assert browse("tenant_admin").post(PAGE, filled(fallback=foreign.pk)).status_code == 422
    assert service().fallback == other
