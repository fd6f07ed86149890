"""Lists: sorted, filtered, cut, remembered; in SQL and in memory alike."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from django.db.models import Q
from django.test import RequestFactory

from console.accounts.models import Tenant
from console.tables import Choice, Column, Table, picks

pytestmark = pytest.mark.django_db


@dataclass
class Thing:
    name: str
    size: int | None
    owner: SimpleNamespace


THINGS = [Thing("b", 2, SimpleNamespace(name="X")), Thing("a", None, SimpleNamespace(name="Y"))]
THINGS.append(Thing("c", 1, SimpleNamespace(name="X")))

MEMORY = Table(
    name="things",
    row="none.html",
    columns=(Column("name", "名称", ("name",)), Column("size", "大小", ("size",), numeric=True), Column("plain", "无")),
    filters=(Choice("owner", "归属", {"x": ("X", lambda row: row.owner.name == "X")}),),
    search=("name", "owner__name"),
    start="name",
)
ROWS = Table(
    name="tenants",
    row="none.html",
    columns=(Column("name", "名称", ("name",)), Column("ordinal", "次序", ("ordinal",))),
    filters=(Choice("odd", "哪些", lambda: {"first": ("前二", Q(ordinal__lte=2))} | picks([("c3", "三")], "slug")),),
    search=("name", "slug"),
    start="ordinal",
    page_rows=2,
)


@pytest.fixture
def ask():
    session: dict = {}

    def asked(query: str = ""):
        request = RequestFactory().get("/list" + query)
        request.session = session
        return request

    asked.session = session
    return asked


@pytest.fixture
def tenants(db):
    for number in range(1, 6):
        Tenant.objects.create(slug=f"c{number}", name=f"公司{9 - number}", mark=str(number), ordinal=number)
    return Tenant.objects.all()


def names(shown):
    return [row.name for row in shown.rows]


def test_rows_in_memory_sort_and_unknown_values_come_last_either_way(ask):
    assert names(MEMORY.of(ask(), THINGS)) == ["a", "b", "c"]
    assert names(MEMORY.of(ask("?sort=size"), THINGS)) == ["c", "b", "a"]
    assert names(MEMORY.of(ask("?sort=-size"), THINGS)) == ["b", "c", "a"]


def test_rows_in_memory_are_filtered_and_searched(ask):
    assert names(MEMORY.of(ask("?owner=x"), THINGS)) == ["b", "c"]
    assert names(MEMORY.of(ask("?q=y"), THINGS)) == ["a"]


def test_the_database_sorts_filters_searches_and_cuts(ask, tenants):
    assert [row.ordinal for row in ROWS.of(ask(), tenants).rows] == [1, 2]
    assert [row.ordinal for row in ROWS.of(ask("?sort=name"), tenants).rows] == [5, 4]
    assert [row.ordinal for row in ROWS.of(ask("?sort=name&page=3"), tenants).rows] == [1]
    assert [row.ordinal for row in ROWS.of(ask("?odd=c3"), tenants).rows] == [3]
    assert [row.ordinal for row in ROWS.of(ask("?q=C4"), tenants).rows] == [4]


def test_it_costs_two_queries_however_many_rows(ask, tenants, django_assert_num_queries):
    with django_assert_num_queries(2):
        list(ROWS.of(ask("?sort=name&odd=first"), tenants).rows)


def test_the_state_is_remembered_until_it_is_cleared(ask, tenants):
    ROWS.of(ask("?odd=first&sort=-name"), tenants)
    again = ROWS.of(ask(), tenants)
    assert (again.order, again.boxes[0].chosen, again.narrowed) == ("-name", "first", True)
    assert MEMORY.of(ask(), THINGS).order == "name"  # each table its own
    assert not ROWS.of(ask("?clear=1"), tenants).narrowed
    assert ask.session["tables"]["tenants"] == {}


def test_looking_again_writes_no_session(ask, tenants):
    ROWS.of(ask("?odd=first"), tenants)
    before = ask.session["tables"]
    ROWS.of(ask("?odd=first"), tenants)
    ROWS.of(ask(), tenants)
    assert ask.session["tables"] is before


@pytest.mark.parametrize("query", ["?sort=password", "?sort=-", "?odd=drop", "?page=999", "?page=x", "?plain=1"])
def test_what_it_does_not_know_is_left_out(ask, tenants, query):
    assert ROWS.of(ask(query), tenants).order == "ordinal"


def test_headings_lead_to_the_other_direction_and_keep_the_filter(ask, tenants):
    shown = ROWS.of(ask("?odd=first"), tenants)
    name, ordinal = shown.heads
    assert (name.url, name.direction) == ("?odd=first&sort=name", "")
    assert (ordinal.url, ordinal.direction) == ("?odd=first&sort=-ordinal", "ascending")
    assert MEMORY.of(ask(), THINGS).heads[2].url == ""


def test_pages_lead_on_with_everything_kept(ask, tenants):
    shown = ROWS.of(ask("?q=c&page=2"), tenants)
    assert (shown.after, shown.before) == ("?q=c&sort=ordinal&page=3", "?q=c&sort=ordinal&page=1")
    assert shown.found == 5
