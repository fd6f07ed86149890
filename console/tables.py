"""Lists that sort, filter, search, page and remember: one small class, three partials, no JavaScript of their own.

    KEYS = Table(
        name="keys",
        row="people/_key_row.html",          # draws one <tr>; the row is called `row`
        columns=(Column("name", _("名称"), ("name",)), Column("used", _("最近使用"), ("last_used_at",), numeric=True)),
        filters=(Choice("state", _("状态"), states, {"live": Q(revoked_at=None)}),),
        search=("name", "prefix"),           # looked for by the box, any of them
        start="name",                        # or "-name"
        empty=(_("还没有密钥"), _("…what to do…")),
    )
    render(request, "people/keys.html", {"table": KEYS.of(request, own(ApiKey.objects.all(), request.user))})

and in the template `{% include "tables/_table.html" %}`. Two queries: the count and one page of rows. Rows that are
no QuerySet (worked out in Python) go through the same class: then `Column.sort` and `search` name attributes, and the
values of `Choice.picks` are functions of a row. What is in the address wins and is remembered in the person's session
under the table's name; an address without any of it brings back what was remembered, `?clear=1` forgets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest

PAGE_ROWS = 50
SESSION = "tables"
LONGEST_SEARCH = 80

Rows = QuerySet[Any] | Sequence[Any]


@dataclass(frozen=True, slots=True)
class Column:
    """`sort`: fields (attributes of Python rows) that order it, none: it cannot be sorted by."""

    key: str
    label: Any
    sort: tuple[str, ...] = ()
    numeric: bool = False
    hint: Any = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """A select box. `picks`: value in the address → (label, Q or function of a row), or what makes that mapping."""

    key: str
    label: Any
    picks: Mapping[str, tuple[Any, Any]] | Callable[[], Mapping[str, tuple[Any, Any]]]

    def known(self) -> Mapping[str, tuple[Any, Any]]:
        return self.picks() if callable(self.picks) else self.picks


@dataclass(frozen=True, slots=True)
class Head:
    """One heading as drawn: where a click leads, and which way it is sorted now."""

    column: Column
    url: str
    direction: str


@dataclass(frozen=True, slots=True)
class Box:
    """One select box as drawn."""

    key: str
    label: Any
    options: list[tuple[str, Any]]
    chosen: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What the partials draw."""

    table: Table
    page: Page[Any]
    heads: list[Head]
    boxes: list[Box]
    query: str
    order: str
    narrowed: bool
    after: str = ""
    before: str = ""

    @property
    def rows(self) -> Sequence[Any]:
        return list(self.page.object_list)

    @property
    def found(self) -> int:
        return self.page.paginator.count


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    row: str
    columns: tuple[Column, ...]
    start: str
    filters: tuple[Choice, ...] = ()
    search: tuple[str, ...] = ()
    search_hint: Any = ""
    empty: tuple[Any, Any] = ("", "")
    page_rows: int = PAGE_ROWS

    def of(self, request: HttpRequest, rows: Rows) -> Shown:
        """Narrow, sort and cut `rows` as the address (else the session) says. Unknown values are left out."""
        state = self._state(request)
        boxes, rows = self._boxes(state, rows)
        query = state.get("q", "")
        if query and self.search:
            rows = self._searched(rows, query)
        order = self._order(state)
        page = Paginator(self._sorted(rows, order), self.page_rows).get_page(request.GET.get("page"))
        kept = {key: value for key, value in state.items() if key != "sort"} | ({"sort": order} if order else {})
        narrowed = bool(query) or any(box.chosen for box in boxes)
        return Shown(
            self,
            page,
            [self._head(column, order, kept) for column in self.columns],
            boxes,
            query,
            order,
            narrowed,
            after=_address(kept, page=str(page.next_page_number())) if page.has_next() else "",
            before=_address(kept, page=str(page.previous_page_number())) if page.has_previous() else "",
        )

    def all(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Every row that `of` would page through: what an export of the page holds."""
        state = self._state(request)
        _, found = self._boxes(state, rows)
        query = state.get("q", "")
        if query and self.search:
            found = self._searched(found, query)
        return self._sorted(found, self._order(state))  # type: ignore[return-value]

    def _state(self, request: HttpRequest) -> dict[str, str]:
        """Remembered only when it changed: reading a list is no write."""
        keys = ("q", "sort", *(choice.key for choice in self.filters))
        given = {key: request.GET[key].strip()[:LONGEST_SEARCH] for key in keys if key in request.GET}
        remembered: dict[str, dict[str, str]] = request.session.get(SESSION, {})
        mine = remembered.get(self.name, {})
        if "clear" in request.GET:
            given = {}
        elif not given:
            return dict(mine)
        given = {key: value for key, value in given.items() if value and not (key == "sort" and value == self.start)}
        if given != mine:
            request.session[SESSION] = remembered | {self.name: given}
        return given

    def _boxes(self, state: dict[str, str], rows: Rows) -> tuple[list[Box], Rows]:
        boxes = []
        for choice in self.filters:
            known = choice.known()
            chosen = state.get(choice.key, "")
            if chosen in known:
                pick = known[chosen][1]
                rows = rows.filter(pick) if isinstance(rows, QuerySet) else [row for row in rows if pick(row)]
            else:
                chosen = ""
            boxes.append(Box(choice.key, choice.label, [(key, label) for key, (label, _) in known.items()], chosen))
        return boxes, rows

    def _searched(self, rows: Rows, query: str) -> Rows:
        if isinstance(rows, QuerySet):
            wanted = Q()
            for name in self.search:
                wanted |= Q(**{f"{name}__icontains": query})
            return rows.filter(wanted)
        low = query.casefold()
        return [row for row in rows if any(low in str(_value(row, name)).casefold() for name in self.search)]

    def _order(self, state: dict[str, str]) -> str:
        order = state.get("sort", self.start)
        sortable = {column.key for column in self.columns if column.sort}
        return order if order.removeprefix("-") in sortable else self.start

    def _sorted(self, rows: Rows, order: str) -> Rows:
        """Unknown values last, whichever way: nobody sorts to see what is not known."""
        down = order.startswith("-")
        fields = next((c.sort for c in self.columns if c.key == order.removeprefix("-")), ())
        if isinstance(rows, QuerySet):
            ordered = [F(f).desc(nulls_last=True) if down else F(f).asc(nulls_last=True) for f in fields]
            return rows.order_by(*ordered, "-pk" if down else "pk")
        keyed = [([_value(row, name) for name in fields], row) for row in rows]
        known = [pair for pair in keyed if None not in pair[0]]
        unknown = [row for key, row in keyed if None in key]
        return [row for _, row in sorted(known, key=itemgetter(0), reverse=down)] + unknown

    def _head(self, column: Column, order: str, kept: Mapping[str, str]) -> Head:
        if not column.sort:
            return Head(column, "", "")
        direction = {column.key: "ascending", "-" + column.key: "descending"}.get(order, "")
        turned = "-" + column.key if direction == "ascending" else column.key
        return Head(column, _address(kept, sort=turned), direction)


def _address(kept: Mapping[str, str], **changed: str) -> str:
    return "?" + urlencode({**kept, **changed})


def _value(row: Any, path: str) -> Any:
    """`service__tenant__name`, as the ORM writes it, of a row in memory."""
    for name in path.split("__"):
        row = getattr(row, name, None)
    return row


def picks(pairs: Iterable[tuple[Any, Any]], path: str) -> dict[str, tuple[Any, Any]]:
    """Choices of one column: (value, label) pairs → what `Choice` takes."""
    return {str(value): (label, Q(**{path: value})) for value, label in pairs}
