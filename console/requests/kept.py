"""Of a service: until when it is kept, whose word that is, and what is asked and not yet decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from console.catalog.models import Service
from console.requests.models import Request, State

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Kept:
    """`standing`: whose word the exemption in force is, None where nobody wrote it down; `open`: not yet decided."""

    until: datetime | None
    standing: Request | None
    open: Sequence[Request]


def kept(service: Service) -> Kept:
    """One query."""
    until = service.whitelisted_until
    until = until if until is not None and until > timezone.now() else None
    people = ("asked_by", "first_by", "second_by", "refused_by")
    live = Request.objects.filter(service=service, kind="whitelist", state__in=[State.OPEN, State.IN_FORCE])
    known = list(live.select_related(*people)[:SHOWN])
    standing = next((row for row in known if row.state == State.IN_FORCE and row.until == until), None)
    return Kept(until, standing, [row for row in known if row.state == State.OPEN])
