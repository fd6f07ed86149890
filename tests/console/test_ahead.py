"""What the page of a service says of its forecast, and who may turn its preloads on and off."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from console.catalog.models import Forecast, Model, Service
from console.fleet.models import Host, Pool
from console.journal.models import Decision
from console.journal.words import said
from console.services.ahead import ahead
from console.services.edit import EditForm, save
from console.services.loads import loads
from console.usage.models import DailyForecast
from console.workdays import year_known
from scheduler.policy import Policy
from tests.console import rows
from tests.console.test_edit import filled

pytestmark = pytest.mark.django_db
NAME = "property-service"
PAGE = f"/services/{NAME}"


def text(answer) -> str:
    return answer.content.decode()


def service() -> Service:
    return Service.objects.select_related("tenant", "model").get(name=NAME)


def foresee(**fields: object) -> Forecast:
    now = timezone.now()
    hour = now.replace(minute=0, second=0, microsecond=0)
    values = {"checked_at": now, "changed_at": now, "hours_from": hour, "hours": [0.0] * 48, **fields}
    return Forecast.objects.create(service=Service.objects.get(name=NAME), **values)


def test_before_anything_is_worked_out_the_page_says_so(browse):
    assert "还没有算出预计" in text(browse("operator").get(PAGE))


def test_the_page_tells_what_is_expected_and_how_often_it_was_right(browse):
    at = (timezone.now() + timedelta(hours=5)).timestamp()
    foresee(
        hours=[0.0, 0.0, 0.9, 0.3] + [0.0] * 44, moments=[[at, 0.8, "weekly"]], judged=[[1.0, 1], [2.0, 0], [3.0, 1]]
    )
    today = timezone.localdate()
    for n, (sessions, hits) in enumerate([(3, 3), (1, 0)]):
        DailyForecast.objects.create(day=today - timedelta(days=n), service=NAME, sessions=sessions, hits=hits)
    DailyForecast.objects.create(day=today - timedelta(days=9), service=NAME, sessions=50)
    html = text(browse("operator").get(PAGE))
    for expected in (
        "每周，可能性 80%",
        "这个钟点，可能性 90%",
        "最近 3 次预热，用上 2 次",
        "近 7 天 4 次开始使用，75% 没有等",
    ):
        assert expected in html, expected
    assert "可能性 30%" not in html


def test_the_list_sums_what_its_reader_may_see(browse):
    assert "没有等" not in text(browse("operator").get("/services/"))
    today = timezone.localdate()
    for name, sessions, hits, preloads, used in ((NAME, 4, 3, 2, 1), ("fund-qa", 6, 6, 0, 0)):
        values = {"sessions": sessions, "hits": hits, "preloads": preloads, "used": used}
        DailyForecast.objects.create(day=today, service=name, **values)
    assert "近 7 天 10 次开始使用，90% 没有等；预热 2 次，50% 用上" in text(browse("operator").get("/services/"))
    assert "近 7 天 4 次开始使用，75% 没有等" in text(browse("tenant_member").get("/services/"))


def test_what_is_past_is_not_expected(farm):
    now = timezone.now()
    foresee(hours=[0.9] * 48, hours_from=now - timedelta(days=4), moments=[[now.timestamp() - 60, 1.0, "weekly"]])
    assert ahead(service(), Policy()).expected == []


def test_the_owners_switch(browse):
    foresee(automatic=False, judged=[[float(n), 0] for n in range(20)])
    admin = browse("tenant_admin")
    assert "重新打开自动预热" in text(admin.get(PAGE))
    answer = admin.post(f"{PAGE}/preloads", {"on": "1"}, follow=True)
    assert "从头再看" in text(answer)
    row = Forecast.objects.get()
    assert (row.automatic, row.judged) == (True, [])
    admin.post(f"{PAGE}/preloads", {"on": "0"})
    assert Forecast.objects.get().automatic is False


@pytest.mark.parametrize("person", ["tenant_member", "auditor", "manager"])
def test_who_may_not_edit_the_service_has_no_switch(browse, person):
    foresee(automatic=False)
    client = browse(person)
    assert "重新打开自动预热" not in text(client.get(PAGE))
    assert client.post(f"{PAGE}/preloads", {"on": "1"}).status_code == 403
    assert Forecast.objects.get().automatic is False


def test_a_look_changes_nothing(browse):
    foresee(automatic=False)
    assert browse("operator").get(f"{PAGE}/preloads").status_code == 302
    assert Forecast.objects.get().automatic is False


def test_that_it_lost_its_preloads_stands_in_its_journal(browse):
    values = {"verb": "preload", "reason": "unused", "numbers": {"used": 3, "preloads": 20}}
    row = Decision.objects.create(at=timezone.now(), service=service(), **values)
    line = said(row, {})
    assert (line.verb, line.reason, line.numbers) == ("停用自动预热", "最近的预热用上的太少", "用上 3 次，预热 20 次")
    admin = browse("tenant_admin")
    for page in (PAGE, "/decisions/", "/timeline/", f"/timeline/{row.pk}"):
        assert "停用自动预热" in text(admin.get(page)), page


def test_a_preload_says_for_what(farm):
    numbers = {"expected_at": timezone.now().timestamp(), "probability_pct": 92, "rule": "periodic"}
    row = Decision(at=timezone.now(), verb="start", reason="forecast", numbers=numbers)
    line = said(row, {})
    assert "可能性 92%" in line.numbers
    assert "定时任务" in line.numbers
    assert f"{timezone.localtime():%H:}" in line.numbers


def test_an_unknown_year_is_said(browse, monkeypatch):
    monkeypatch.setattr("console.services.ahead.year_known", lambda year: False)
    assert "还不知道" in text(browse("operator").get(PAGE))
    monkeypatch.setattr("console.services.ahead.year_known", year_known)


# The list of a pool's idle moments


def test_an_operator_lists_it_for_idle_moments_and_takes_it_off(browse):
    operator, pool = browse("operator"), Pool.objects.order_by("pk")[0]
    for on, listed in (("1", [NAME]), ("1", [NAME]), ("0", [])):
        answer = operator.post(f"{PAGE}/prefetch", {"pool": pool.pk, "on": on}, follow=True)
        assert Pool.objects.get(pk=pool.pk).prefetch == listed
        assert ("在名单上" in text(answer)) is bool(listed)
    assert browse("tenant_admin").post(f"{PAGE}/prefetch", {"pool": pool.pk, "on": "1"}).status_code == 403


def test_only_pools_it_may_be_placed_in_can_list_it(browse):
    first, second = Pool.objects.order_by("pk")[:2]
    service().pools.set([second])
    operator = browse("operator")
    for wrong in (first.pk, 10**6, "x"):
        operator.post(f"{PAGE}/prefetch", {"pool": wrong, "on": "1"})
    assert not any(pool.prefetch for pool in Pool.objects.all())
    operator.post(f"{PAGE}/prefetch", {"pool": second.pk, "on": "1"})
    assert Pool.objects.get(pk=second.pk).prefetch == [NAME]


def test_where_a_host_keeps_its_weights_is_said_and_changed(browse):
    operator, host = browse("operator"), Host.objects.get(name="gpu-01")
    page = f"/hosts/{host.pk}/storage"
    assert "从网络存储读权重" in text(operator.get(page))
    assert "网络存储" in text(operator.post(page, {"storage": "network"}, follow=True))
    assert Host.objects.get(pk=host.pk).storage == "network"
    assert "从本机盘读权重" in text(operator.get(page))
    for other in ("network", "tape"):
        assert "什么也没有改" in text(operator.post(page, {"storage": other}, follow=True))
    assert browse("auditor").get(page).status_code == 403


# Resident hours on the edit page


def test_resident_hours_are_edited_and_written_down(browse):
    sent = filled()
    form = EditForm(rows.person("operator"), service(), {**sent, "resident_hours": "工作日 08:00-18:00"})
    assert form.is_valid(), form.errors
    change = save(form, rows.person("operator"))
    assert list(change.after) == ["resident_hours"]
    assert service().resident_hours == [{"days": "workday", "from": "08:00", "to": "18:00"}]
    html = text(browse("operator").get(PAGE))
    assert "工作日 08:00–18:00" in html
    assert "工作日 08:00–18:00" in text(browse("operator").get(f"{PAGE}/edit"))
    wrong = EditForm(rows.person("operator"), service(), {**sent, "resident_hours": "工作日"})
    assert "resident_hours" in wrong.errors


# Load estimates


def test_a_local_copy_is_advised_where_storage_is_remote(browse):
    Host.objects.update(bandwidth_mib_s=2000)
    Host.objects.filter(name="gpu-02").update(storage="network", bandwidth_mib_s=200)
    (far,) = [one for one in loads(service(), Policy()) if one.gain is not None]
    assert far.host == "gpu-02"
    assert far.gain.saves_s > 0
    assert "权重放到本机盘" in text(browse("operator").get(PAGE))


def test_shards_count_on_local_disks_only(farm):
    Host.objects.update(bandwidth_mib_s=2000)
    before = {one.host: one.reading_s for one in loads(service(), Policy())}
    Model.objects.update(shards=4)
    after = {one.host: one.reading_s for one in loads(service(), Policy())}
    assert before
    assert all(after[host] < before[host] for host in before)
    Host.objects.update(storage="network")
    assert {one.host: one.reading_s for one in loads(service(), Policy())} == before
