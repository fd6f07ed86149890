"""Rows that are translated only where the database says something else than last time.

Dates, JSON and truth values of a thousand rows cost more to translate than to ask for, and from second to second most
of a farm stands still. What is kept is what the database said, word for word: every row is asked for each time.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import QuerySet
from django.db.models.sql.constants import MULTI

from console.unchanged import MOST

Said = tuple[Any, ...]
Translate = Callable[[list[Said]], Iterable[Iterable[Any]]]


class Rows:
    """Tuples with the names of `columns`, of which the first is the key. Shared: nobody may change what is in them."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns
        self._make = namedtuple("Row", columns)._make  # type: ignore[attr-defined]
        self._known: dict[Any, tuple[Said, Any]] = {}

    def of(self, asked: QuerySet[Any]) -> list[Any]:
        """One query, in its order."""
        compiler = asked.values_list(*self.columns).query.get_compiler(asked.db)
        said = list(chain.from_iterable(compiler.execute_sql(MULTI)))
        return self._translated(said, lambda new: compiler.results_iter([new]))

    def _translated(self, said: list[Said], translate: Translate) -> list[Any]:
        known = [self._same(raw) for raw in said]
        new = [raw for raw, old in zip(said, known, strict=True) if old is None]
        made = map(self._make, translate(new) if new else ())
        pairs = [old or (raw, next(made)) for raw, old in zip(said, known, strict=True)]
        if len(self._known) + len(new) > MOST:
            self._known = {}
        self._known.update((pair[0][0], pair) for pair in pairs)
        return [row for _said, row in pairs]

    def _same(self, raw: Said) -> tuple[Said, Any] | None:
        old = self._known.get(raw[0])
        return old if old is not None and old[0] == raw else None


class Standing(Rows):
    """The rows of a question that is always the same: its SQL is written once a process."""

    def __init__(self, ask: Callable[[], QuerySet[Any]], *columns: str) -> None:
        super().__init__(*columns)
        self._ask = ask
        self._written: tuple[str, tuple[Any, ...], dict[int, Any]] | None = None

    def all(self) -> list[Any]:
        """One query."""
        sql, params, converters = self._written or self._write()
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            said = cursor.fetchall()
        return self._translated(said, lambda new: self._compiler().apply_converters(new, converters))

    def _compiler(self) -> Any:
        return self._ask().values_list(*self.columns).query.get_compiler(DEFAULT_DB_ALIAS)

    def _write(self) -> tuple[str, tuple[Any, ...], dict[int, Any]]:
        compiler = self._compiler()
        sql, params = compiler.as_sql()
        self._written = sql, params, compiler.get_converters(column for column, _sql, _alias in compiler.select)
        return self._written
