"""Tables as files for spreadsheets: CSV and XLSX, safe to open."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from django.http import HttpResponse
from openpyxl import Workbook

#: A cell that begins so is a formula to a spreadsheet.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: What cannot be in a cell of a workbook at all: control characters besides tab and line ends.
UNPRINTABLE = dict.fromkeys([*range(9), 11, 12, *range(14, 32)])
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

Rows = Iterable[Sequence[object]]


def safe(cell: object) -> object:
    """A text that would be taken for a formula stays a text; numbers stay numbers."""
    if not isinstance(cell, str):
        return cell
    clean = cell.translate(UNPRINTABLE)
    return "'" + clean if clean.startswith(FORMULA) else clean


def as_csv(rows: Rows, name: str) -> HttpResponse:
    """`rows`: the head first. A byte order mark lets spreadsheets read Chinese."""
    out = io.StringIO()
    csv.writer(out).writerows([safe(cell) for cell in row] for row in rows)
    return attached("\ufeff" + out.getvalue(), "text/csv; charset=utf-8", f"{name}.csv")


def as_xlsx(rows: Rows, name: str) -> HttpResponse:
    return attached(book_of(rows), XLSX, f"{name}.xlsx")


def book_of(rows: Rows) -> bytes:
    """A workbook of one sheet; `rows`: the head first."""
    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.freeze_panes = "A2"
    for row in rows:
        sheet.append([safe(cell) for cell in row])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def attached(body: str | bytes, kind: str, name: str) -> HttpResponse:
    response = HttpResponse(body, content_type=kind)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
