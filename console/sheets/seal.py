"""What a preview showed, signed: the confirmation brings it back, so nothing else can be confirmed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core import signing

from console.sheets.kind import Given, Line, Sheet

SALT = "sheets"

Seen = dict[int, tuple[str, dict[str, Any]]]


def seal(sheet: Sheet, lines: Sequence[Line]) -> str:
    rows = [[line.given.number, dict(line.given.texts), line.state.value, line.before] for line in lines]
    return signing.dumps([sheet.name, sheet.actor.pk, rows], salt=SALT, compress=True)


def unseal(sheet: Sheet, text: str) -> tuple[list[Given], Seen] | None:
    """Rows and, by number, state and columns as they were shown; None: not ours, another's, or of another shift."""
    try:
        name, pk, rows = signing.loads(text, salt=SALT, max_age=settings.SESSION_COOKIE_AGE)
    except signing.BadSignature:
        return None
    if (name, pk) != (sheet.name, sheet.actor.pk):
        return None
    return [Given(number, texts) for number, texts, _, _ in rows], {n: (state, was) for n, _, state, was in rows}


def moved(lines: Sequence[Line], seen: Seen) -> set[int]:
    """Numbers of the rows that would do something else now than what was shown."""
    return {line.given.number for line in lines if (line.state.value, line.before) != seen[line.given.number]}
