"""Notices: one row as long as it is so. Whoever looks says all that is so; what is not said any more is closed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction

from console.catalog.models import Service
from console.fleet.models import Pool
from console.journal.models import Notice
from console.state import moment


@dataclass(frozen=True, slots=True)
class Said:
    """What a notice says. `subject` tells it from others of its kind."""

    kind: str
    subject: str
    service: str = ""
    replica: int | None = None
    pool: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.subject


def sync(kinds: Collection[str], said: Collection[Said], now: float) -> int:
    """Open, refresh and close notices of these kinds; the number of new ones. Repeating it does nothing."""
    rows = {(row.kind, row.subject): row for row in Notice.objects.filter(kind__in=kinds, closed_at=None)}
    wanted = {one.key: one for one in said}
    gone = [row.pk for key, row in rows.items() if key not in wanted]
    if gone:
        Notice.objects.filter(pk__in=gone, closed_at=None).update(closed_at=moment(now))
    changed = [row for key, row in rows.items() if key in wanted and row.numbers != dict(wanted[key].numbers)]
    for row in changed:
        row.numbers, row.refreshed_at = dict(wanted[row.kind, row.subject].numbers), moment(now)
    Notice.objects.bulk_update(changed, ["numbers", "refreshed_at"])
    return _open([one for one in said if one.key not in rows], now)


def _open(new: Collection[Said], now: float) -> int:
    services = dict(Service.objects.filter(name__in={s.service for s in new}).values_list("name", "pk"))
    pools = dict(Pool.objects.filter(name__in={s.pool for s in new}).values_list("name", "pk"))
    count = 0
    for one in new:
        if one.service and one.service not in services:
            continue  # deleted meanwhile
        row = Notice(
            kind=one.kind,
            subject=one.subject,
            service_id=services.get(one.service),
            replica_id=one.replica,
            pool_id=pools.get(one.pool),
            numbers=dict(one.numbers),
            opened_at=moment(now),
            refreshed_at=moment(now),
        )
        try:
            with transaction.atomic():
                row.save()
                count += 1
        except IntegrityError:  # another control was quicker, or the replica is gone
            continue
    return count
