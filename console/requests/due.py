"""What people should be told about requests: those that wait, and what was granted and ends soon."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from console.requests.models import Entry, Request, State
from console.requests.rights import WAITS
from scheduler.policy import Policy


def waiting_long(rules: Policy, now: datetime) -> QuerySet[Request]:
    """Nobody has decided for long, somebody was reminded, or it is in force already and unreviewed."""
    long = Q(asked_at__lte=now - timedelta(seconds=rules.request_remind_s))
    asked_again = Q(pk__in=Entry.objects.filter(act=Entry.Act.REMINDED).values("request_id"))
    return Request.objects.filter(WAITS).filter(long | asked_again | Q(urgent=True)).select_related("service")


def ending_soon(rules: Policy, now: datetime) -> QuerySet[Request]:
    """In force, and over within the time of which people are told."""
    soon = now + timedelta(seconds=rules.request_expiry_s)
    in_force = Request.objects.filter(state=State.IN_FORCE, until__gt=now, until__lte=soon)
    return in_force.select_related("service")


def numbers(row: Request) -> dict[str, Any]:
    """Of the notice: times in seconds since the epoch; they change only when the request does."""
    return {
        "request": row.pk,
        "kind": row.kind,
        "what": row.subject,
        "asked_at": row.asked_at.timestamp(),
        "until": None if row.until is None else row.until.timestamp(),
        "review_by": row.review_by.timestamp() if row.review_by is not None and row.unreviewed else None,
    }
