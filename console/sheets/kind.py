"""What a kind of list is: its columns, what they mean, and what would become of each row.

A row is taken as texts. `Sheet.lines` compares them with the tables of this moment and writes nothing; it is asked
once for the preview and once more when the person confirms, so a row that changed meanwhile cannot be missed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.db.models import Model
from django.utils.translation import gettext as _

from console.accounts.access import Act
from console.accounts.models import User


class State(StrEnum):
    WRONG = "wrong"
    CHANGED = "changed"
    NEW = "new"
    SAME = "same"


class Wrong(Exception):
    """`args[0]`: what to do about the cell, in the reader's language."""


class Moved(Exception):
    """A row is not any more as it was shown; `args[0]`: its number in the sheet."""


@dataclass(frozen=True)
class Column:
    name: str
    title: Any
    about: Any  # what belongs in it
    key: bool = False  # tells rows apart; never changed
    narrow: bool = False  # full-width letters are read as half-width
    optional: bool = False  # column and cell may be missing


@dataclass(frozen=True)
class Given:
    """A row as it was sent: column → text; what could not be read, and what was tidied."""

    number: int
    texts: Mapping[str, str]
    wrong: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Line:
    """What would become of a row. `before` and `after`: columns as the table keeps them, by name."""

    given: Given
    state: State = State.SAME
    pk: int | None = None
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def blame(self, column: str, text: str) -> None:
        self.wrong.setdefault(column, []).append(text)

    @property
    def changes(self) -> list[str]:
        return [name for name, value in self.after.items() if self.pk is not None and self.before.get(name) != value]


class Sheet(ABC):
    """One instance an import: it keeps what it looked up for the person who asked."""

    name: str  # of its addresses: `member` → members, member-import
    act: Act
    of: Any  # the list that it goes into
    title: Any
    most = 500  # rows at once
    columns: tuple[Column, ...]
    stored: tuple[str, ...]  # columns of the table that a row may change

    def __init__(self, actor: User) -> None:
        self.actor = actor

    @property
    def key(self) -> Column:
        return next(column for column in self.columns if column.key)

    def lines(self, given: Sequence[Given]) -> list[Line]:
        """Compared with the tables as they are now."""
        known = self.known([one.texts.get(self.key.name, "") for one in given])
        times = Counter(one.texts.get(self.key.name, "").casefold() for one in given)
        found = [self._line(one, known, times) for one in given]
        self.together(found)
        for line in found:
            line.state = _state(line)
        return found

    def _line(self, given: Given, known: Mapping[str, Model], times: Counter[str]) -> Line:
        line = Line(given)
        for name, text in given.wrong.items():
            line.blame(name, text)
        key = given.texts.get(self.key.name, "")
        row = known.get(key)
        if row is not None:
            line.pk = row.pk
            line.before = {name: getattr(row, name) for name in self.stored}
        if key and times[key.casefold()] > 1:
            line.blame(self.key.name, _("同一个文件里出现了 %(n)d 次，留一行。") % {"n": times[key.casefold()]})
        for column in self.columns:
            if column.name not in line.wrong:
                self._value(line, column, given.texts.get(column.name, ""))
        if not line.wrong:
            self.check(line, row)
        return line

    def _value(self, line: Line, column: Column, text: str) -> None:
        if not text and not column.optional:
            line.blame(column.name, _("没有填。"))
            return
        try:
            line.after |= self.value(column.name, text)
        except Wrong as why:
            line.blame(column.name, str(why))

    @abstractmethod
    def known(self, keys: Sequence[str]) -> Mapping[str, Any]:
        """Key → the row that has it, whoever may see it."""

    @abstractmethod
    def value(self, name: str, text: str) -> dict[str, Any]:
        """Columns of the table that the cell sets. Raises Wrong."""

    @abstractmethod
    def check(self, line: Line, row: Any) -> None:
        """Blames what the cells say together, or what this person may not do."""

    def together(self, lines: Sequence[Line]) -> None:  # noqa: B027 (most kinds have nothing to say)
        """Blames what rows say together."""

    @abstractmethod
    def current(self) -> Iterable[Sequence[str]]:
        """Rows as they are, one text a column: to change in a spreadsheet and send back."""

    @abstractmethod
    def choices(self, name: str) -> Sequence[str]:
        """What a cell of the column may say; empty: anything."""

    @abstractmethod
    def said(self, name: str, value: Any) -> str:
        """A value of the table in the reader's words."""

    @abstractmethod
    def write(self, lines: Sequence[Line]) -> list[tuple[str, str, str]]:
        """New and changed rows, within a transaction. Secrets made on the way: name, account, first password.

        Raises Moved, and the caller takes everything back.
        """


def _state(line: Line) -> State:
    if line.wrong:
        return State.WRONG
    if line.pk is None:
        return State.NEW
    return State.CHANGED if line.changes else State.SAME
