"""What calls of a company, or with one of its keys, have used: from the ledger of hours, and from booked costs."""

from __future__ import annotations

from datetime import datetime

from django.db.models import F, Q, Sum

from console.money.models import KeyCost
from console.money.months import month_of
from console.usage.models import HourlyCalls


def tokens(tenant: str, key_id: int | None, when: Q) -> int:
    calls = HourlyCalls.objects.filter(when, tenant=tenant)
    calls = calls if key_id is None else calls.filter(key_id=key_id)
    return calls.aggregate(n=Sum(F("prompt_tokens") + F("generated_tokens")))["n"] or 0


def fen(tenant: str, key_id: int | None, now: datetime) -> int:
    """In the month of `now`; an hour and a bit behind, as booking is."""
    costs = KeyCost.objects.filter(month=month_of(now).date(), tenant=tenant)
    costs = costs if key_id is None else costs.filter(key_id=key_id)
    return costs.aggregate(n=Sum("fen"))["n"] or 0
