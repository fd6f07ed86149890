"""A move of repack, as a World carries it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Move:
    """An open move of a repack proposal that may be done: the replica's place is taken by a copy on `cards`."""

    id: int
    proposal: int
    number: int
    replica: int
    service: str
    cards: tuple[str, ...]
    copy: int | None = None  # what was started there
