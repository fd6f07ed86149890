"""The check-up: symptoms found are rows as long as they last. It writes nothing else."""

from __future__ import annotations

import time

from console import state, wire
from console.catalog.models import Service
from console.fleet.models import Pool
from console.money.models import Symptom
from console.state import moment
from console.wire import Gateways
from scheduler import symptoms
from workers.control import figures

Key = tuple[str, str, str]  # kind, service, pool


def run(now: float | None = None, gateways: Gateways | None = None) -> int:
    """Look once; how many symptoms there are now."""
    now = time.time() if now is None else now
    rules = state.policy()
    world = state.world(now, wire.read_gateways() if gateways is None else gateways, rules=rules)
    found = symptoms.check_up(figures.gather(world, rules, now), rules)
    keep(found, now)
    return len(found)


def keep(found: list[symptoms.Symptom], now: float) -> None:
    """Open, refresh and close rows; repeating it does nothing."""
    wanted: dict[Key, symptoms.Symptom] = {(one.kind.value, one.service, one.pool): one for one in found}
    rows = {key_of(row): row for row in Symptom.objects.filter(closed_at=None).select_related("service", "pool")}
    gone = [row.pk for key, row in rows.items() if key not in wanted]
    Symptom.objects.filter(pk__in=gone, closed_at=None).update(closed_at=moment(now))
    standing = [row for key, row in rows.items() if key in wanted]
    for row in standing:
        _say(row, wanted[key_of(row)], now)
    Symptom.objects.bulk_update(standing, ["numbers", "others", "remedies", "seen_at"])
    _open([one for key, one in wanted.items() if key not in rows], now)


def key_of(row: Symptom) -> Key:
    return row.kind, row.service.name if row.service else "", row.pool.name if row.pool else ""


def _say(row: Symptom, one: symptoms.Symptom, now: float) -> None:
    row.numbers, row.others = dict(one.numbers), [list(other) for other in one.others]
    row.remedies = [[r.cure.value, r.service, r.replica] for r in one.remedies]
    row.seen_at = moment(now)


def _open(new: list[symptoms.Symptom], now: float) -> None:
    services = dict(Service.objects.filter(name__in={one.service for one in new}).values_list("name", "pk"))
    pools = dict(Pool.objects.filter(name__in={one.pool for one in new}).values_list("name", "pk"))
    rows = []
    for one in new:
        row = Symptom(
            kind=one.kind.value,
            service_id=services.get(one.service),
            pool_id=pools.get(one.pool),
            opened_at=moment(now),
        )
        _say(row, one, now)
        if row.service_id or row.pool_id:  # else it was deleted meanwhile
            rows.append(row)
    Symptom.objects.bulk_create(rows, ignore_conflicts=True)
