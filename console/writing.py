"""Many rows in one statement, each under a condition of its own: what a thousand updates say, said once.

Only for figures that change from second to second on a whole farm; a change that means something has its own update.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from django.db import connection
from django.db.models import Field, Model

ROWS = 400  # of one statement: SQLite takes 32,766 values in one
#: What drivers do not take as it is.
TRANSLATED = frozenset({"DateTimeField", "JSONField"})


def update_each(
    model: type[Model],
    rows: Sequence[Sequence[Any]],
    sets: Sequence[str],
    *,
    key: str = "pk",
    given: Sequence[str] = (),
    where: str = "",
) -> list[int]:
    """Row ids that were written, to be looked at like a row count.

    Each of `rows`: the key, which no other has, then a value for every column of `sets`, then one for every column of
    `given`. `where` is SQL that says which rows still are as they were: `t` is the table, `v` what was handed in, by
    the names of columns, e.g. `t.attempt = v.attempt`.
    """
    fields = [_field(model, name) for name in (key, *sets, *given)]
    translated = [i for i, field in enumerate(fields) if field.get_internal_type() in TRANSLATED]
    columns = [connection.ops.quote_name(str(field.column)) for field in fields]
    found: list[int] = []
    for some in _steps([_said(row, fields, translated) for row in rows]):
        sql = _statement(model, fields, columns, len(sets), len(some), where)
        with connection.cursor() as cursor:
            cursor.execute(sql, list(chain.from_iterable(some)))
            found += [row[0] for row in cursor.fetchall()]
    return found


def _field(model: type[Model], name: str) -> Field[Any, Any]:
    return model._meta.pk if name == "pk" else model._meta.get_field(name)  # type: ignore[return-value]


def _said(row: Sequence[Any], fields: Sequence[Field[Any, Any]], translated: Sequence[int]) -> Sequence[Any]:
    if not translated:
        return row
    said = list(row)
    for i in translated:
        said[i] = fields[i].get_db_prep_save(said[i], connection)
    return said


def _steps(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    for start in range(0, len(rows), ROWS):
        yield rows[start : start + ROWS]


def _statement(
    model: type[Model],
    fields: Sequence[Field[Any, Any]],
    columns: Sequence[str],
    sets: int,
    rows: int,
    where: str,
) -> str:
    """PostgreSQL must be told the types of bare values; SQLite's columns have their own mind."""
    quote, typed = connection.ops.quote_name, connection.vendor == "postgresql"
    named = ", ".join(
        f"CAST(column{i} AS {field.cast_db_type(connection)})" if typed else f"column{i}"
        for i, field in enumerate(fields, 1)
    )
    values = ", ".join([f"({', '.join(['%s'] * len(fields))})"] * rows)
    changes = ", ".join(f"{column} = v.{column}" for column in columns[1 : 1 + sets])
    return (
        f"WITH v({', '.join(['this', *columns[1:]])}) AS (SELECT {named} FROM (VALUES {values}) AS handed_in)"
        f" UPDATE {quote(model._meta.db_table)} AS t SET {changes} FROM v"
        f" WHERE t.{columns[0]} = v.this{f' AND ({where})' if where else ''}"
        f" RETURNING {quote(str(model._meta.pk.column))}"  # SQLite knows no alias here, so `v` may have no such column
    )
