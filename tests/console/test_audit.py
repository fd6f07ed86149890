"""The audit: every act of a person leaves its row, nobody can take one away, and no secret is in it."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone
from openpyxl import load_workbook

from console.accounts.models import ApiKey, Tenant, User
from console.audit.append_only import guard, unguard
from console.audit.middleware import ONLY_ANSWER, SAFE
from console.audit.models import Entry
from console.audit.subjects import subject
from console.audit.words import ACTS
from console.catalog.models import Order
from console.fleet.models import Card, Host
from tests.console import rows
from tests.console.addresses import ADDRESSES, patterns

pytestmark = pytest.mark.django_db


def last() -> Entry:
    return Entry.objects.latest("id")


def lines(entry: Entry) -> dict[str, tuple[object, object]]:
    return {field: (before, after) for _, _, field, before, after in entry.changes}


def test_a_conditional_update_is_told_with_before_and_after(browse):
    card = Card.objects.get(number=10)
    browse("operator").post(f"/board/cards/{card.pk}/cordon", {"cordoned": "1"}, REMOTE_ADDR="10.1.2.3")
    one = last()
    assert (one.username, one.role, one.act, one.address) == ("operator", "operator", "board-cordon", "10.1.2.3")
    assert lines(one)["cordoned"] == (False, True)


def test_what_hosts_report_meanwhile_is_not_the_persons_doing(browse, monkeypatch):
    from console.board import views

    card = Card.objects.get(number=10)
    done = views.Card.objects.filter

    def reported(*args: object, **more: object):
        done(pk=card.pk).update(free_mib=1, sampled_at=timezone.now())
        return done(*args, **more)

    monkeypatch.setattr(views.Card.objects, "filter", reported)
    browse("operator").post(f"/board/cards/{card.pk}/cordon", {"cordoned": "1"})
    assert set(lines(last())) == {"cordoned"}


def test_what_is_made_is_told(browse):
    browse("operator").post("/services/property-service/preload", {"count": "1"})
    one = last()
    assert (one.act, one.subject) == ("service-preload", "物业客服")
    assert lines(one)["act"] == (None, Order.objects.latest("id").act)


def test_no_secret_is_in_it(browse):
    officer, member = browse("account_officer"), rows.person("tenant_member")
    officer.post(f"/members/{member.pk}/password")
    assert lines(last())["password"] == ("***", "***")
    browse("tenant_admin").post("/keys/new", {"name": "工单", "days": "30", "services": ["property-service"]})
    key = ApiKey.objects.get(name="工单")
    assert lines(last())["digest"] == (None, "***")
    said = " ".join(str(one.changes) for one in Entry.objects.all())
    assert key.digest not in said
    assert User.objects.get(pk=member.pk).password not in said


def test_coming_going_and_failing_are_told(farm):
    user, client = rows.person("auditor"), Client()
    user.set_password("a long enough one")
    user.save()
    client.post("/login", {"username": "auditor", "password": "wrong"})
    client.post("/login", {"username": "auditor", "password": "a long enough one"})
    client.post("/logout")
    for _ in range(5):
        client.post("/login", {"username": "nobody", "password": "wrong"})
    told = [(one.act, one.username, one.outcome) for one in Entry.objects.order_by("id")]
    assert told[:3] == [
        ("sign_in_failed", "auditor", "denied"),
        ("signed_in", "auditor", "done"),
        ("signed_out", "auditor", "done"),
    ]
    assert ("locked_out", "nobody", "denied") in told
    assert "wrong" not in str(list(Entry.objects.values()))


def test_a_try_that_is_refused_is_told(browse):
    host = Host.objects.get(name="gpu-01")
    assert browse("tenant_admin").post(f"/hosts/{host.pk}/cordon", {"cordoned": "1"}).status_code == 403
    one = last()
    assert (one.username, one.act, one.outcome, one.changes) == ("tenant_admin", "host-cordon", "denied", [])


def test_reading_and_a_form_with_an_error_leave_nothing(browse):
    client = browse("operator")
    before = Entry.objects.count()
    client.get("/services/property-service")
    assert client.post("/tenants/new", {"name": ""}).status_code == 200
    assert Entry.objects.count() == before


def test_an_act_that_fails_leaves_neither_itself_nor_its_row(browse, monkeypatch):
    from console.people import tenants

    def broken(*args: object, **more: object) -> None:
        raise RuntimeError("after the write")

    monkeypatch.setattr(tenants.messages, "success", broken)
    client = browse("operator")
    client.raise_request_exception = False
    count = Entry.objects.count()
    sent = {"name": "水务公司", "slug": "water", "mark": "水"}
    assert client.post("/tenants/new", sent).status_code == 500
    assert not Tenant.objects.filter(slug="water").exists()
    assert Entry.objects.count() == count


def test_every_button_has_words_and_says_whose_page_it_stands_on(farm):
    """An address with arguments names a row; one that only answers is listed as such."""
    for pattern in patterns():
        name = pattern.name
        if name not in ACTS or name in ONLY_ANSWER:
            continue
        make = ADDRESSES[name].mine
        if make is not None and set(found := make()) != {"kind"}:  # a kind of request is no row
            assert subject(name, found) is not None, name


def test_every_address_that_writes_has_words(browse, monkeypatch):
    """Asked with an empty form by who may do all: what got into the audit is known by its words."""
    client = browse("operator")
    for name, one in ADDRESSES.items():
        if one.post:
            assert name in ACTS or name in ONLY_ANSWER, name
    assert "POST" not in SAFE
    assert client.get("/audit/").status_code == 403


@pytest.fixture
def guarded(db):
    """The triggers of production; other tests do without them, for their tables are emptied between them."""
    unguard(connection)
    guard(connection)
    yield
    unguard(connection)


def test_the_database_itself_keeps_every_row(guarded):
    one = Entry.objects.create(at=timezone.now(), username="x", act="member")
    for change in (lambda: Entry.objects.filter(pk=one.pk).update(username="y"), one.delete):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change()
    assert Entry.objects.get(pk=one.pk).username == "x"


def test_after_the_least_time_a_row_may_go(guarded):
    Entry.objects.create(at=timezone.now() - timedelta(days=181), username="old", act="member")
    Entry.objects.create(at=timezone.now() - timedelta(days=179), username="young", act="member")
    assert Entry.objects.filter(username="old").delete()[0] == 1
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Entry.objects.filter(username="young").delete()


def test_the_page_narrows_and_its_export_holds_the_same(browse, django_assert_num_queries):
    entry = {"at": timezone.now(), "username": "zhou", "full_name": "=周", "role": "operator", "act": "member"}
    changes = [["accounts.User", "王芳", "role", "tenant_member", "=cmd()"], ["accounts.User", "王芳", "n", 1, 2]]
    Entry.objects.create(**entry, subject="王芳", changes=changes)
    Entry.objects.create(**entry | {"username": "li", "full_name": "李", "act": "host-cordon"}, subject="gpu-01")
    client = browse("auditor")
    client.get("/audit/?act=member&q=zhou")  # remembers what it was narrowed by
    with django_assert_num_queries(4):
        page = client.get("/audit/?act=member&q=zhou")
    assert [row.subject for row in page.context["table"].rows] == ["王芳"]
    lines = list(csv.reader(io.StringIO(client.get("/audit/table.csv").content.decode("utf-8-sig"))))
    assert [line[8:] for line in lines[1:]] == [
        ["accounts.User 王芳", "role", "tenant_member", "'=cmd()"],
        ["accounts.User 王芳", "n", "1", "2"],
    ]
    book = load_workbook(io.BytesIO(client.get("/audit/table.xlsx").content))
    cells = [[cell.value for cell in row] for row in book.active.iter_rows()]
    assert [row[11] for row in cells[1:]] == ["'=cmd()", 2]
    assert cells[1][2] == "'=周"
    assert last().act == "audit-xlsx", "who takes the record away is recorded too"
