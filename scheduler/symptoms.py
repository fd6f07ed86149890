"""Six symptoms of memory badly used: each found in plain figures, told with them, and with what would end it.

A detector is a function of one subject's figures; what cannot be measured is no symptom. `DETECTORS` is the list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from scheduler.decision import Numbers
from scheduler.memory import HUNDRED
from scheduler.policy import Policy
from scheduler.thrash import Hour, thrashes


class Kind(StrEnum):
    FULL_IDLE = "full_idle"  # memory full, few requests
    FIRST_CALL = "first_call"  # the first call of the day is slow
    HOLD_CAP = "hold_cap"  # odd time-outs, all after the same time
    LOAD_FAILED = "load_failed"  # dead after a failed load
    SWAPPING = "swapping"  # back and forth
    NEIGHBOUR = "neighbour"  # busy and slow beside one that idles


class Cure(StrEnum):
    """What a button does, or where a link leads."""

    WARM = "warm"  # resident → asleep when idle
    AHEAD = "ahead"  # ready before the first call: hours of the day
    LONGER_HOLD = "longer_hold"
    RETRY = "retry"  # load it again
    SLOT = "slot"  # keep one more of its kind awake
    TIER_UP = "tier_up"
    DRAIN = "drain"  # the idle neighbour gives its memory back
    REPLICA = "replica"  # one more copy elsewhere


@dataclass(frozen=True, slots=True)
class Remedy:
    """`service` is whom the cure is for: the neighbour, or the service itself where it is empty."""

    cure: Cure
    service: str = ""
    replica: int | None = None


@dataclass(frozen=True, slots=True)
class Symptom:
    """`others`: services it names besides its own, with the MiB each would give back (0: none, it is only involved)."""

    kind: Kind
    numbers: Numbers
    remedies: tuple[Remedy, ...]
    service: str = ""
    pool: str = ""
    others: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Resident:
    """A service awake in a pool: MiB it would give back asleep, its calls of the last day, whether a rule keeps it."""

    service: str
    gain_mib: int
    calls_24h: int
    kept: bool = False


@dataclass(frozen=True, slots=True)
class PoolUse:
    """Means over the cards of a pool in the last hours. `util_pct` None: the chips' load is not measured."""

    pool: str
    cards: int
    used_pct: float
    util_pct: float | None
    residents: tuple[Resident, ...] = ()


@dataclass(frozen=True, slots=True)
class Mornings:
    """Of one service: seconds that the first calls of each day waited (0: none had to), days without calls left out."""

    service: str
    waits_s: tuple[float, ...]
    hour: int | None = None  # of site time, when the first call usually comes
    can_sleep: bool = True


@dataclass(frozen=True, slots=True)
class Caps:
    """Of one service in the last day: calls that ended at the hold cap, all calls, and how long it really takes."""

    service: str
    capped: int
    calls: int
    cap_s: float
    load_s: float | None


@dataclass(frozen=True, slots=True)
class Broken:
    """A service that has failed starts and no ready copy: since when, why, and how many waited or were refused."""

    service: str
    failed_s: float
    failures: int
    code: str
    ready: int
    coming: int = 0  # copies that are starting now
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Swaps:
    """Of one service in the last hour, with whom it changes places, and what one more slot would cost an hour."""

    service: str
    hour: Hour
    others: tuple[str, ...] = ()
    slot_fen_h: int | None = None
    tier_fen_h: int | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A copy on the same card: how long nobody called it, and what it holds."""

    service: str
    replica: int
    idle_s: float
    held_mib: int


@dataclass(frozen=True, slots=True)
class Busy:
    """A service with calls waiting: its P99 (None: unknown) and target, and who shares its cards."""

    service: str
    waiting: int | None
    p99_ms: float | None
    target_ms: float
    neighbours: tuple[Neighbour, ...] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """All that a check-up looks at."""

    pools: Sequence[PoolUse] = ()
    mornings: Sequence[Mornings] = ()
    caps: Sequence[Caps] = ()
    broken: Sequence[Broken] = ()
    swaps: Sequence[Swaps] = ()
    busy: Sequence[Busy] = field(default_factory=tuple)


def full_idle(use: PoolUse, policy: Policy) -> Symptom | None:
    """Memory taken all round, chips at rest: who is awake without calls could sleep. Largest gain first."""
    if use.util_pct is None or use.used_pct < policy.full_pct or use.util_pct > policy.idle_util_pct:
        return None
    idle = [r for r in use.residents if not r.kept and r.calls_24h <= policy.few_calls_24h and r.gain_mib > 0]
    if not idle:
        return None
    idle.sort(key=lambda r: (-r.gain_mib, r.service))
    numbers: Numbers = {
        "cards": use.cards,
        "used_pct": round(use.used_pct),
        "util_pct": round(use.util_pct),
        "services": len(idle),
        "gain_mib": sum(r.gain_mib for r in idle),
    }
    remedies = tuple(Remedy(Cure.WARM, r.service) for r in idle)
    return Symptom(
        Kind.FULL_IDLE, numbers, remedies, pool=use.pool, others=tuple((r.service, r.gain_mib) for r in idle)
    )


def first_call(days: Mornings, policy: Policy) -> Symptom | None:
    """On most days the first caller waited for the load."""
    slow = [wait for wait in days.waits_s if wait > policy.first_call_slow_s]
    if len(slow) < policy.first_call_days or len(slow) * 2 < len(days.waits_s):
        return None
    numbers: Numbers = {"days": len(slow), "of_days": len(days.waits_s), "wait_s": round(sum(slow) / len(slow), 1)}
    if days.hour is not None:
        numbers["hour"] = days.hour
    cures = [Cure.AHEAD, Cure.TIER_UP] if days.can_sleep else [Cure.AHEAD]
    return Symptom(Kind.FIRST_CALL, numbers, tuple(Remedy(cure) for cure in cures), days.service)


def hold_cap(caps: Caps, policy: Policy) -> Symptom | None:
    """Calls end after exactly the time they may be held: it takes longer to load than callers are kept waiting."""
    if caps.capped < policy.capped_least or caps.capped * HUNDRED < caps.calls * policy.capped_pct:
        return None
    numbers: Numbers = {"capped": caps.capped, "calls": caps.calls, "cap_s": round(caps.cap_s)}
    cures = [Cure.AHEAD, Cure.TIER_UP]
    if caps.load_s is not None:
        numbers["load_s"] = round(caps.load_s, 1)
        if caps.cap_s < caps.load_s <= policy.hold_own_max_s:
            cures.insert(0, Cure.LONGER_HOLD)
    return Symptom(Kind.HOLD_CAP, numbers, tuple(Remedy(cure) for cure in cures), caps.service)


def load_failed(broken: Broken, policy: Policy) -> Symptom | None:
    """Nothing serves, nothing is coming, and the last thing that was heard is a failure."""
    if not broken.failures or broken.ready or broken.coming or broken.failed_s < policy.dead_after_s:
        return None
    numbers: Numbers = {
        "failures": broken.failures,
        "failed_s": round(broken.failed_s),
        "fault": broken.code,
        "calls": broken.calls,
    }
    return Symptom(Kind.LOAD_FAILED, numbers, (Remedy(Cure.RETRY),), broken.service)


def swapping(swaps: Swaps, policy: Policy) -> Symptom | None:
    """Nearly every call costs a load: two or more models change places."""
    if not thrashes(swaps.hour, policy):
        return None
    numbers: Numbers = {"loads": swaps.hour.loads, "waits": swaps.hour.waits, "calls": round(swaps.hour.calls)}
    if swaps.slot_fen_h is not None:
        numbers["slot_fen_h"] = swaps.slot_fen_h
    if swaps.tier_fen_h is not None:
        numbers["tier_fen_h"] = swaps.tier_fen_h
    remedies = (Remedy(Cure.SLOT), Remedy(Cure.TIER_UP))
    return Symptom(Kind.SWAPPING, numbers, remedies, swaps.service, others=tuple((name, 0) for name in swaps.others))


def neighbour(busy: Busy, policy: Policy) -> Symptom | None:
    """It is over its P99 with calls waiting, and beside it somebody holds memory that nobody calls: named, largest."""
    if busy.p99_ms is None or not busy.waiting or busy.p99_ms <= busy.target_ms:
        return None
    idle = [n for n in busy.neighbours if n.idle_s >= policy.idle_unload_s and n.held_mib > 0]
    if not idle:
        return None
    idle.sort(key=lambda n: (-n.held_mib, n.service))
    first = idle[0]
    numbers: Numbers = {
        "p99_ms": round(busy.p99_ms),
        "target_ms": round(busy.target_ms),
        "waiting": busy.waiting,
        "idle_s": round(first.idle_s),
        "held_mib": first.held_mib,
    }
    remedies = (Remedy(Cure.DRAIN, first.service, first.replica), Remedy(Cure.REPLICA))
    others = tuple((n.service, n.held_mib) for n in idle)
    return Symptom(Kind.NEIGHBOUR, numbers, remedies, busy.service, others=others)


#: Field of `Figures` → the detector that looks at each of its entries.
DETECTORS: dict[str, Callable[..., Symptom | None]] = {
    "pools": full_idle,
    "mornings": first_call,
    "caps": hold_cap,
    "broken": load_failed,
    "swaps": swapping,
    "busy": neighbour,
}


def check_up(figures: Figures, policy: Policy) -> list[Symptom]:
    """Every symptom there is, by kind in the order of the list, then by name."""
    found = []
    for name, detector in DETECTORS.items():
        seen = (detector(entry, policy) for entry in getattr(figures, name))
        found += sorted((one for one in seen if one is not None), key=lambda one: (one.pool, one.service))
    return found
