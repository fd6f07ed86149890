"""Many rows in one statement, each under a condition of its own: what a thousand updates say, said once.

Only for figures that change from second to second on a whole farm; a change that means something has its own update.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec
from django.db import connection
from django.db.models import Field, Model

ROWS = 400  # of one statement on SQLite, which takes 32,766 values in one
#: What SQLite's driver does not take as it is.
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
    columns = [connection.ops.quote_name(str(field.column)) for field in fields]
    found: list[int] = []
    for handed_in, params in _as_json(rows, fields) if connection.vendor == "postgresql" else _as_values(rows, fields):
        sql = _statement(model, columns, len(sets), handed_in, where)
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            found += [row[0] for row in cursor.fetchall()]
    return found


def _field(model: type[Model], name: str) -> Field[Any, Any]:
    return model._meta.pk if name == "pk" else model._meta.get_field(name)  # type: ignore[return-value]


#: SQL that yields the rows handed in, and its parameters.
HandedIn = tuple[str, Sequence[Any]]


def _as_json(rows: Sequence[Sequence[Any]], fields: Sequence[Field[Any, Any]]) -> Iterator[HandedIn]:
    """One parameter and the same words for any number of rows: a client writes ten thousand values out as slowly as
    PostgreSQL reads them quickly."""
    if not rows:
        return
    names = [f"c{i}" for i in range(len(fields))]
    types = [str(field.cast_db_type(connection)) for field in fields]
    cast = ", ".join(f"CAST({name} AS {type_})" for name, type_ in zip(names, types, strict=True))
    bare = ", ".join(f"{name} {type_.partition('(')[0]}" for name, type_ in zip(names, types, strict=True))
    said = msgspec.json.encode([dict(zip(names, row, strict=True)) for row in rows]).decode()
    yield f"SELECT {cast} FROM json_to_recordset(%s::json) AS handed_in({bare})", [said]


def _as_values(rows: Sequence[Sequence[Any]], fields: Sequence[Field[Any, Any]]) -> Iterator[HandedIn]:
    """SQLite's columns have their own mind about types."""
    translated = [i for i, field in enumerate(fields) if field.get_internal_type() in TRANSLATED]
    named = ", ".join(f"column{i}" for i in range(1, len(fields) + 1))
    for start in range(0, len(rows), ROWS):
        some = [_said(row, fields, translated) for row in rows[start : start + ROWS]]
        values = ", ".join([f"({', '.join(['%s'] * len(fields))})"] * len(some))
        yield f"SELECT {named} FROM (VALUES {values}) AS handed_in", list(chain.from_iterable(some))


def _said(row: Sequence[Any], fields: Sequence[Field[Any, Any]], translated: Sequence[int]) -> Sequence[Any]:
    if not translated:
        return row
    said = list(row)
    for i in translated:
        said[i] = fields[i].get_db_prep_save(said[i], connection)
    return said


def _statement(model: type[Model], columns: Sequence[str], sets: int, handed_in: str, where: str) -> str:
    quote = connection.ops.quote_name
    changes = ", ".join(f"{column} = v.{column}" for column in columns[1 : 1 + sets])
    return (
        f"WITH v({', '.join(['this', *columns[1:]])}) AS ({handed_in})"
        f" UPDATE {quote(model._meta.db_table)} AS t SET {changes} FROM v"
        f" WHERE t.{columns[0]} = v.this{f' AND ({where})' if where else ''}"
        f" RETURNING {quote(str(model._meta.pk.column))}"  # SQLite knows no alias here, so `v` may have no such column
    )
