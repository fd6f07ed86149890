"""Asking: a valid form becomes a request, or changes the one that was returned."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from console.accounts.access import Act, may
from console.accounts.models import User
from console.requests.course import take_effect
from console.requests.kind import AskForm, Kind
from console.requests.models import Entry, Request, State
from console.requests.steps import No, note, step
from scheduler.policy import Policy


def may_hurry(kind: Kind, person: User) -> bool:
    """Break-glass is the operators', and only for what can be taken back."""
    return kind.takes_back and may(person, Act.ORDER)


def file(kind: Kind, form: AskForm, by: User, rules: Policy, now: datetime, *, urgent: bool = False) -> Request:
    """A request; an urgent one is in force at once and waits for its review. Raises No."""
    if urgent and not may_hurry(kind, by):
        raise No("not_urgent")
    with transaction.atomic():
        row = Request(kind=kind.key, asked_by=by, asked_at=now, **_asked(kind, form))
        row.steps = kind.steps(row, rules)
        row.save()
        note(row, Entry.Act.ASKED, by, now, row.why)
        if urgent:
            review_by = now + timedelta(seconds=rules.urgent_review_s)
            weighed = kind.consequences(row, now.timestamp())
            step(
                row, {State.OPEN}, state=State.APPROVED, urgent=True, steps=1, review_by=review_by, consequences=weighed
            )
            note(row, Entry.Act.URGENT, by, now)
            if not take_effect(row, by, now):
                raise No(row.reason)
    return row


def change(row: Request, kind: Kind, form: AskForm, by: User, rules: Policy, now: datetime) -> None:
    """What was returned, asked anew: all who agreed before are asked again. Raises No."""
    if row.asked_by_id != by.pk:
        raise No("not_the_asker")
    with transaction.atomic():
        fields = _asked(kind, form)
        steps = kind.steps(Request(kind=kind.key, asked_by=by, asked_at=row.asked_at, **fields), rules)
        nobody = {"first_by": None, "first_at": None, "second_by": None, "second_at": None, "consequences": None}
        step(row, {State.RETURNED}, state=State.OPEN, steps=steps, reason="", conditions="", **nobody, **fields)
        note(row, Entry.Act.CHANGED, by, now, row.why)


def _asked(kind: Kind, form: AskForm) -> dict[str, Any]:
    filed, given = kind.filed(form), form.cleaned_data
    return {
        "tenant": filed.tenant,
        "service": filed.service,
        "subject": filed.subject[:120],
        "wanted": dict(filed.wanted),
        "starts_at": given.get("starts_at"),
        "until": given.get("until"),
        "why": given["why"],
    }
