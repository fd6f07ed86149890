"""The farm of `rows`, made once a process: each later test gets the same rows as if they had been made just now.

Making it takes 640 queries, which was most of what a test of a page cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.models import DateTimeField

from console.accounts.models import Tenant
from demo.farm import KEYS, LOGINS
from tests.console import rows

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Kept:
    """Rows as the database keeps them, by table; and what the two files of names and secrets say."""

    at: datetime
    tables: dict[str, list[Row]]
    files: dict[str, str]


_kept: list[Kept] = []


def populate(home: Path) -> None:
    """As `rows.populate`; real where this process has not done it yet, or where the test has tenants already."""
    if Tenant.objects.exists():
        rows.populate(home)
    elif _kept:
        _again(_kept[0], home)
    else:
        _kept.append(_made(home))


def _made(home: Path) -> Kept:
    at, before = datetime.now(UTC), _tables()
    rows.populate(home)
    changed = {name: found for name, found in _tables().items() if found != before[name]}
    assert not any(before[name] for name in changed), "rows that migrations made are changed: no adding them again"
    return Kept(at, changed, {name: (home / name).read_text() for name in (KEYS, LOGINS)})


def _again(kept: Kept, home: Path) -> None:
    passed = datetime.now(UTC) - kept.at
    with connection.cursor() as cursor:
        for table, found in kept.tables.items():
            marks = ", ".join(["%s"] * len(found[0]))
            moved = [tuple(v + passed if isinstance(v, datetime) else v for v in row) for row in found]
            cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", moved)
    rows.begin_release()
    for name, text in kept.files.items():
        (home / name).write_text(text)


def _tables() -> dict[str, list[Row]]:
    """All rows of all tables."""
    found = {}
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            table = model._meta.db_table
            dated = {field.column for field in model._meta.concrete_fields if isinstance(field, DateTimeField)}
            cursor.execute(f"SELECT * FROM {table}")
            moments = [column[0] in dated for column in cursor.description]
            found[table] = [tuple(map(_value, row, moments)) for row in cursor.fetchall()]
    return found


def _value(value: Any, is_moment: bool) -> Any:
    """SQLite says a moment as text."""
    return datetime.fromisoformat(value) if is_moment and isinstance(value, str) else value
