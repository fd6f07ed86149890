"""What looks at a service's load add up to, and what scaling decided on it: kept in a row from leader to leader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

OLD_S = 60.0  # a look older than this says nothing of now


class Minute(NamedTuple):
    """One minute's looks at a service's load: sums over the looks. `number`: epoch seconds / 60."""

    number: int
    looks: int = 0
    copies: int = 0  # ready ones
    running: int = 0
    waiting: int = 0
    most_waiting: int = 0
    unknown: int = 0  # looks that could not count what runs or waits
    within: int = 0  # looks with a known P99 at or under its target
    over: int = 0  # and over it


class Day(NamedTuple):
    """What a copy carried on one day. `number`: epoch seconds / 86400."""

    number: int
    best: float = 0.0  # the largest 1-min mean of running calls a copy with P99 within its target
    over: float | None = None  # the least with P99 over it; None: there was none


@dataclass(frozen=True, slots=True)
class Scaling:
    """What looks at a service's load have shown (upper part) and what was decided on it (lower part)."""

    looked_at: float = 0.0
    over: int = 0  # looks in a row over a line
    over_by: str = ""  # which, last: queue or p99
    over_at: float | None = None
    signalled_at: float | None = None  # the last look with enough of them in a row
    ready: int = 0
    live: int = 0  # ready and on their way
    changed_at: float = 0.0  # when those two last changed
    minutes: tuple[Minute, ...] = ()  # oldest first, the last one not over yet
    days: tuple[Day, ...] = ()
    raised_to: int = 0  # copies
    raised_waiting: int = 0
    raised_at: float | None = None
    came_from: int = 0  # copies before the last scale-in; 0: nothing to remember
    came_from_at: float | None = None
