"""What a simulation is fed: calls, memory that grows, and how the machines really behave. Seconds and MiB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from scheduler.habits import DayKind


class Call(NamedTuple):
    """One call: the seconds it keeps an engine busy that it has for itself, until its first token and after it."""

    at: float
    service: str
    stream: bool
    prefill_s: float
    decode_s: float
    calls: int = 1  # that many, one after the other, as one: the mean number in flight stays what it was


class Growth(NamedTuple):
    """A copy of the service comes to hold `mib` more than its claim says, for a while: long texts, a leak."""

    at: float
    service: str
    mib: int
    for_s: float


@dataclass(frozen=True, slots=True)
class Habit:
    """What was known of a service before: days of site time since the epoch → hours with calls as bits; and first calls
    after a pause as (day, minute)."""

    hours_by_day: Mapping[int, int] = field(default_factory=dict)
    starts: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """Both in the order of their time. `calls` may come from a generator: it is read once, as time goes.

    `habits`: by service. `tiers_stand`: services keep the tier they begin with.
    """

    calls: Iterable[Call]
    growths: Sequence[Growth] = ()
    habits: Mapping[str, Habit] = field(default_factory=dict)
    tiers_stand: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """How hosts and engines really behave, whatever the policy expects of them."""

    init_s: float = 6.0  # of a start, beside reading weights
    warm_up_s: float = 2.0
    wake_s: float = 3.0
    stop_s: float = 4.0  # to sleep or to stop, until the memory is back
    unroute_s: float = 1.0  # until every gateway has let go of a drained copy
    grow_mib_s: float = 200.0  # how fast a growth comes: 9 GiB in the time of a drain for pressure and a stop
    interference: float = 1.0  # strength: see `interference`
    site_offset_s: int = 8 * 3600  # site time is so far ahead of UTC
    kinds: Mapping[date, DayKind] = field(default_factory=dict)  # days not in it: by the weekday
