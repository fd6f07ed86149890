"""The advisor's word on the page of a service: three ways, two prices each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy

from console.catalog.models import Service
from console.money.models import Residency
from scheduler.advisor import Mode

MODES: Mapping[Mode, Any] = {
    Mode.RESIDENT: gettext_lazy("常驻"),
    Mode.WARM: gettext_lazy("闲时休眠"),
    Mode.ON_DEMAND: gettext_lazy("按需装载"),
}
#: Rules that decide before the sums do: names of `scheduler.kept.QUESTIONS`.
WHY: Mapping[str, Any] = {
    "minimum": gettext_lazy("它要求最少实例数，总有一个醒着。"),
    "hot": gettext_lazy("它在高频档，闲着也不收回。"),
    "whitelisted": gettext_lazy("它在白名单里。"),
    "first_token": gettext_lazy("它要求首 token 在 1 秒以内。"),
    "small": gettext_lazy("模型很小，收回省不了多少。"),
    "resident": gettext_lazy("它在常驻资源池。"),
    "resident_hours": gettext_lazy("现在是它的常驻时段。"),
    "alone": gettext_lazy("资源池里只有它一个业务。"),
}


@dataclass(frozen=True, slots=True)
class Way:
    """Two prices an hour, apart: waiting (seconds, and fen they are worth) and holding what others want."""

    label: str
    waiting_s: float
    waiting_fen: float
    holding_fen: float
    advised: bool

    @property
    def fen(self) -> float:
        return self.waiting_fen + self.holding_fen


@dataclass(frozen=True, slots=True)
class Word:
    """What the advisor says, why, and what it rests on (`numbers` of the row)."""

    mode: str
    why: str
    ways: list[Way]
    numbers: Mapping[str, Any]
    at: datetime


def word(service: Service) -> Word | None:
    """One query; None: not worked out yet, or there is no card it could live on."""
    row = Residency.objects.filter(service=service).first()
    if row is None:
        return None
    ways = [
        Way(str(MODES[mode]), **row.numbers["ways"][mode], advised=row.mode == mode)
        for mode in Mode
        if mode in row.numbers["ways"]
    ]
    return Word(str(MODES[Mode(row.mode)]), str(WHY.get(row.why, "")), ways, row.numbers, row.at)
