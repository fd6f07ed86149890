"""Budgets against what is booked and counted: card budgets after each booked hour, call budgets every few seconds."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Min, Q, Sum
from django.utils import timezone

from console.costs import used
from console.journal.models import Decision
from console.money.models import CallBudget, CardBudget, CardHour, CostDay
from console.money.months import local, month_of, next_month
from scheduler.budget import Standing, forecast_fen, standing
from scheduler.call_budget import Unit
from scheduler.cost import HOUR_S
from scheduler.policy import Policy
from scheduler.world import Budget

#: Verb of what is said of a budget in the journal; its reason is the standing. No act on a replica.
VERB = "budget"


def run(now: datetime, rules: Policy) -> None:
    """All card budgets of the month in which the last hour was booked."""
    rows = list(CardBudget.objects.select_related("tenant", "service"))
    last = CardHour.objects.exclude(booked_at=None).order_by("-hour").values_list("hour", flat=True).first()
    if not rows or last is None:
        return
    as_of = last + timedelta(seconds=HOUR_S)
    for row in rows:
        if row.as_of != as_of or row.month != month_of(last).date():
            _card(row, as_of, last, rules, now)


def _card(row: CardBudget, as_of: datetime, last: datetime, rules: Policy, now: datetime) -> None:
    month = month_of(last)
    mine = _mine(row)
    spent = _sum(mine, month, as_of)
    since = max(_midnight(last - timedelta(hours=rules.budget_forecast_h - 1)), _first_booked())
    recent_h = int((as_of - since).total_seconds() // HOUR_S)
    left_h = int((next_month(last) - as_of).total_seconds() // HOUR_S)
    foreseen = forecast_fen(spent, _sum(mine, since, as_of), recent_h, left_h)
    told = row.told if row.month == month.date() else ""
    CardBudget.objects.filter(pk=row.pk).update(
        month=month.date(), spent_fen=spent, forecast_fen=foreseen, as_of=as_of, told=told
    )
    _tell(row, Budget(row.tenant.slug, row.limit_fen, spent, foreseen), told, rules, now)


def _mine(row: CardBudget) -> Q:
    """A service's whole cost, whoever called it; a tenant's is what it pays."""
    return Q(service=row.service.name) if row.service else Q(tenant=row.tenant.slug)


def _sum(mine: Q, since: datetime, until: datetime) -> int:
    first, last = local(since).date(), local(until - timedelta(seconds=1)).date()
    return CostDay.objects.filter(mine, day__gte=first, day__lte=last).aggregate(fen=Sum("fen"))["fen"] or 0


def _midnight(moment: datetime) -> datetime:
    return local(moment).replace(hour=0, minute=0, second=0, microsecond=0)


def _first_booked() -> datetime:
    first = CardHour.objects.exclude(booked_at=None).aggregate(first=Min("hour"))["first"]
    return first if first is not None else timezone.now()


def _tell(row: CardBudget, budget: Budget, told: str, rules: Policy, now: datetime) -> None:
    """Once a month for each standing, in the journal; the row says who was told, whoever runs this twice."""
    stands = standing(budget, rules)
    if stands is Standing.FINE or told in (stands, Standing.SPENT):
        return
    if not CardBudget.objects.filter(pk=row.pk, told=told).update(told=stands.value):
        return
    numbers = {
        "tenant": row.tenant.slug,
        "tenant_name": row.tenant.name,
        "limit_fen": budget.limit_fen,
        "spent_fen": budget.spent_fen,
        "spent_pct": budget.spent_fen * 100 // budget.limit_fen if budget.limit_fen else 100,
    }
    if budget.forecast_fen is not None:
        numbers["forecast_fen"] = budget.forecast_fen
    Decision.objects.create(at=now, verb=VERB, reason=stands.value, service=row.service, numbers=numbers)


def count_calls(now: datetime | None = None) -> int:
    """Counts call budgets anew from the ledger of hours; how many there are. Without any, one small query."""
    now = now or timezone.now()
    rows = list(CallBudget.objects.select_related("tenant"))
    for row in rows:
        known = (row.used, row.counted, row.counted_until, row.resets_at)
        _count(row, now)
        if known != (row.used, row.counted, row.counted_until, row.resets_at):
            row.save(update_fields=["used", "counted", "counted_until", "resets_at"])
    return len(rows)


def _count(row: CallBudget, now: datetime) -> None:
    """Of this month of site time. Whole hours are counted once an hour, anew: records may come late.

    Fen come from booked hours, so they are an hour and a bit behind.
    """
    month = month_of(now)
    row.resets_at = next_month(now)
    if row.unit == Unit.FEN:
        row.used = used.fen(row.tenant.slug, row.key_id, now)
        return
    until = max(month, now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=1))
    of = row.tenant.slug, row.key_id
    if row.counted_until != until:
        row.counted_until, row.counted = until, used.tokens(*of, Q(hour__gte=month, hour__lt=until))
    row.used = row.counted + used.tokens(*of, Q(hour__gte=until))
