"""The workbook to begin from: heads, boxes to choose from, a sheet that explains, and the rows of now if wanted."""

from __future__ import annotations

import io
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from openpyxl import Workbook
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation

from console.exports import XLSX, attached, safe
from console.sheets.kind import Sheet

WIDTH = 22
TEXT = "@"


def workbook(sheet: Sheet, filled: bool) -> HttpResponse:
    """`filled`: with the rows of now."""
    book = Workbook()
    main = book.active
    main.title = _("填写")
    main.append([str(column.title) for column in sheet.columns])
    for row in sheet.current() if filled else ():
        main.append([safe(text) for text in row])
    main.freeze_panes = "A2"
    _shape(main, sheet)
    _explain(book.create_sheet(_("说明")), sheet)
    _choose(book.create_sheet(_("可选的值")), main, sheet)
    out = io.BytesIO()
    book.save(out)
    return attached(out.getvalue(), XLSX, f"{sheet.name}.xlsx")


def _shape(main: Any, sheet: Sheet) -> None:
    """Text: an account of digits keeps its zeros. A column's format is that of its cells that are not there yet."""
    for place in range(1, len(sheet.columns) + 1):
        letter = get_column_letter(place)
        main.column_dimensions[letter].width = WIDTH
        main.column_dimensions[letter].number_format = TEXT
        main.cell(1, place).font = Font(bold=True)
        for row in range(2, main.max_row + 1):
            main.cell(row, place).number_format = TEXT


def _explain(page: Any, sheet: Sheet) -> None:
    page.append([_("列"), _("必填"), _("填什么")])
    for column in sheet.columns:
        page.append([str(column.title), "" if column.optional else _("是"), str(column.about)])
    page.append([])
    page.append([_("一次最多 %(n)d 行；上传后先看到每行会怎样，确认前什么也不写。") % {"n": sheet.most}])
    for letter, width in zip("ABC", (WIDTH, 8, 80), strict=True):
        page.column_dimensions[letter].width = width


def _choose(page: Any, main: Any, sheet: Sheet) -> None:
    for place, column in enumerate(sheet.columns, 1):
        values = sheet.choices(column.name)
        if not values:
            continue
        letter = get_column_letter(place)
        for row, value in enumerate([str(column.title), *values], 1):
            page.cell(row, place, safe(value))
        where = f"'{page.title}'!${letter}$2:${letter}${len(values) + 1}"
        box = DataValidation("list", formula1=where, allow_blank=True)
        main.add_data_validation(box)
        box.add(f"{letter}2:{letter}{sheet.most + 1}")
