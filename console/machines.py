"""The seam of what stands in the racks: rows of hosts, cards and pools to the core's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from console import reading
from console.fleet.foreign import Taken
from console.unchanged import Unchanged
from console.wire import Gateways
from scheduler.world import Card, Host, Pool

PROBE_FRESH_S = 15.0  # a gateway's word that a host's engines answer
_known_cards: Unchanged[Card] = Unchanged()


def at(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def hosts(gateways: Gateways, now: float) -> dict[str, Host]:
    return {row.name: host_of(row, gateways, now) for row in reading.PLANNED_HOSTS.all()}


def cards(foreign: Taken) -> dict[str, Card]:
    """In the order of the board."""
    return {row.uuid: card_of(row, row.host__name, row.pool__name, foreign) for row in reading.cards()}


def pools() -> dict[str, Pool]:
    return {row.name: _pool(row, tenants) for row, tenants in reading.pools()}


def _pool(row: Any, tenants: frozenset[str]) -> Pool:
    return Pool(
        row.name, row.purpose, row.mode, tenants, at(row.refused_at), kv=row.kv, prefetch=frozenset(row.prefetch)
    )


def card_of(row: Any, host: str, pool: str, foreign: Taken) -> Card:
    """`host` and `pool` by name. What others have now gets nothing new, like what is cordoned."""
    values = {
        "id": row.uuid,
        "host": host,
        "index": row.index,
        "card_class": row.card_class,
        "total_mib": row.total_mib,
        "driver_reserved_mib": row.reserved_mib,
        "baseline_mib": row.baseline_mib,
        "unavailable_mib": None if row.free_mib is None or not row.total_mib else row.total_mib - row.free_mib,
        "releasing_mib": row.release.get("releasing_mib", 0),
        "pressed_samples": row.pressed_samples,
        "pool": pool,
        "compute_cap": row.compute_cap,
        "healthy": row.healthy,
        "cordoned": row.cordoned or foreign.until(row) is not None,
        "price_fen_h": row.price_fen_h,
        "slice_of": row.slice_of,
        "batch_calls": row.batch_calls,
        "batch_calls_at": at(row.batch_calls_at),
        "batch_lowered_at": at(row.batch_lowered_at),
        "group": row.group,
    }
    return _known_cards.of(row.uuid, values, lambda: Card(**values))


def host_of(row: Any, gateways: Gateways, now: float) -> Host:
    reached = [gateway.reached[row.name] for gateway in gateways.gateways if row.name in gateway.reached]
    return Host(
        name=row.name,
        seen_at=at(row.seen_at),
        memory_mib=row.memory_mib,
        bandwidth_mib_s=row.bandwidth_mib_s,
        cordoned=row.cordoned,
        leave_by=at(row.maintenance_at),
        rack=row.rack,
        storage=row.storage,
        serving=bool(reached) and now - max(reached) <= PROBE_FRESH_S,
    )
