"""What one request changes: rows made, saved and deleted, and the row that its address names, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model
from django.db.models.signals import post_save, pre_delete, pre_save

#: Read by nobody: neither here nor in an export.
SECRET = frozenset({"password", "digest", "door_token"})
#: What hosts report and ticks write: it changes beside a person's act, not by it. Class name → fields.
REPORTED: dict[str, tuple[str, ...]] = {
    "User": ("last_login",),
    "ApiKey": ("last_used_at",),
    "Host": (
        *("seen_at", "boot", "report_seq", "cards_at", "report_generation", "want_generation", "version"),
        *("door_url", "door_ok", "memory_mib", "bandwidth_mib_s", "skew_s"),
    ),
    "Card": (
        *("total_mib", "reserved_mib", "free_mib", "baseline_mib", "util_pct", "healthy", "note", "sampled_at"),
        *("pressed_samples", "release", "batch_calls", "batch_calls_at", "batch_lowered_at"),
    ),
    "Pool": ("refused_at", "level", "free_mib", "stranded_mib", "stranded_at"),
    "Service": ("starts_28d", "wished_at", "last_reclaimed_at", "failures", "last_call_at"),
    "Job": ("progress", "progress_at", "started_at", "ended_at"),
    "Advice": ("refreshed_at", "numbers"),
    "Notice": ("refreshed_at", "numbers"),
}
#: Of a replica a person changes nothing directly: a button leaves an order, and that row is told of. A draft is nobody
#: else's business until it is sent.
ONLY_NAMED = frozenset({"Replica", "Draft"})
OURS = frozenset(
    {"accounts", "fleet", "catalog", "policies", "usage", "journal", "money", "jobs", "repack", "requests"}
)
LONGEST = 400  # characters of one value

Line = tuple[str, str, str, Any, Any]  # what, which, field, before, after
Key = tuple[str, Any]

_now: ContextVar[Watch | None] = ContextVar("audit", default=None)


@dataclass
class Watch:
    """Rows as they were before the request first touched them; {}: not there."""

    before: dict[Key, dict[str, Any]] = field(default_factory=dict)
    rows: dict[Key, Model] = field(default_factory=dict)

    def touch(self, row: Model, was: Mapping[str, Any]) -> None:
        key = (row._meta.label, row.pk)
        if key not in self.before:
            self.before[key], self.rows[key] = dict(was), row

    def lines(self) -> list[Line]:
        """What differs now; one query a row."""
        found = []
        for (label, pk), was in self.before.items():
            now = stored(type(self.rows[label, pk]), pk)
            said = values(now) if now else {}
            which = str(now or self.rows[label, pk])[:120]
            for name in sorted({*was, *said}):
                if was.get(name) != said.get(name):
                    found.append((label, which, name, shown(name, was.get(name)), shown(name, said.get(name))))
        return found


@contextmanager
def watch() -> Iterator[Watch]:
    one = Watch()
    token = _now.set(one)
    try:
        yield one
    finally:
        _now.reset(token)


def about_to_change(rows: Iterable[Model]) -> None:
    """Before a conditional update of rows that the address does not name: no signal tells of it."""
    now = _now.get()
    for row in rows if now is not None else ():
        now.touch(row, values(row))  # type: ignore[union-attr]


def stored(model: type[Model], pk: Any) -> Model | None:
    return model._default_manager.filter(pk=pk).first()


def values(row: Model) -> dict[str, Any]:
    """Columns and lists of a row, as the audit compares them."""
    kind = type(row).__name__
    if kind in ONLY_NAMED:
        return {}
    reported = REPORTED.get(kind, ())
    found = {one.name: one.value_from_object(row) for one in row._meta.concrete_fields if one.name not in reported}
    for many in row._meta.many_to_many:
        if many.name not in ("groups", "user_permissions"):
            found[many.name] = sorted(str(one) for one in getattr(row, many.name).all())
    return found


def shown(name: str, value: Any) -> Any:
    """That a secret changed is told, the secret is not; a long text is cut."""
    if value is not None and name in SECRET:
        return "***"
    text = value if isinstance(value, str) else None
    return text[:LONGEST] + "…" if text and len(text) > LONGEST else value


def _before(sender: type[Model], instance: Model, raw: bool = False, **_: Any) -> None:
    now = _now.get()
    if now is None or raw or sender._meta.app_label not in OURS or instance.pk is None:
        return
    was = stored(sender, instance.pk)
    if was is not None:
        now.touch(instance, values(was))


def _made(sender: type[Model], instance: Model, created: bool, raw: bool = False, **_: Any) -> None:
    now = _now.get()
    if now is not None and created and not raw and sender._meta.app_label in OURS:
        now.touch(instance, {})


def listen() -> None:
    pre_save.connect(_before, dispatch_uid="audit")
    pre_delete.connect(_before, dispatch_uid="audit")
    post_save.connect(_made, dispatch_uid="audit")
