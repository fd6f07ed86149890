"""The seam of what stands in the racks: rows of hosts, cards and pools to the core's."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
from typing import Any

from console import reading
from console.fleet.foreign import Taken
from console.unchanged import Unchanged
from console.wire import Gateways
from scheduler.world import Card, Host, Pool

PROBE_FRESH_S = 15.0  # a gateway's word that a host's engines answer
#: What a card is built from, beside the names of its host and pool; a row has more, which moves each second.
OF_CARD = attrgetter(
    "uuid", "index", "card_class", "total_mib", "reserved_mib", "baseline_mib", "free_mib", "release",
    "pressed_samples", "compute_cap", "healthy", "cordoned", "price_fen_h", "slice_of", "batch_calls",
    "batch_calls_at", "batch_lowered_at", "group",
)  # fmt: skip
_known_cards: Unchanged[Card] = Unchanged()


def at(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def hosts(gateways: Gateways, now: float) -> dict[str, Host]:
    return {row.name: host_of(row, gateways, now) for row in reading.PLANNED_HOSTS.all()}


def cards(foreign: Taken) -> dict[str, Card]:
    """In the order of the board."""
    return cards_of(((row, row.host__name, row.pool__name) for row in reading.cards()), foreign)


def pools() -> dict[str, Pool]:
    return {row.name: _pool(row, tenants) for row, tenants in reading.pools()}


def _pool(row: Any, tenants: frozenset[str]) -> Pool:
    return Pool(
        row.name, row.purpose, row.mode, tenants, at(row.refused_at), kv=row.kv, prefetch=frozenset(row.prefetch)
    )


def cards_of(rows: Iterable[tuple[Any, str, str]], foreign: Taken) -> dict[str, Card]:
    """By UUID, of (row, host, pool) by name. What others have now gets nothing new, like what is cordoned."""
    asked = ((row.uuid, (OF_CARD(row), host, pool, foreign.until(row) is not None)) for row, host, pool in rows)
    return {card.id: card for card in _known_cards.each(asked, _new)}


def _new(values: tuple[Any, ...], host: str, pool: str, foreign: bool) -> Card:
    (uuid, index, card_class, total_mib, reserved_mib, baseline_mib, free_mib, release,
     pressed_samples, compute_cap, healthy, cordoned, price_fen_h, slice_of, batch_calls,
     batch_calls_at, batch_lowered_at, group) = values  # fmt: skip
    return Card(
        id=uuid,
        host=host,
        index=index,
        card_class=card_class,
        total_mib=total_mib,
        driver_reserved_mib=reserved_mib,
        baseline_mib=baseline_mib,
        unavailable_mib=None if free_mib is None or not total_mib else total_mib - free_mib,
        releasing_mib=release.get("releasing_mib", 0),
        pressed_samples=pressed_samples,
        pool=pool,
        compute_cap=compute_cap,
        healthy=healthy,
        cordoned=cordoned or foreign,
        price_fen_h=price_fen_h,
        slice_of=slice_of,
        batch_calls=batch_calls,
        batch_calls_at=at(batch_calls_at),
        batch_lowered_at=at(batch_lowered_at),
        group=group,
    )


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
