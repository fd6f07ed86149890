"""Values as people type them: `900`, `15m`, `1.5h`, `20 %`, `12,000`; and as pages show them."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

from scheduler.policy import DEFAULT
from scheduler.settable import numbers

TIMES_S = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "秒": 1, "分": 60, "分钟": 60, "小时": 3600, "天": 86400}
FORM = re.compile(r"^(-?\d+(?:\.\d+)?)\s*([^\d\s]*)$")


class Mistyped(ValueError):
    """Said beside the field."""


def read(name: str, text: str) -> float:
    """The number that is meant. Raises Mistyped with what to type instead."""
    about = numbers()[name]
    match = FORM.match(text.strip().replace(",", "").replace("，", ""))
    if match is None:
        raise Mistyped(_("填一个数，例如 %(example)s。") % {"example": shown(name, getattr(DEFAULT, name))})
    value, unit = float(match[1]), match[2].lower()
    if unit:
        value *= _factor(about["unit"], unit)
    if not about["low"] <= value <= about["high"]:
        span = {"low": shown(name, about["low"]), "high": shown(name, about["high"])}
        raise Mistyped(_("要在 %(low)s 到 %(high)s 之间。") % span)
    if isinstance(getattr(DEFAULT, name), int) and value != int(value):
        raise Mistyped(_("要填整数。"))
    return int(value) if value == int(value) else value


def _factor(unit: str, typed: str) -> float:
    if unit == "s" and typed in TIMES_S:
        return TIMES_S[typed]
    if typed in (unit.lower(), "％" if unit == "%" else ""):
        return 1
    raise Mistyped(_("单位不对，去掉它，或用 %(unit)s。") % {"unit": "s, m, h, d" if unit == "s" else unit or "—"})


def shown(name: str, value: float) -> str:
    """With thousands separators, and no more digits than it has."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.10g}"
