"""`dataclasses.replace` in half its time: rows of forty fields change with each decision, and often in a simulation."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

Row = TypeVar("Row")


def changed(row: Row, **values: Any) -> Row:
    """The row with these fields instead. Of dataclasses all of whose fields are arguments, in their order."""
    kind: Any = type(row)
    read, places = _shape(kind)
    every = list(read(row))
    for name, value in values.items():
        every[places[name]] = value
    found: Row = kind(*every)
    return found


@cache
def _shape(kind: Any) -> tuple[attrgetter[Any], dict[str, int]]:
    names = [field.name for field in fields(kind)]
    return attrgetter(*names), {name: place for place, name in enumerate(names)}
