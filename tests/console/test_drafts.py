"""What was typed and not sent: kept for the person, given back, thrown away, and never anybody else's."""

from __future__ import annotations

import re
import time
from datetime import timedelta

import pytest
from django.http import QueryDict
from django.utils import timezone

from console.accounts.models import Tenant
from console.audit.models import Entry as Told
from console.requests import drafts
from console.requests.kinds import KINDS
from console.requests.models import Draft, Request
from tests.console.asking import NAME, local, text
from tests.console.rows import person
from tests.console.test_wizard import fields
from workers.jobs import prune

pytestmark = pytest.mark.django_db


def typed(client, kind: str = "whitelist", **values: object):
    return client.post(f"/requests/new/{kind}/draft", {"opened": str(time.time()), **values})


def test_it_is_kept_as_it_is_typed_and_given_back_without_a_reproach(browse):
    client = browse("tenant_admin")
    answer = typed(
        client, service=NAME, why="月底", until="not a date", csrfmiddlewaretoken="x", urgent="1", strange="y"
    )
    assert "草稿已存" in text(answer)
    assert Draft.objects.get().fields == {"service": [NAME], "why": ["月底"], "until": ["not a date"]}
    html = text(client.get("/requests/new/whitelist"))
    for said in ("月底", "not a date", "接着您", "丢掉草稿"):
        assert said in html, said
    assert 'role="alert"' not in html, "nobody has handed it in yet"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_of_form_keeps_one(browse, kind):
    name = "operator" if person("operator").role in KINDS[kind].askers else "tenant_admin"
    client = browse(name)
    assert "草稿已存" in text(typed(client, kind, why="先写一半"))
    page = "/services/new" if kind == "service" and name != "operator" else f"/requests/new/{kind}"
    assert "先写一半" in text(client.get(page))


def test_it_is_the_persons_own(browse):
    typed(browse("tenant_admin"), why="只有我")
    assert "只有我" not in text(browse("tenant_member").get("/requests/new/whitelist"))
    assert "只有我" not in text(browse("operator").get("/requests/new/whitelist"))


def test_an_address_that_names_something_comes_first_and_offers_the_draft(browse):
    client = browse("tenant_admin")
    typed(client, service=NAME, why="旧的")
    html = text(client.get(f"/services/{NAME}/whitelist"))
    assert "旧的" not in html
    assert "有一份没有提的草稿" in html
    assert "旧的" in text(client.get(f"/services/{NAME}/whitelist?draft=1"))


def test_what_is_sent_is_no_draft_any_more_nor_what_its_page_saves_late(browse):
    client, opened = browse("tenant_admin"), str(time.time())
    sent = {"service": NAME, "until": local(1), "why": "结账", "opened": opened}
    typed(client, **sent)
    assert client.post("/requests/new/whitelist", sent).status_code == 302
    late = client.post("/requests/new/whitelist/draft", sent)
    assert "草稿已存" not in text(late)
    assert "结账" not in text(client.get("/requests/new/whitelist"))
    assert "草稿已存" in text(typed(client, why="下一个"))
    assert "草稿" not in Told.objects.get(act="request-new").changes.__str__()


def test_it_is_thrown_away(browse):
    client = browse("tenant_admin")
    typed(client, why="不要了")
    answer = client.post("/requests/new/whitelist/draft", {"discard": "1"})
    assert answer.headers["HX-Redirect"] == "/requests/new/whitelist"
    assert "不要了" not in text(client.get("/requests/new/whitelist"))
    assert client.get("/requests/new/whitelist/draft").url == "/requests/new/whitelist"


def test_the_wizard_keeps_its_own_and_registering_ends_it(browse):
    client = browse("operator")
    typed(client, "service", **fields(label="没写完", why="以后再说"))
    html = text(client.get("/services/new"))
    assert 'value="没写完"' in html
    assert re.search(r'hx-trigger="load, claim-filled', html), "and the planner is asked again"
    client.post("/services/new/register", fields())
    assert "没写完" not in text(client.get("/services/new"))
    member = browse("tenant_member")
    typed(member, "service", **fields(why="成员的"))
    assert "成员的" in text(member.get("/services/new"))
    assert client.post("/requests/new/service/draft", {"discard": "1"}).headers["HX-Redirect"] == "/services/new"


def test_nothing_typed_and_too_much_are_not_kept(farm):
    user, now = person("tenant_admin"), timezone.now()
    assert drafts.keep(user, "budget", {"why"}, QueryDict("why="), now) is None
    assert drafts.keep(user, "budget", {"why"}, QueryDict("why=" + "x" * 20_001), now) is None
    assert drafts.keep(user, "budget", {"why"}, QueryDict("why=ok&opened=nonsense"), now) is not None


def test_who_may_not_ask_keeps_nothing(browse):
    assert typed(browse("tenant_member"), "budget", why="x").status_code == 403
    assert typed(browse("auditor"), why="x").status_code == 403
    assert typed(browse("tenant_admin"), "none", why="x").status_code == 404
    assert not Draft.objects.exists()


def test_a_choice_that_is_no_longer_the_persons_is_no_leak(browse):
    client = browse("tenant_admin")
    typed(client, "budget", tenant=str(Tenant.objects.get(slug="energy").pk), why="别家")
    assert "能源公司" not in text(client.get("/requests/new/budget"))


def test_saving_a_draft_is_nobodys_business_but_sending_is(browse):
    typed(browse("tenant_admin"), why="x")
    assert not Told.objects.filter(act="request-draft").exists()


def test_it_goes_after_its_days(farm, settings):
    user, now = person("tenant_admin"), timezone.now()
    drafts.keep(user, "budget", {"why"}, QueryDict("why=old"), now - timedelta(days=settings.DRAFT_DAYS + 1))
    drafts.keep(user, "quota", {"why"}, QueryDict("why=new"), now)
    list(prune.run({}))
    assert [one.kind for one in Draft.objects.all()] == ["quota"]
    assert not Request.objects.exists()
