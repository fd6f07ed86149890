"""What people changed of a service lately, as printed: field, before, after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.catalog.models import Service
from console.filters import PROFILES, TIERS
from console.journal.models import Change
from console.services.edit import LABELS
from console.services.shapes import card_class
from console.workdays import said

SHOWN = 5
#: What is not on the form of a service, and changes by request.
BY_REQUEST: dict[str, Any] = {
    "whitelisted_until": gettext_lazy("保留到"),
    "card_budget_fen": gettext_lazy("每月卡预算，分"),
}


@dataclass(frozen=True, slots=True)
class Edited:
    at: datetime
    who: str
    lines: Sequence[tuple[str, str, str]]  # what, before, after


def changes(service: Service) -> list[Edited]:
    """One query."""
    rows = Change.objects.filter(service=service)[:SHOWN]
    return [Edited(row.at, row.by_name, [_said(row, name) for name in row.after]) for row in rows]


def _said(row: Change, name: str) -> tuple[str, str, str]:
    return str((LABELS | BY_REQUEST).get(name, name)), word(name, row.before.get(name)), word(name, row.after[name])


def word(name: str, value: Any) -> str:
    """A value of a field as people say it."""
    known: dict[str, Any] = {
        "tier": TIERS,
        "profile": PROFILES,
        "audience": dict(Service.Audience.choices),
        "waiter": dict(Service.Waiter.choices),
        "p99_metric": dict(Service.Metric.choices),
    }
    if value is None or value in ("", []):
        return "—"
    if isinstance(value, bool):
        return _("是") if value else _("否")
    if name in ("resident_hours", "batch_hours"):
        return said(value)
    if isinstance(value, list):
        return _("、").join(card_class(one) if name == "card_classes" else one for one in value)
    if isinstance(value, int):
        return f"{value:,}"
    return str(known.get(name, {}).get(value, value))
