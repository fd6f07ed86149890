"""Everything else that is done about a request: said, withdrawn, handed over, reminded of, taken back."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from console.accounts.access import Act, may, tenant_of
from console.accounts.models import User
from console.requests.course import finish
from console.requests.models import Ended, Entry, Request, State
from console.requests.rights import deciders_of, why_not
from console.requests.steps import No, note, step


def say(row: Request, by: User, text: str, now: datetime) -> None:
    """A comment: whoever may see it may say something, as long as their role is not only to read."""
    if not (may(by, Act.FILE_REQUESTS) or may(by, Act.DECIDE_REQUESTS)):
        raise No("not_yours")
    if not text.strip():
        raise No("nothing_said")
    note(row, Entry.Act.SAID, by, now, text.strip())


def withdraw(row: Request, by: User, now: datetime) -> None:
    """By who asked, or their company, before it is in force."""
    if not may_withdraw(row, by):
        raise No("not_the_asker")
    with transaction.atomic():
        step(row, {State.OPEN, State.RETURNED, State.APPROVED}, state=State.WITHDRAWN, ended_at=now, ended_by=by)
        note(row, Entry.Act.WITHDRAWN, by, now)


def may_withdraw(row: Request, by: User) -> bool:
    if row.asked_by_id == by.pk:
        return True
    return may(by, Act.FILE_REQUESTS) and row.tenant_id is not None and tenant_of(by) == row.tenant_id


def hand_over(row: Request, by: User, to: User, now: datetime) -> None:
    """To another approver, by one who could decide it."""
    if code := why_not(row, by, now):
        raise No(code)
    if not deciders_of(row).filter(pk=to.pk).exists():
        raise No("not_theirs")
    with transaction.atomic():
        step(row, {State.OPEN, State.IN_FORCE}, handed_to=to)
        note(row, Entry.Act.HANDED, by, now, to=to.full_name or to.username)


def remind(row: Request, by: User, now: datetime) -> None:
    """By who asked: it is put before all approvers again. A request is not changed by it, so nobody's page is stale."""
    if not may_withdraw(row, by):
        raise No("not_the_asker")
    if row.state != State.OPEN:
        raise No("overtaken")
    note(row, Entry.Act.REMINDED, by, now)


def may_take_back(row: Request, by: User) -> bool:
    """Its company, or the centre's operators."""
    return row.state == State.IN_FORCE and (may_withdraw(row, by) or may(by, Act.ORDER))


def take_back(row: Request, by: User, now: datetime) -> None:
    """Ends what is in force before its time."""
    if not may_take_back(row, by):
        raise No("not_the_asker")
    finish(row, by, Ended.REVOKED, now)
