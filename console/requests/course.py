"""From approved to in force to ended. By itself: called by the control worker every few seconds, and by decisions."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Q

from console.accounts.models import User
from console.journal.models import Change
from console.requests.kind import Stale
from console.requests.kinds import KINDS
from console.requests.models import Ended, Entry, Request, State
from console.requests.steps import No, note, step


def take_effect(row: Request, by: User | None, now: datetime) -> bool:
    """Puts an approved one in force, once. False: it cannot be done any more, which the row then says."""
    with transaction.atomic():
        try:
            with transaction.atomic():
                step(row, {State.APPROVED}, state=State.IN_FORCE, applied_at=now)
                undo = KINDS[row.kind].apply(row, now)
        except Stale as stale:
            row.refresh_from_db()
            step(row, {State.APPROVED}, state=State.FAILED, reason=stale.code)
            note(row, Entry.Act.FAILED, None, now, code=stale.code)
            return False
        step(row, {State.IN_FORCE}, undo=undo)
        note(row, Entry.Act.IN_FORCE, None, now)
        _record(row, by, now, undo.get("before", {}), undo.get("after", {}))
    return True


def finish(row: Request, by: User | None, why: Ended, now: datetime, **fields: object) -> None:
    """Takes back what is in force. Raises No("overtaken")."""
    with transaction.atomic():
        step(row, {State.IN_FORCE}, state=State.ENDED, ended_at=now, ended_by=by, end_why=why, **fields)
        KINDS[row.kind].end(row, now)
        note(row, Entry.Act.ENDED, by, now, why=why.value)
        _record(row, by, now, row.undo.get("after", {}), row.undo.get("before", {}))


def _record(row: Request, by: User | None, now: datetime, before: dict[str, object], after: dict[str, object]) -> None:
    """The audit's row; what happened by itself carries the number of the request."""
    if before == after:
        return
    who = f"#{row.pk}" if by is None else by.full_name or by.username
    Change.objects.create(
        at=now, by=by, by_name=who, subject=row.subject[:80], service=row.service, before=before, after=after
    )


def run(now: datetime) -> int:
    """What is due: begins, ends, unreviewed urgent ones, and requests whose time is over undecided; how many."""
    return sum(_tried(row, now) for row in Request.objects.filter(_due(now)).select_related("service").order_by("pk"))


def _due(now: datetime) -> Q:
    starts = Q(state=State.APPROVED) & (Q(starts_at=None) | Q(starts_at__lte=now))
    over = Q(state__in=[State.IN_FORCE, State.OPEN, State.RETURNED, State.APPROVED], until__lte=now)
    unreviewed = Q(state=State.IN_FORCE, urgent=True, first_by=None, review_by__lte=now)
    return starts | over | unreviewed


def _tried(row: Request, now: datetime) -> bool:
    """Another control, or a person, may be quicker: then there is nothing left to do here."""
    try:
        _do(row, now)
    except No:
        return False
    return True


def _do(row: Request, now: datetime) -> None:
    over = row.until is not None and row.until <= now
    if row.state == State.IN_FORCE:
        finish(row, None, Ended.UNTIL if over else Ended.UNREVIEWED, now)
    elif over:
        with transaction.atomic():
            step(row, {State.OPEN, State.RETURNED, State.APPROVED}, state=State.LAPSED)
            note(row, Entry.Act.LAPSED, None, now)
    else:
        take_effect(row, None, now)
