"""A workbook somebody sent: bytes → rows of cells, or why it cannot be read.

It comes from outside: sizes are looked at before anything is unpacked, no part may bring XML
definitions of its own, pictures and macros are never opened, formulas give the value they had when it was saved.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse
from django.utils.translation import gettext as _
from openpyxl import load_workbook

from console.sheets.cells import Cell, read

FILE_BYTES = 2 * 1024 * 1024
#: Of all XML in it. A workbook of 500 rows unpacks to 0.2 MiB, its styles may be a few times that.
UNPACKED_BYTES = 16 * 1024 * 1024
PARTS = 500
COLUMNS = 40
OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # .xls, and a workbook with a password
MACROS = "vbaProject.bin"


class Unreadable(Exception):
    """`args[0]`: what is wrong with the file and what to do, in the reader's language."""


class Row(NamedTuple):
    number: int  # as the spreadsheet counts
    cells: list[Cell]


def rows(body: bytes, most: int) -> list[Row]:
    """Rows of the first sheet that say anything, the head first; at most `most` beside it. Raises Unreadable."""
    _look(body)
    try:
        _plain(body)
        book = load_workbook(io.BytesIO(body), read_only=True, data_only=True, keep_links=False)
        sheet = book.worksheets[0]
        merged = _merged(body, sheet)
        found = list(_filled(sheet, most))
    except Unreadable:
        raise
    except DefusedXmlException:
        raise Unreadable(_("文件里有不该有的 XML 定义，没有读。请用表格软件另存为 .xlsx 再上传。")) from None
    except Exception as why:  # openpyxl raises whatever a broken file makes it stumble over
        raise Unreadable(_("文件损坏，读不出来。用表格软件打开，另存为 .xlsx 再上传。")) from why
    if merged:
        raise Unreadable(_("第一张表有合并的单元格（%(where)s）。取消合并，每行都填上，再上传。") % {"where": merged})
    if len(found) < 2:
        raise Unreadable(_("第一张表里没有内容：第一行是列名，从第二行起一人或一家一行。"))
    return found


def _look(body: bytes) -> None:
    """What can be known without opening a part of it."""
    if not body:
        raise Unreadable(_("文件是空的。"))
    if len(body) > FILE_BYTES:
        raise Unreadable(_("文件超过 %(n)d MiB。去掉图片和多余的表，或分几次上传。") % {"n": FILE_BYTES >> 20})
    if body.startswith(OLD):
        raise Unreadable(_("这是旧格式 .xls，或加了打开密码。另存为不加密的 .xlsx 再上传。"))
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as packed:
            parts = packed.infolist()
    except (zipfile.BadZipFile, ValueError, OSError):
        raise Unreadable(_("这不是 XLSX 工作簿。用表格软件打开，另存为 .xlsx 再上传。")) from None
    names = {part.filename for part in parts}
    if any(name.endswith(MACROS) for name in names):
        raise Unreadable(_("文件带宏，没有打开。另存为不带宏的 .xlsx 再上传。"))
    if "xl/workbook.xml" not in names and "[Content_Types].xml" not in names:
        raise Unreadable(_("这不是 XLSX 工作簿。用表格软件打开，另存为 .xlsx 再上传。"))
    written = sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels")))
    if len(parts) > PARTS or written > UNPACKED_BYTES:
        raise Unreadable(_("文件解开后太大，没有打开。把要导入的行复制到一个新的工作簿再上传。"))


def _plain(body: bytes) -> None:
    """No part defines anything of its own: openpyxl streams sheets and texts past defusedxml. Raises its errors."""
    with zipfile.ZipFile(io.BytesIO(body)) as packed:
        for name in packed.namelist():
            if name.endswith((".xml", ".rels")):
                with packed.open(name) as part:
                    next(iter(iterparse(part, events=("start",), forbid_dtd=True)), None)


def _merged(body: bytes, sheet: Any) -> str:
    """The first merged range of the sheet; empty: none. A sheet that is only read does not tell."""
    with zipfile.ZipFile(io.BytesIO(body)) as packed:
        part = packed.read(sheet._worksheet_path)
    _before, found, after = part.partition(b'mergeCell ref="')
    return after[:20].partition(b'"')[0].decode("ascii", "replace") if found else ""


def _filled(sheet: Any, most: int) -> Iterator[Row]:
    sheet.reset_dimensions()  # what a file says of its own size is not believed
    count = 0
    for number, cells in enumerate(sheet.iter_rows(), 1):
        found = _cells(cells[:COLUMNS])
        if not any(cell.text for cell in found):
            continue
        count += 1
        if count > most + 1:
            raise Unreadable(_("超过 %(n)d 行。分几次上传。") % {"n": most})
        yield Row(number, found)


def _cells(cells: Sequence[Any]) -> list[Cell]:
    return [read(cell.value, getattr(cell, "data_type", "") == "e") for cell in cells]
