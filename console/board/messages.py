"""The two encodings of the board: between our processes (everything), and to a browser (what its scope may see)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from console.board.choice import counts
from console.board.keys import keys
from console.board.picture import CardNumbers
from console.board.scopes import Held, held_by, layout, seen_by, shape

GROUP = "board"
MAX_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class Delta:
    """One publication, whole truth: changed cards, and the order of all. Never leaves our processes."""

    version: int
    at: float
    order: list[int]
    cards: list[CardNumbers] = field(default_factory=list)
    held: dict[str, Held] | None = None  # by tenant id; JSON keys are text
    stranded_pct: float | None = None


def pack(delta: Delta) -> bytes:
    return msgspec.json.encode(delta)


def unpack(body: bytes) -> Delta:
    """Raises msgspec.ValidationError: another release of us may speak otherwise."""
    return msgspec.json.decode(body, type=Delta)


def card_json(card: CardNumbers) -> dict[str, Any]:
    return {
        "h": shape(card),
        "m": [size for _, size in card.segments],
        "u": card.used_mib,
        "l": card.load_pct,
        "p": card.p99_ms,
        "r": [
            [group.replica, group.service, group.phase, group.in_flight, group.progress]
            for group in card.groups
            if group.replica is not None
        ],
    }


def numbers(
    cards: Iterable[CardNumbers],
    held: Mapping[int, Held] | None,
    stranded_pct: float | None = None,
    *,
    tenant: int | None,
    version: int,
    at: float,
    changed: Collection[int] | None = None,
) -> dict[str, Any]:
    """What one scope is told of `cards` (all of them, unreduced); `changed`: only these card ids, None: all."""
    visible = seen_by(cards, tenant)
    return {
        "t": "board",
        "v": version,
        "at": at,
        "whole": changed is None,
        "layout": layout(visible),
        "keys": [
            [key.name, key.value, key.unit, key.detail, key.bad]
            for key in keys(visible, held_by(held, tenant), tenant, at, stranded_pct)
        ],
        "states": counts(visible),
        "cards": {str(card.id): card_json(card) for card in visible if changed is None or card.id in changed},
    }
