"""Deciding: approve, reject, return. Whoever comes second, twice, late, or from a script finds nothing to decide."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.core import signing
from django.db import transaction

from console.accounts.models import User
from console.requests.course import finish, take_effect
from console.requests.kinds import KINDS
from console.requests.models import Ended, Entry, Request, State
from console.requests.rights import why_not
from console.requests.steps import No, note, step
from scheduler.policy import Policy

SALT = "request"


class Word(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    RETURN = "return"


@dataclass(frozen=True, slots=True)
class Given:
    """One decision. `weighed`: the consequences the decider saw; `until`: another end than was asked for.

    `text`: conditions of an approval, else the reason. `origin`: where it came from, kept in the record.
    """

    word: Word
    weighed: Mapping[str, Any]
    text: str = ""
    until: datetime | None = None
    origin: Mapping[str, Any] | None = None


def seal(row: Request, weighed: Mapping[str, Any]) -> str:
    """What the page showed, to be handed back with the decision: signed, of this very version of the request."""
    return signing.dumps([row.pk, row.version, weighed], salt=SALT, compress=True)


def unseal(row: Request, text: str, rules: Policy) -> dict[str, Any]:
    """The consequences that were shown; raises No("unseen") where none of this version were, or too long ago.

    The row's version becomes the one that was seen: whatever happened since is found out by the update.
    """
    try:
        pk, version, weighed = signing.loads(text, salt=SALT, max_age=rules.request_seen_s)
    except signing.BadSignature:
        raise No("unseen") from None
    if pk != row.pk:
        raise No("unseen")
    row.version = version
    return dict(weighed)


def decide(row: Request, by: User, given: Given, rules: Policy, now: datetime) -> None:
    """One outcome, however many decide at once. Raises No, with nothing written."""
    if code := why_not(row, by, now):
        raise No(code)
    until = given.until or row.until
    if until is not None and until <= now:
        raise No("past")
    if given.word is not Word.APPROVE and not given.text.strip():
        raise No("no_reason")
    with transaction.atomic():
        if row.unreviewed:
            _review(row, by, given, now)
        elif given.word is Word.APPROVE:
            _approve(row, by, given, until, rules, now)
        else:
            _turn_down(row, by, given, now)


def _approve(row: Request, by: User, given: Given, until: datetime | None, rules: Policy, now: datetime) -> None:
    agreed = copy(row)
    agreed.until = until
    steps = max(row.steps, KINDS[row.kind].steps(agreed, rules))
    fields: dict[str, Any] = {"steps": steps, "until": until, "consequences": dict(given.weighed)}
    if given.text:
        fields["conditions"] = given.text
    first = row.first_by_id is None
    fields |= {"first_by": by, "first_at": now} if first else {"second_by": by, "second_at": now}
    last = steps == 1 or not first
    step(row, {State.OPEN}, state=State.APPROVED if last else State.OPEN, handed_to=None, **fields)
    act = Entry.Act.APPROVED if last else Entry.Act.FIRST
    note(row, act, by, now, given.text, **_about(row, given))
    if last and (row.starts_at is None or row.starts_at <= now):
        take_effect(row, by, now)


def _turn_down(row: Request, by: User, given: Given, now: datetime) -> None:
    fields: dict[str, Any] = {"reason": given.text, "consequences": dict(given.weighed)}
    if given.word is Word.REJECT:
        step(row, {State.OPEN}, state=State.REJECTED, refused_by=by, refused_at=now, **fields)
        note(row, Entry.Act.REJECTED, by, now, given.text, **_about(row, given))
    else:
        step(row, {State.OPEN}, state=State.RETURNED, **fields)
        note(row, Entry.Act.RETURNED, by, now, given.text, **_about(row, given))


def _review(row: Request, by: User, given: Given, now: datetime) -> None:
    """Of what is in force already: agreed to, or ended."""
    if given.word is Word.RETURN:
        raise No("not_returned")
    if given.word is Word.REJECT:
        note(row, Entry.Act.REJECTED, by, now, given.text, **_about(row, given))
        finish(row, by, Ended.REFUSED, now, refused_by=by, refused_at=now, reason=given.text)
        return
    until = given.until or row.until
    if until != row.until:
        raise No("not_another_end")
    step(row, {State.IN_FORCE}, first_by=by, first_at=now, conditions=given.text)
    note(row, Entry.Act.REVIEWED, by, now, given.text, **_about(row, given))


def _about(row: Request, given: Given) -> dict[str, Any]:
    """For the record: until when, and where the word came from."""
    found: dict[str, Any] = dict(given.origin or {})
    return found if row.until is None else {"until": row.until.timestamp(), **found}
