"""What every step has in common: one conditional update, and a line in the request's own record."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from console.accounts.models import User
from console.requests.models import Entry, Request


class No(Exception):
    """A step that was not taken, and nothing written. `code`: one of `words.NO`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def step(row: Request, states: Collection[str], **fields: Any) -> None:
    """Writes these fields if the row still is what the person saw, and in one of these states; raises No("overtaken").

    `row.version` is what was seen. Of many at once one gets through; the row in hand follows.
    """
    unchanged = Request.objects.filter(pk=row.pk, version=row.version, state__in=states)
    if unchanged.update(version=row.version + 1, **fields) != 1:
        raise No("overtaken")
    row.version += 1
    for name, value in fields.items():
        setattr(row, name, value)


def note(row: Request, act: Entry.Act, by: User | None, now: datetime, text: str = "", **numbers: Any) -> Entry:
    return Entry.objects.create(request=row, at=now, by=by, act=act, text=text[:1000], numbers=numbers)
