"""Which column of a workbook is which: by the names it has in any language of the console."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from console.sheets.cells import Cell, narrow
from console.sheets.kind import Column, Given
from console.sheets.workbook import Row, Unreadable


class Taken(NamedTuple):
    rows: list[Given]
    ignored: list[str]  # heads that are none of the kind's


def in_all_languages(text: Any) -> set[str]:
    """A lazy text folded for comparison, once a language."""
    found = set()
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            found.add(folded(str(text)))
    return found


def folded(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def take(rows: Sequence[Row], columns: Sequence[Column]) -> Taken:
    """Raises Unreadable: a column that is needed is not there, or there twice."""
    names = {title: column.name for column in columns for title in {*in_all_languages(column.title), column.name}}
    heads = [folded(cell.text.rstrip("*")) for cell in rows[0].cells]
    places = {names[head]: place for place, head in enumerate(heads) if head in names}
    known = [head for head in heads if head in names]
    if len(known) != len(places):
        raise Unreadable(_("第一行里有一列出现了两次，删掉一列。"))
    missing = [str(column.title) for column in columns if column.name not in places and not column.optional]
    if missing:
        said = {"missing": _("、").join(missing), "found": _("、").join(c.text for c in rows[0].cells if c.text)}
        raise Unreadable(_("第一行缺列名：%(missing)s。那一行现在是：%(found)s。从模板开始最省事。") % said)
    ignored = [cell.text for cell, head in zip(rows[0].cells, heads, strict=True) if head and head not in names]
    return Taken([_given(row, places, columns) for row in rows[1:]], ignored)


def _given(row: Row, places: dict[str, int], columns: Sequence[Column]) -> Given:
    cells = dict(_cells(row, places, columns))
    return Given(
        row.number,
        {name: cell.text for name, cell in cells.items()},
        {name: cell.wrong for name, cell in cells.items() if cell.wrong},
        {name: cell.note for name, cell in cells.items() if cell.note},
    )


def _cells(row: Row, places: dict[str, int], columns: Sequence[Column]) -> Iterator[tuple[str, Cell]]:
    for column in columns:
        place = places.get(column.name)
        cell = row.cells[place] if place is not None and place < len(row.cells) else Cell("")
        yield column.name, narrow(cell) if column.narrow else cell
