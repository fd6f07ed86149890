"""Quotas on pages: who sees which, what a form says before it is saved, what it refuses, and that it is recorded."""

from __future__ import annotations

import csv
import io
import re

import pytest
from django.utils import timezone

from console import state
from console.accounts.models import Tenant
from console.audit.models import Entry
from console.catalog.models import Replica, Service
from console.fleet.models import Card, Pool, Quota
from console.journal.models import Decision
from console.quotas.ledger import ledger
from console.quotas.standing import standings
from scheduler.lending import plannable_mib
from tests.console.asking import text

PAGE = "/tenants/quotas"
POOL = "shared-middle"


def tenant(slug: str = "estate") -> Tenant:
    return Tenant.objects.get(slug=slug)


def pool(name: str = POOL) -> Pool:
    return Pool.objects.get(name=name)


def a_quota(slug: str = "estate", guaranteed: int = 40_960, borrowable: int = 20_480, name: str = POOL) -> Quota:
    values = {"guaranteed_mib": guaranteed, "borrowable_mib": borrowable}
    return Quota.objects.update_or_create(tenant=tenant(slug), pool=pool(name), defaults=values)[0]


def only(slug: str = "estate", **more: int) -> Quota:
    """The one quota of the farm."""
    Quota.objects.all().delete()
    return a_quota(slug, **more)


def form(guaranteed: int, borrowable: int = 0, seen: str = "", slug: str = "estate") -> dict[str, object]:
    return {
        "tenant": tenant(slug).pk,
        "pool": pool().pk,
        "guaranteed_mib": guaranteed,
        "borrowable_mib": borrowable,
        "seen": seen,
    }


def there() -> int:
    rules = state.policy()
    return plannable_mib(ledger(rules), rules, POOL)


def test_the_page_shows_every_pool_with_what_is_used_lent_and_borrowed(browse):
    html = text(browse("operator").get(PAGE))
    for one in standings():
        assert one.pool.label in html
        assert sum(line.share.used_mib for line in one.lines) == one.used_mib
    assert "120.0" in html, "energy's guarantee in the large pool"
    assert html.count('class="gk-bar') == sum(len(one.lines) for one in standings())


def test_the_sums_are_those_of_the_whole_world(browse):
    rules = state.policy()
    short, whole = ledger(rules), state.world(1_800_000_000.0, rules=rules)
    assert short.quotas == whole.quotas
    assert {c.id: c.total_mib for c in short.cards.values()} == {c.id: c.total_mib for c in whole.cards.values()}
    used = {r.id: whole.services[r.service].tenant for r in whole.replicas.values()}
    assert {r.id: short.services[r.service].tenant for r in short.replicas.values()} == used


def test_a_company_without_a_quota_is_said_in_words(browse):
    Quota.objects.all().delete()
    html = text(browse("operator").get(PAGE))
    assert "没有设：不限，也没有保证" in html
    assert "设配额" in html


def test_a_company_sees_its_own_lines_only(browse):
    a_quota("finance", 70_007 * 1024)
    html = text(browse("tenant_admin").get(PAGE))
    assert "70,007.0" not in html
    assert "可规划" not in html
    assert "申请更多" in html
    assert "70,007.0" in text(browse("auditor").get(PAGE))


def test_the_page_of_a_company_has_its_quotas(browse):
    a_quota("estate", 31_744)
    own = text(browse("tenant_member").get(f"/tenants/{tenant().pk}"))
    assert 'id="quotas"' in own
    assert "31.0" in own
    assert 'id="quotas"' not in text(browse("account_officer").get(f"/tenants/{tenant().pk}"))


def test_more_cards_and_copies_do_not_ask_more_often(browse, django_assert_num_queries):
    client = browse("operator")
    client.get(PAGE)
    with django_assert_num_queries(10):
        client.get(PAGE)
    service = Service.objects.get(name="property-service")
    card = Card.objects.filter(pool__name=POOL).first()
    copy = Replica.objects.filter(service=service).first()
    for _ in range(3):
        copy.pk, copy.cards = None, [card.uuid]
        copy.save()
    with django_assert_num_queries(10):
        client.get(PAGE)


def test_the_operator_sets_changes_and_ends_one(browse):
    Quota.objects.all().delete()
    client = browse("operator")
    assert client.post(f"{PAGE}/new", form(40_000, 5_000)).status_code == 302
    row = Quota.objects.get()
    page = text(client.get(f"{PAGE}/{row.pk}"))
    assert 'value="40000+5000"' in page
    assert client.post(f"{PAGE}/{row.pk}", form(30_000, 6_000, "40000+5000")).status_code == 302
    row.refresh_from_db()
    assert (row.guaranteed_mib, row.borrowable_mib) == (30_000, 6_000)
    assert "没有上限" in text(client.get(f"{PAGE}/{row.pk}/end"))
    assert client.post(f"{PAGE}/{row.pk}/end").status_code == 302
    assert not Quota.objects.exists()
    acts = list(Entry.objects.order_by("pk").values_list("act", flat=True))
    assert acts[-3:] == ["quota-new", "quota-edit", "quota-end"]
    changed = Entry.objects.filter(act="quota-edit").latest("pk")
    assert "30000" in str(changed.changes)


def test_what_somebody_changed_meanwhile_is_not_overwritten(browse):
    row = only(guaranteed=100, borrowable=1)
    answer = browse("operator").post(f"{PAGE}/{row.pk}", form(300, 1, "200+1"))
    assert answer.status_code == 422
    assert "刚才有人也改了" in text(answer)
    assert "已经有配额了" in text(browse("operator").post(f"{PAGE}/new", form(300)))
    row.refresh_from_db()
    assert row.guaranteed_mib == 100


def test_more_than_there_is_is_not_promised(browse):
    only("energy", guaranteed=there() - 1_000)
    answer = browse("operator").post(f"{PAGE}/new", form(1_001))
    assert answer.status_code == 422
    assert "至多能保证 1,000 MiB" in text(answer)
    assert 'value="1001"' in text(answer), "keeps what was typed"
    assert browse("operator").post(f"{PAGE}/new", form(1_000)).status_code == 302


@pytest.mark.parametrize("typed", ["-1", "1.5", "viel", ""])
def test_what_is_no_number_of_mib_is_refused_beside_its_field(browse, typed):
    Quota.objects.all().delete()
    answer = browse("operator").post(f"{PAGE}/new", form(0) | {"guaranteed_mib": typed})
    assert 'id="id_guaranteed_mib_error"' in text(answer)
    assert not Quota.objects.exists()


def test_the_answer_says_what_is_promised_and_who_would_have_to_go(browse):
    """Everything is promised to the company: whatever others hold there would go first, unless it is always kept."""
    Quota.objects.all().delete()
    Replica.objects.filter(service__name="fund-qa").update(loaded_at=None)
    answer = browse("operator").post(f"{PAGE}/answer", form(there()))
    html = text(answer)
    assert f"之后承诺 {there() / 1024:,.1f} GiB" in html
    assert "借着公司的保证" in html or "眼下收不回" in html
    assert not Quota.objects.exists()
    over = text(browse("operator").post(f"{PAGE}/answer", form(there() + 7)))
    assert "多 7 MiB" in over


@pytest.mark.parametrize("name", ["tenant_admin", "tenant_member", "manager", "auditor", "approver"])
def test_only_the_operator_sets_quotas(browse, name):
    row, client = a_quota(), browse(name)
    for path in ("new", "answer", str(row.pk), f"{row.pk}/end"):
        assert client.post(f"{PAGE}/{path}", form(1)).status_code == 403
    assert not re.search(r'class="btn[^"]*" href="/tenants/quotas/(?!table.csv)', text(client.get(PAGE)))


def test_a_service_that_is_kept_out_says_by_how_much_and_where_to_ask(browse):
    service = Service.objects.get(name="property-service")
    numbers = {"tenant": "estate", "pool": POOL, "holds_mib": 30_000, "asked_mib": 18_704, "needed_mib": 8_704}
    numbers |= {"guaranteed_mib": 40_000, "borrowable_mib": 0}
    refused = {"verb": "start", "reason": "hold", "refusal": "quota_exceeded", "numbers": numbers}
    Decision.objects.create(service=service, at=timezone.now(), **refused)
    html = text(browse("tenant_admin").get(f"/services/{service.name}"))
    assert "再多 8,704 MiB 才够" in html
    ask = re.search(r'href="(/requests/new/quota\?[^"]+)"', html)[1].replace("&amp;", "&")
    form = text(browse("tenant_admin").get(ask))
    assert 'value="48704"' in form
    assert "/requests/new/quota" not in text(browse("tenant_member").get(f"/services/{service.name}"))
    Decision.objects.create(service=service, at=timezone.now(), verb="start", reason="hold", numbers={})
    assert 'id="over-quota"' not in text(browse("tenant_admin").get(f"/services/{service.name}"))


def read_csv(client) -> list[list[str]]:
    answer = client.get(f"{PAGE}/table.csv")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="quotas.csv"'
    return list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))


def test_the_table_to_take_away_says_what_the_page_says(browse):
    only(guaranteed=40_960, borrowable=20_480)
    head, *lines = read_csv(browse("operator"))
    assert head[:5] == ["资源池", "公司", "在用，GiB", "保证，GiB", "可借，GiB"]
    (mine,) = [line for line in lines if line[0] == "中卡共享池" and line[1] == "置业公司"]
    assert mine[3:5] == ["40.0", "20.0"]
    html = text(browse("operator").get(PAGE))
    assert all(cell in html for cell in mine if cell)
    others = [line for line in lines if line != mine]
    assert others, "companies that use a pool without a quota stand there too"
    assert all(line[3] == line[4] == line[7] == "" for line in others), "none is not zero"
    assert {line[1] for line in read_csv(browse("tenant_member"))[1:]} == {"置业公司"}
