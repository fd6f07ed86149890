"""Requests tick: what is due begins and ends, and what waits or ends soon is told in notices."""

from __future__ import annotations

import time

from console import state
from console.journal.models import Notice
from console.requests import course, due
from console.requests.models import Request
from console.state import moment
from workers.control.noticed import Said, sync


def run(now: float | None = None) -> int:
    """How many began or ended."""
    return course.run(moment(time.time() if now is None else now))


def tell(now: float | None = None) -> int:
    """The number of new notices."""
    now = time.time() if now is None else now
    rules = state.policy()
    said = [_said(Notice.Kind.WAITING, row) for row in due.waiting_long(rules, moment(now))]
    said += [_said(Notice.Kind.EXPIRY, row) for row in due.ending_soon(rules, moment(now))]
    return sync((Notice.Kind.WAITING, Notice.Kind.EXPIRY), said, now)


def _said(kind: Notice.Kind, row: Request) -> Said:
    service = row.service.name if row.service is not None else ""
    return Said(kind, f"request {row.pk}", service, numbers=due.numbers(row))
