"""Rows that are translated only where the database says something else than last time.

Dates, JSON and truth values of a thousand rows cost more to translate than to ask for, and from second to second most
of a farm stands still. What is kept is what the database said, word for word: every row is asked for each time.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import QuerySet
from django.db.models.sql.constants import MULTI

from console.unchanged import MOST

Said = tuple[Any, ...]
#: Place of a column → the value of what the database says there. Columns that are not in it are taken as they come.
Converters = dict[int, Callable[[Any], Any]]
#: Of one column: what rows say alike (a moment, an empty list) is translated once.
VALUES_KEPT = 4096


class Rows:
    """Tuples with the names of `columns`, of which the first is the key. Shared: nobody may change what is in them."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns
        self._make = namedtuple("Row", columns)._make  # type: ignore[attr-defined]
        self._known: dict[Any, tuple[Said, Any]] = {}
        self._converters: Converters | None = None

    def of(self, asked: QuerySet[Any]) -> list[Any]:
        """One query, in its order."""
        compiler = asked.values_list(*self.columns).query.get_compiler(asked.db)
        said = list(chain.from_iterable(compiler.execute_sql(MULTI)))
        if not said:
            return []
        return self._translated(said, self._learn(compiler) if self._converters is None else self._converters)

    def _learn(self, compiler: Any) -> Converters:
        """The columns are the same in every question: once a process."""
        found = compiler.get_converters(column for column, _sql, _alias in compiler.select)
        self._converters = {at: _kept(known, column, compiler.connection) for at, (known, column) in found.items()}
        return self._converters

    def _translated(self, said: list[Said], converters: Converters) -> list[Any]:
        rows, known = [], self._known
        for raw in said:
            old = known.get(raw[0])
            if old is None or old[0] != raw:
                old = known[raw[0]] = raw, self._row(raw, converters)
            rows.append(old[1])
        if len(known) > MOST:  # what is gone is forgotten
            self._known = {raw[0]: known[raw[0]] for raw in said}
        return rows

    def _row(self, raw: Said, converters: Converters) -> Any:
        values = list(raw)
        for place, convert in converters.items():
            values[place] = convert(values[place])
        return self._make(values)


def _kept(converters: list[Any], column: Any, db: Any) -> Callable[[Any], Any]:
    """All of a column's converters in one, with its values of late."""

    def convert(value: Any) -> Any:
        for one in converters:
            value = one(value, column, db)
        return value

    return lru_cache(VALUES_KEPT)(convert)


class Standing(Rows):
    """The rows of a question that is always the same: its SQL is written once a process."""

    def __init__(self, ask: Callable[[], QuerySet[Any]], *columns: str) -> None:
        super().__init__(*columns)
        self._ask = ask
        self._written: tuple[str, tuple[Any, ...], Converters] | None = None

    def all(self) -> list[Any]:
        """One query."""
        sql, params, converters = self._written or self._write()
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            said = cursor.fetchall()
        return self._translated(said, converters)

    def _write(self) -> tuple[str, tuple[Any, ...], Converters]:
        compiler = self._ask().values_list(*self.columns).query.get_compiler(DEFAULT_DB_ALIAS)
        sql, params = compiler.as_sql()
        self._written = sql, params, self._learn(compiler)
        return self._written
