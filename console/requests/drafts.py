"""What somebody typed into a request's form and did not send: kept for that person, and given back on return."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import QueryDict

from console.accounts.models import User
from console.requests.models import Draft

MOST_CHARS = 20_000  # of all that was typed: the longest form has a tenth
NEVER = frozenset({"csrfmiddlewaretoken", "version", "urgent", "discard", "then", "opened"})


def keep(person: User, kind: str, fields: set[str], posted: QueryDict, now: datetime) -> Draft | None:
    """The draft as it is now; None where there is nothing to keep, more than a form ever has, or the page is late.

    A page saves while it is being sent: what arrives after it was sent must not become a draft again. So each page says
    when it was opened, and a draft that was closed since takes nothing from it.
    """
    typed = {name: posted.getlist(name) for name in fields - NEVER if any(posted.getlist(name))}
    if not typed or sum(len(one) for values in typed.values() for one in values) > MOST_CHARS:
        return None
    known = Draft.objects.filter(person=person, kind=kind).first()
    if known is not None and known.closed_at is not None and known.closed_at.timestamp() >= _opened(posted):
        return None
    values = {"fields": typed, "saved_at": now, "closed_at": None}
    return Draft.objects.update_or_create(person=person, kind=kind, defaults=values)[0]


def _opened(posted: QueryDict) -> float:
    """Seconds since the epoch; 0: the page does not say."""
    try:
        return float(posted.get("opened", ""))
    except ValueError:
        return 0.0


def of(person: User, kind: str) -> Draft | None:
    return Draft.objects.filter(person=person, kind=kind, closed_at=None).first()


def data(draft: Draft) -> QueryDict:
    """As a browser would send it."""
    found = QueryDict(mutable=True)
    for name, values in draft.fields.items():
        found.setlist(name, values)
    return found


def close(person: User, kind: str, now: datetime) -> None:
    """It was sent, or thrown away."""
    values = {"fields": {}, "saved_at": now, "closed_at": now}
    Draft.objects.update_or_create(person=person, kind=kind, defaults=values)


def old(now: datetime) -> QuerySet[Draft, Any]:
    """Those nobody came back to."""
    return Draft.objects.filter(saved_at__lt=now - timedelta(days=settings.DRAFT_DAYS))
