"""What a World remembers of the last minutes: who made way for whom.

Times are seconds since the epoch (UTC).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Swap:
    """The last time room was made on a card: who had to go for whom (anti-swap memory)."""

    came: str
    went: str
    at: float


@dataclass(frozen=True, slots=True)
class Eviction:
    """A copy that pressure took from a card of late. `open`: none became ready in its place, and nobody let it go."""

    service: str
    card: str
    at: float
    open: bool


@dataclass(frozen=True, slots=True)
class Throttled:
    """A preload that was called off because it slowed a neighbour on `card`."""

    service: str
    card: str
    at: float
