"""The database keeps the audit: no row is changed, and none younger than `LEAST` is deleted, whoever asks."""

from __future__ import annotations

from typing import Any

from console.audit.models import LEAST

TABLE = "audit_entry"
_SAYS = "the audit is append-only"

_SQLITE = (
    f"CREATE TRIGGER audit_no_update BEFORE UPDATE ON {TABLE} BEGIN SELECT RAISE(ABORT, '{_SAYS}'); END",
    f"CREATE TRIGGER audit_no_delete BEFORE DELETE ON {TABLE} WHEN OLD.at > datetime('now', '-{LEAST.days} days')"
    f" BEGIN SELECT RAISE(ABORT, '{_SAYS}'); END",
)
_POSTGRESQL = (
    "CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    f" IF TG_OP = 'DELETE' AND OLD.at <= now() - interval '{LEAST.days} days' THEN RETURN OLD; END IF;"
    f" RAISE EXCEPTION '{_SAYS}'; END $$",
    f"CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON {TABLE}"
    " FOR EACH ROW EXECUTE FUNCTION audit_append_only()",
)
_UNDO = {
    "sqlite": ("DROP TRIGGER IF EXISTS audit_no_update", "DROP TRIGGER IF EXISTS audit_no_delete"),
    "postgresql": (
        f"DROP TRIGGER IF EXISTS audit_no_change ON {TABLE}",
        "DROP FUNCTION IF EXISTS audit_append_only",
    ),
}


def guard(connection: Any) -> None:
    """Sets the triggers up. `connection`: of Django, or a schema editor's."""
    _run(connection, _SQLITE if connection.vendor == "sqlite" else _POSTGRESQL)


def unguard(connection: Any) -> None:
    _run(connection, _UNDO[connection.vendor])


def _run(connection: Any, statements: tuple[str, ...]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
