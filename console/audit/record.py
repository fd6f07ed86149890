"""One row of the audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axes.helpers import get_client_ip_address
from django.http import HttpRequest
from django.utils import timezone

from console.accounts.models import User
from console.audit.models import Entry
from console.audit.seen import Line


def record(
    request: HttpRequest | None,
    act: str,
    *,
    user: Any = None,
    username: str = "",
    subject: object = "",
    outcome: Entry.Outcome = Entry.Outcome.DONE,
    changes: Sequence[Line] = (),
) -> Entry:
    """`user`: who did it, else the request's; `username`: as typed, where nobody signed in. The path has no query:
    what was searched for is nobody's business."""
    person = user if user is not None else getattr(request, "user", None)
    known = person if isinstance(person, User) else None
    return Entry.objects.create(
        at=timezone.now(),
        username=(known.username if known else username)[:150],
        full_name=known.full_name if known else "",
        role=known.role if known else "",
        address=get_client_ip_address(request) if request else None,
        act=act,
        subject=str(subject)[:120],
        path=request.path[:200] if request else "",
        outcome=outcome,
        changes=[list(line) for line in changes],
    )
