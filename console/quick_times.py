"""PostgreSQL's times read by the interpreter's own parser: the driver's takes ten times as long, for 15,000 a tick.

Only for connections whose zone is UTC, as Django's are; what is no plain time (infinity, years before ours) is left to
the driver.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created


def register() -> None:
    """Every connection from now on."""
    connection_created.connect(_use, dispatch_uid=__name__)


def _use(sender: type[BaseDatabaseWrapper], connection: Any, **_: object) -> None:
    if connection.vendor == "postgresql" and connection.timezone is UTC:
        connection.connection.adapters.register_loader("timestamptz", _loader())


def _loader() -> Any:
    """Made here, for who has SQLite needs no driver of PostgreSQL."""
    from django.db.backends.postgresql.psycopg_any import BaseTzLoader

    class Quick(BaseTzLoader):  # type: ignore[misc]
        timezone = UTC  # Django compares it with the zone of the connection

        def load(self, data: Any) -> datetime:
            try:
                found = datetime.fromisoformat(str(data, "ascii"))
            except ValueError:
                return super().load(data)  # type: ignore[no-any-return]
            return found if found.tzinfo is UTC else super().load(data)

    return Quick
