"""Rows of budgets to the core's: the part of the seam that is about money."""

from __future__ import annotations

from datetime import datetime

from console.money.models import CallBudget as CallBudgetRow
from console.money.models import CardBudget
from console.money.months import month_of
from console.same_rows import Standing
from scheduler.call_budget import CallBudget, Unit
from scheduler.world import Budget

CARD_BUDGETS = Standing(
    lambda: CardBudget.objects.order_by("pk"),
    "pk", "tenant__slug", "limit_fen", "spent_fen", "forecast_fen", "service__name", "told", "month",
)  # fmt: skip


def card_budgets(now: datetime) -> tuple[Budget, ...]:
    """One query. A budget whose figures are of a month that is over has nothing spent yet."""
    month = month_of(now).date()
    return tuple(
        Budget(tenant, limit, spent, foreseen, service or "", bool(told))
        if of == month
        else Budget(tenant, limit, 0, service=service or "")
        for _, tenant, limit, spent, foreseen, service, told, of in CARD_BUDGETS.all()
    )


def call_budgets() -> list[CallBudget]:
    """Those that are counted. One query."""
    columns = ("tenant__slug", "limit", "used", "resets_at", "unit", "key_id")
    return [
        CallBudget(tenant, limit, used, resets_at.timestamp(), Unit(unit), key)
        for tenant, limit, used, resets_at, unit, key in CallBudgetRow.objects.values_list(*columns)
        if resets_at is not None
    ]
