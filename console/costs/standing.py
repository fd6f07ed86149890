"""How card budgets stand, as printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_lazy

from console import state
from console.accounts.access import own
from console.accounts.models import User
from console.money.models import CardBudget
from console.money.months import month_of
from scheduler.budget import Standing, standing
from scheduler.policy import Policy
from scheduler.world import Budget

WORDS: dict[Standing, tuple[Any, str]] = {
    Standing.FINE: (gettext_lazy("正常"), "ok"),
    Standing.WARNED: (gettext_lazy("预警"), "warn"),
    Standing.SPENT: (gettext_lazy("已用完，正在收缩"), "bad"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One card budget as printed."""

    row: CardBudget
    spent_fen: int
    forecast_fen: int | None
    pct: int
    word: str
    tone: str

    @property
    def bar(self) -> int:
        """`pct` as long as it can be drawn."""
        return min(100, self.pct)

    @property
    def over_fen(self) -> int:
        return max(0, self.spent_fen - self.row.limit_fen)


def lines(user: User) -> list[Line]:
    """Of what the person may see."""
    rules = state.policy()
    return [line(row, rules) for row in own(CardBudget.objects.select_related("tenant", "service"), user)]


def line(row: CardBudget, rules: Policy) -> Line:
    """Figures of a month that is over count no more."""
    fresh = row.month == month_of(timezone.now()).date()
    spent, foreseen = (row.spent_fen, row.forecast_fen) if fresh else (0, None)
    word, tone = WORDS[standing(Budget("", row.limit_fen, spent, foreseen), rules)]
    return Line(row, spent, foreseen, spent * 100 // row.limit_fen if row.limit_fen else 100, str(word), tone)
