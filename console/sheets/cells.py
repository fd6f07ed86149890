"""One cell of somebody's workbook as the text they meant, and what was tidied on the way."""

from __future__ import annotations

import math
import unicodedata
from datetime import date, time
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from console.exports import FORMULA, UNPRINTABLE

#: Seen by nobody, and in the way of every comparison: zero-width marks, a byte order mark.
INVISIBLE = UNPRINTABLE | dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0xAD))


class Cell(NamedTuple):
    """`wrong`: what to do, empty if it can be read; `note`: what was read instead of what stands there."""

    text: str
    wrong: str = ""
    note: str = ""


def read(value: Any, error: bool = False) -> Cell:
    """`value` as openpyxl gives it; `error`: the cell shows one, like #N/A."""
    if value is None:
        return Cell("")
    if error:
        return Cell(str(value), wrong=_("这一格是公式的错误值，改成文字。"))
    if isinstance(value, bool | date | time):
        return Cell(str(value), wrong=_("这一格是日期或逻辑值，设成文本再填。"))
    if isinstance(value, int | float):
        return _number(value)
    return _text(str(value))


def _number(value: int | float) -> Cell:
    """A column of accounts that are digits is a column of numbers to a spreadsheet."""
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer() and abs(value) < 1e15):
        return Cell(str(value), wrong=_("这一格是带小数或过大的数，设成文本再填。"))
    text = str(int(value))
    return Cell(text, note=_("数字按“%(text)s”读；前面的 0 会丢，要有就设成文本。") % {"text": text})


def _text(value: str) -> Cell:
    """Spaces around and line ends within go; the apostrophe with which our own exports stop formulas goes too."""
    text = " ".join(value.translate(INVISIBLE).split())
    if text.startswith("'") and text[1:].startswith(FORMULA):
        return Cell(text[1:])
    return Cell(text, note="" if text == value else _("去掉了多余的空格或换行。"))


def narrow(cell: Cell) -> Cell:
    """For names that machines compare: full-width letters and digits as the half-width ones that were meant."""
    text = unicodedata.normalize("NFKC", cell.text)
    if text == cell.text:
        return cell
    return cell._replace(text=text, note=_("全角字符按“%(text)s”读。") % {"text": text})
