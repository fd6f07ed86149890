"""Each kind of request: what it shows before, what it makes so, and that it takes back only what it made."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from console.accounts.models import ApiKey, Tenant
from console.catalog.models import Service
from console.costs.prices import FEN
from console.fleet.models import Pool, Quota
from console.money.models import CallBudget, CardBudget, KeyCost
from console.money.months import next_month
from console.policies.change import in_force, write
from console.policies.models import Layer, PolicyValue
from console.requests import course
from console.requests.kinds import KINDS
from console.requests.models import Request, State
from console.usage.models import HourlyCalls
from tests.console import rows
from tests.console.asking import NAME, another_approver, click, decide, filed, local, service, text

pytestmark = pytest.mark.django_db


def estate() -> Tenant:
    return Tenant.objects.get(slug="estate")


def budget(yuan: str = "1200.50", **more: str) -> Request:
    return filed(kind="budget", **{"tenant": str(estate().pk), "yuan": yuan, "why": "扩到二期", **more})


def pass_by(days: float) -> None:
    course.run(timezone.now() + timedelta(days=days))


def test_a_budget_is_raised_until_a_day_and_goes_back(farm):
    CardBudget.objects.create(tenant=estate(), limit_fen=500 * FEN)
    row = budget(until=local(2))
    assert KINDS["budget"].consequences(row, timezone.now().timestamp())["fen_month"] == 70050
    decide(row)
    assert CardBudget.objects.get().limit_fen == 120050
    pass_by(3)
    assert CardBudget.objects.get().limit_fen == 500 * FEN


def test_a_first_budget_goes_away_again_and_one_that_was_changed_stays(farm):
    decide(budget(until=local(2)))
    assert CardBudget.objects.get().limit_fen == 120050
    pass_by(3)
    assert not CardBudget.objects.exists()
    decide(budget(until=local(2)))
    CardBudget.objects.update(limit_fen=7)
    pass_by(3)
    assert CardBudget.objects.get().limit_fen == 7


def a_raise(guaranteed: int = 50_000, borrowable: int = 9_000, **more: str) -> Request:
    values = {"tenant": str(estate().pk), "pool": str(Pool.objects.get(name="shared-middle").pk), "why": "二期上线"}
    return filed(
        kind="quota", **{**values, "guaranteed_mib": str(guaranteed), "borrowable_mib": str(borrowable), **more}
    )


def sizes() -> list[tuple[int, int]]:
    return list(Quota.objects.values_list("guaranteed_mib", "borrowable_mib"))


def test_a_quota_is_raised_until_a_day_and_goes_back(farm):
    Quota.objects.exclude(tenant=estate(), pool__name="shared-middle").delete()
    Quota.objects.update(guaranteed_mib=40_000, borrowable_mib=5)
    row = a_raise(until=local(2))
    facts = dict(KINDS["quota"].consequences(row, timezone.now().timestamp())["facts"])
    assert (facts["promised"]["was"], facts["promised"]["will"]) == ("39.1", "48.8")
    decide(row)
    assert sizes() == [(50_000, 9_000)]
    pass_by(3)
    assert sizes() == [(40_000, 5)]


def test_a_first_quota_goes_away_again_and_one_that_was_changed_stays(farm):
    Quota.objects.all().delete()
    decide(a_raise(until=local(2)))
    assert sizes() == [(50_000, 9_000)]
    pass_by(3)
    assert sizes() == []
    decide(a_raise(until=local(2)))
    Quota.objects.update(borrowable_mib=7)
    pass_by(3)
    assert sizes() == [(50_000, 7)]


def test_more_than_the_pool_has_is_not_asked_for_nor_approved(farm):
    Quota.objects.all().delete()
    with pytest.raises(AssertionError, match="至多能保证"):
        a_raise(9_000_000)
    row = a_raise()
    Quota.objects.create(
        tenant=Tenant.objects.get(slug="energy"), pool=Pool.objects.get(name="shared-middle"),
        guaranteed_mib=9_000_000, borrowable_mib=0,
    )  # fmt: skip
    decide(row)
    row.refresh_from_db()
    assert row.state == State.FAILED
    assert not Quota.objects.filter(tenant=estate()).exists()


def test_the_page_of_a_quota_says_what_it_would_be_and_what_is(browse):
    row = a_raise()
    page = text(browse("approver").get(f"/requests/{row.pk}"))
    assert "48.8" in page
    assert "保证 80.0 GiB，可借 150.0 GiB" in page, "what the demo's farm has"
    html = text(browse("approver").get(f"/requests/{row.pk}/weighed"))
    assert "之后承诺" in html
    asked = text(browse("tenant_admin").get(f"/requests/new/quota?pool={row.wanted['pool']}"))
    assert 'value="81920"' in asked, "a raise begins with what is"


def test_much_money_takes_two_people(farm):
    assert budget("50000").steps == 1
    row = decide(budget("50000.01"))
    assert (row.state, row.steps) == (State.OPEN, 2)
    assert decide(row, another_approver()).state == State.IN_FORCE


def test_a_budget_that_is_spent_already_says_who_would_stop(farm):
    spent = {"spent_fen": 10**9, "month": timezone.localdate().replace(day=1), "as_of": timezone.now()}
    CardBudget.objects.create(tenant=estate(), limit_fen=2 * 10**9, **spent)
    Service.objects.filter(tenant=estate()).update(profile="lowfreq", min_replicas=0, whitelisted_until=None)
    found = KINDS["budget"].consequences(budget("1"), timezone.now().timestamp())
    drained = {name for verb, reason, names, more in found["effects"] if reason == "budget" and more for name in names}
    assert drained
    assert drained <= set(Service.objects.filter(tenant=estate()).values_list("name", flat=True))


def calls(amount: str = "1000", unit: str = "tokens", **more: str) -> Request:
    return filed(kind="calls", **{"tenant": str(estate().pk), "unit": unit, "amount": amount, "why": "试点", **more})


def used(tokens: int, days_ago: float = 0.0, key: int = 0) -> None:
    hour = (timezone.now() - timedelta(days=days_ago)).replace(minute=0, second=0, microsecond=0)
    values = {"service": NAME, "tenant": "estate", "key_id": key, "calls": 1}
    HourlyCalls.objects.create(hour=hour, prompt_tokens=tokens, **values)


def facts(row: Request) -> dict[str, dict[str, str]]:
    return dict(KINDS[row.kind].consequences(row, timezone.now().timestamp())["facts"])


def test_a_call_budget_is_set_until_a_day_and_goes_back(farm):
    CallBudget.objects.create(tenant=estate(), limit=500)
    decide(calls(until=local(2)))
    assert [(one.limit, one.unit) for one in CallBudget.objects.all()] == [(1000, "tokens")]
    pass_by(3)
    assert CallBudget.objects.get().limit == 500


def test_a_first_call_budget_goes_away_and_one_that_was_changed_stays(farm):
    decide(calls("12.34", "fen", until=local(2)))
    assert [(one.limit, one.unit) for one in CallBudget.objects.all()] == [(1234, "fen")]
    pass_by(3)
    assert not CallBudget.objects.exists()
    decide(calls(until=local(2)))
    CallBudget.objects.update(limit=7)
    pass_by(3)
    assert CallBudget.objects.get().limit == 7


def test_a_call_budget_says_what_was_used_and_when_it_ends(farm):
    HourlyCalls.objects.all().delete()
    assert facts(calls()).keys() == {"call_tokens", "call_lasts", "first_call_budget"}
    used(700)
    assert facts(calls())["call_tokens"] == {"used": "700", "day": "100"}
    assert "call_spent" in facts(calls("700"))
    month_ends = (next_month(timezone.now()) - timezone.now()) / timedelta(days=1)
    assert ("call_ends" in facts(calls("720"))) is (month_ends > 0.2)
    assert "call_lasts" in facts(calls("1000000"))


def test_a_call_budget_in_yuan_counts_what_is_booked_and_decides_how_many_agree(farm):
    KeyCost.objects.create(month=timezone.localdate().replace(day=1), tenant="estate", key_id=1, fen=1234)
    assert facts(calls("100", "fen"))["call_fen"] == {"used": "12.34"}
    assert "call_spent" in facts(calls("12.34", "fen"))
    assert (calls("50000", "fen").steps, calls("50000.01", "fen").steps, calls("99999999").steps) == (1, 2, 1)


def test_a_call_budget_of_one_key(browse):
    key = ApiKey.objects.get(name="demo estate")
    foreign = ApiKey.objects.get(name="demo energy")
    with pytest.raises(AssertionError):
        calls(key=str(foreign.pk))
    row = calls(key=str(key.pk))
    assert row.subject == "置业公司 · demo estate"
    html = text(browse("approver").get(f"/requests/{row.pk}"))
    for said in ("1,000 token", "没有设，不限"):
        assert said in html, said
    assert "本月已用" in text(browse("approver").get(f"/requests/{row.pk}/weighed"))
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())
    assert facts(row).keys() == {"unclear"}
    assert decide(row).state == State.FAILED
    assert "申请调用预算" in text(browse("tenant_admin").get("/costs/budgets"))


def test_a_choice_of_two_companies_with_one_operator_says_what_does_not_fit(browse):
    """The operator sees every key: one of another company is a mistake that is said."""
    foreign = ApiKey.objects.get(name="demo energy")
    sent = {"tenant": estate().pk, "key": foreign.pk, "unit": "tokens", "amount": "5", "why": "x"}
    assert "这个密钥不是这家公司的" in text(browse("operator").post("/requests/new/calls", sent))


def audience(kind: str = "group", **more: object) -> Request:
    return filed(kind="audience", service=NAME, audience=kind, why="共用", **more)


def test_an_audience_is_opened_and_closed_again(farm):
    row = audience(until=local(1))
    facts = dict(KINDS["audience"].consequences(row, timezone.now().timestamp())["facts"])
    assert facts["callers"] == {"gained": Tenant.objects.count() - 1, "lost": 0, "all": Tenant.objects.count()}
    decide(row)
    assert service().audience == "group"
    pass_by(2)
    assert service().audience == "own"


def test_the_page_of_the_service_says_what_the_request_changed(browse):
    finance = Tenant.objects.get(slug="finance")
    decide(audience("named", audience_tenants=str(finance.pk)))
    assert list(service().audience_tenants.all()) == [finance]
    assert finance.name in text(browse("tenant_admin").get(f"/services/{NAME}"))


def policy(**more: str) -> Request:
    given = {"where": "group:", "name": "grace_s", "value": "10m", "why": "夜里太吵", **more}
    return filed("operator", kind="policy", **given)


def test_a_policy_changes_for_a_while(farm):
    before = in_force(Layer.GROUP)
    row = decide(policy(until=local(1)))
    assert in_force(Layer.GROUP)["grace_s"] == 600
    assert row.undo["version"]
    pass_by(2)
    assert in_force(Layer.GROUP) == before


def test_a_policy_that_somebody_changed_meanwhile_is_not_overwritten(farm):
    row = policy()
    write(Layer.GROUP, "", {"grace_s": 120}, by=rows.person("operator"), note="急", now=timezone.now())
    row = decide(row)
    assert (row.state, row.reason) == (State.FAILED, "changed")
    assert in_force(Layer.GROUP)["grace_s"] == 120


def test_the_page_before_a_change_asks_with_all_its_numbers(browse):
    client = browse("operator")
    PolicyValue.objects.create(name="group_policy_approval", value=1)
    sent = {"layer": "", "subject": "", "v.grace_s": "600", "v.idle_unload_s": "30m", "note": "夜里太吵", "when": ""}
    assert "要审批" in text(client.post("/policies/save", sent))
    client.post("/requests/new/policy", sent)
    row = Request.objects.get()
    assert row.wanted["changes"] == {"grace_s": 600, "idle_unload_s": 1800}
    decide(row)
    assert in_force(Layer.GROUP)["idle_unload_s"] == 1800


def test_a_wrong_number_is_told_and_kept(browse):
    sent = {"where": "group:", "name": "grace_s", "value": "soon", "why": "x"}
    answer = browse("operator").post("/requests/new/policy", sent)
    assert answer.status_code == 422
    assert "soon" in text(answer)
    assert browse("tenant_admin").post("/requests/new/policy", sent).status_code == 403


DRAFT = {
    "model": "other", "weights_path": "estate/new", "kv_bytes": "114688", "name": "estate-new", "label": "新助手",
    "tokens": "2048", "concurrency": "8", "max_model_len": "8192", "unit": "gib", "weights": "8", "kv_cap": "2",
    "headroom": "1", "profile": "lowfreq", "tier": "warm", "priority": "50", "audience": "own", "min_replicas": "0",
    "max_replicas": "1", "why": "二期上线",
}  # fmt: skip


def test_a_company_asks_for_a_service_and_gets_it(browse):
    client = browse("tenant_member")
    assert 'formaction="/requests/new/service"' in text(client.get("/services/new"))
    client.post("/requests/new/service", DRAFT | {"tenant": str(estate().pk)})
    row = Request.objects.get()
    assert not Service.objects.filter(name="estate-new").exists()
    page = text(browse("approver").get(f"/requests/{row.pk}/weighed"))
    assert "现在放得下" in page
    click(browse("approver"), row, "approve")
    made = Service.objects.get(name="estate-new")
    assert (made.tenant, made.weights_mib, made.kv_cap_mib) == (estate(), 8192, 2048)
    row.refresh_from_db()
    assert (row.service, row.state) == (made, State.IN_FORCE)
    assert "现在就结束" not in text(client.get(f"/requests/{row.pk}")), "a service is stopped and edited"


def test_a_name_taken_meanwhile_is_no_second_service(farm):
    given = DRAFT | {"tenant": str(estate().pk)}
    first, second = filed("tenant_member", kind="service", **given), filed("tenant_member", kind="service", **given)
    decide(first)
    second = decide(second)
    assert (second.state, second.reason) == (State.FAILED, "name_taken")
    assert Service.objects.filter(name="estate-new").count() == 1


def test_a_wide_key_is_collected_once_and_ends(browse):
    row = filed(kind="key", tenant=str(estate().pk), name="全能", until=local(2), why="门户要调所有业务")
    asker, other = browse("tenant_admin"), browse("tenant_member")
    asker.post(f"/requests/{row.pk}/key")
    assert not ApiKey.objects.filter(name="全能").exists()
    decide(row)
    other.post(f"/requests/{row.pk}/key")
    assert not ApiKey.objects.filter(name="全能").exists(), "it is the asker's"
    shown = re.search(r'id="secret">(gk_[^<]+)<', text(asker.post(f"/requests/{row.pk}/key")))
    assert shown
    key = ApiKey.objects.get(name="全能")
    assert (key.services, key.expires_at, key.revoked_at) == ([], Request.objects.get().until, None)
    assert "gk_" not in text(asker.post(f"/requests/{row.pk}/key", follow=True)).replace(key.prefix, "")
    pass_by(3)
    assert ApiKey.objects.get(name="全能").revoked_at is not None


@pytest.mark.parametrize("key", list(KINDS))
@pytest.mark.parametrize("language", ["zh-hans", "en"])
def test_every_kind_has_a_form_in_both_languages(browse, key, language):
    client = browse("operator")
    client.cookies["gongka_language"] = language
    assert client.get(f"/requests/new/{key}").status_code == 200
    assert client.get("/requests/new/nothing").status_code == 404
