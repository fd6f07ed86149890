"""Changing a layer of the policy: a version is written, and put in force when its time has come.

A version says what was set before it was written. One that finds something else in force when its time comes is put
in force by its own changes, so that two people who change different fields do not undo each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from console.accounts.models import User
from console.policies.models import Layer, PolicyValue, PolicyVersion
from scheduler import layers as core
from scheduler.settable import check

Changes = Mapping[str, float | None]
CORE: dict[Layer, core.Layer] = {Layer.GROUP: "group", Layer.POOL: "pool", Layer.SERVICE: "service"}


class Wrong(ValueError):
    """Values that may not be set: field → what is wrong, in English words of the core."""

    def __init__(self, fields: dict[str, str]) -> None:
        super().__init__(", ".join(f"{name}: {why}" for name, why in fields.items()))
        self.fields = fields


def in_force(layer: str, subject: str = "") -> dict[str, float]:
    """What a layer sets right now."""
    rows = PolicyValue.objects.filter(layer=layer, subject=subject)
    return dict(rows.values_list("name", "value"))


def write(
    layer: Layer,
    subject: str,
    changes: Changes,
    *,
    by: User,
    note: str,
    now: datetime,
    effective_at: datetime | None = None,
    back_to: PolicyVersion | None = None,
) -> PolicyVersion | None:
    """A new version with these fields set (None: taken back to the wider layer). None where nothing would change.

    Raises Wrong. Put in force at once, or at `effective_at` by the control loop.
    """
    wrong = check({name: value for name, value in changes.items() if value is not None}, CORE[layer])
    if wrong:
        raise Wrong(wrong)
    with transaction.atomic():
        before = in_force(layer, subject)
        differs = {name: [before.get(name), value] for name, value in changes.items() if before.get(name) != value}
        if not differs:
            return None
        version = PolicyVersion.objects.create(
            layer=layer,
            subject=subject,
            values=_with(before, changes),
            changes=differs,
            note=note,
            by=by,
            by_name=by.full_name or by.username,
            at=now,
            effective_at=max(effective_at or now, now),
            back_to=back_to,
        )
        if version.effective_at <= now:
            apply(version, now)
    return version


def apply(version: PolicyVersion, now: datetime) -> bool:
    """Put in force, once; False when it was before, or is withdrawn."""
    with transaction.atomic():
        waiting = PolicyVersion.objects.filter(pk=version.pk, applied_at=None, withdrawn_at=None)
        if not waiting.update(applied_at=now):
            return False
        version.applied_at = now
        for name, (_, value) in version.changes.items():
            rows = PolicyValue.objects.filter(layer=version.layer, subject=version.subject, name=name)
            if value is None:
                rows.delete()
            else:
                PolicyValue.objects.update_or_create(
                    layer=version.layer, subject=version.subject, name=name, defaults={"value": value}
                )
    return True


def apply_due(now: datetime) -> int:
    """Put in force all whose time has come, oldest first; how many."""
    due = PolicyVersion.objects.filter(applied_at=None, withdrawn_at=None, effective_at__lte=now)
    return sum(apply(version, now) for version in due.order_by("effective_at", "pk"))


def withdraw(version: PolicyVersion, now: datetime) -> bool:
    """Take back one that waits; False when it is in force already."""
    return bool(PolicyVersion.objects.filter(pk=version.pk, applied_at=None).update(withdrawn_at=now))


def back_to(version: PolicyVersion) -> dict[str, float | None]:
    """The changes that would make its layer what it was right after this version."""
    now = in_force(version.layer, version.subject)
    then: dict[str, float] = version.values
    names = now.keys() | then.keys()
    return {name: then.get(name) for name in sorted(names) if now.get(name) != then.get(name)}


def forget(layer: Layer, subject: str) -> None:
    """A pool or service is gone: nothing is set for it any more. Its versions stay."""
    PolicyValue.objects.filter(Q(layer=layer, subject=subject)).delete()


def _with(before: Mapping[str, float], changes: Changes) -> dict[str, float]:
    after = {**before, **changes}
    return {name: value for name, value in after.items() if value is not None}
