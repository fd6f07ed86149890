"""Looks at a service's load, every few seconds: what they add up to. A look is a fold, its result is a row.

Looks in a row over a line raise the number of copies; quiet minutes lower it; the best minutes tell what one carries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from scheduler.decision import Reason
from scheduler.looks import Day, Minute, Scaling
from scheduler.policy import Policy
from scheduler.rows import changed
from scheduler.world import Phase, Replica, Service, Want

MINUTE_S, DAY_S = 60, 86400


class Loaded(Protocol):
    """What a look reads of a service."""

    @property
    def scaling(self) -> Scaling | None: ...
    @property
    def running(self) -> int | None: ...
    @property
    def waiting(self) -> int | None: ...
    @property
    def p99_ms(self) -> float | None: ...
    @property
    def p99_target_ms(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Copies:
    """Ready ones, and all that are live: ready or on their way."""

    ready: int = 0
    live: int = 0


def copies(replicas: Iterable[Replica]) -> Copies:
    """Of one service's replicas."""
    wanted = [r.phase for r in replicas if r.want is Want.READY]
    ready = wanted.count(Phase.READY)
    return Copies(ready, ready + wanted.count(Phase.STARTING))


def target_ms(service: Loaded, policy: Policy) -> int:
    """What its P99 shall not exceed."""
    return policy.p99_target_ms if service.p99_target_ms is None else service.p99_target_ms


def load(service: Loaded) -> int:
    """Calls that run or wait; what cannot be counted is left out."""
    return (service.running or 0) + (service.waiting or 0)


def slow(service: Loaded, policy: Policy) -> bool:
    """Is its P99 known, and over its target?"""
    return service.p99_ms is not None and service.p99_ms > target_ms(service, policy)


def line(service: Loaded, ready: int, policy: Policy) -> Reason | None:
    """The line it is over now. Where each copy has at most one call, more copies would make none faster."""
    if (service.waiting or 0) > policy.scale_queue_calls:
        return Reason.QUEUE
    return Reason.P99 if slow(service, policy) and load(service) > ready else None


def due(service: Service, policy: Policy, now: float) -> bool:
    """Is it time for a look? Only at services that may have more than one copy."""
    known = service.scaling
    return service.max_replicas > 1 and (known is None or now - known.looked_at >= policy.scale_look_s)


def look(service: Loaded, seen: Copies, policy: Policy, now: float) -> Scaling:
    """What is known after a look at `now`. A change of its copies begins the count of looks anew."""
    before = service.scaling or Scaling()
    same = (seen.ready, seen.live) == (before.ready, before.live)
    over_by = line(service, seen.ready, policy)
    in_a_row = same and now - before.looked_at < MINUTE_S  # nobody looked for long: a new leader
    over = (before.over if in_a_row else 0) + 1 if over_by else 0
    minutes = _counted(before.minutes, service, seen.ready, policy, now)
    return changed(
        before,
        looked_at=now,
        over=over,
        over_by=over_by or before.over_by,
        over_at=now if over else before.over_at,
        signalled_at=now if over >= policy.scale_looks else before.signalled_at,
        ready=seen.ready,
        live=seen.live,
        changed_at=before.changed_at if same else now,
        minutes=minutes,
        days=_learned(before, minutes, policy, now),
    )


def _counted(
    minutes: tuple[Minute, ...], service: Loaded, ready: int, policy: Policy, now: float
) -> tuple[Minute, ...]:
    """With this look added to its minute; those that no rule reads any more are dropped."""
    number = int(now) // MINUTE_S
    oldest = number - policy.scale_in_s // MINUTE_S - 1
    last = minutes[-1] if minutes and minutes[-1].number == number else Minute(number)
    waiting, known = service.waiting or 0, service.p99_ms is not None
    added = Minute(
        number,
        last.looks + 1,
        last.copies + ready,
        last.running + (service.running or 0),
        last.waiting + waiting,
        max(last.most_waiting, waiting),
        last.unknown + (service.running is None or service.waiting is None),
        last.within + (known and not slow(service, policy)),
        last.over + slow(service, policy),
    )
    return (*[m for m in minutes if oldest <= m.number < number], added)


def _learned(before: Scaling, minutes: tuple[Minute, ...], policy: Policy, now: float) -> tuple[Day, ...]:
    """The days, with the minute that ended since the last look."""
    ended = before.minutes[-1] if before.minutes and before.minutes[-1].number != minutes[-1].number else None
    days = tuple(d for d in before.days if d.number > int(now) // DAY_S - policy.capacity_days)
    told = ended is not None and (ended.over or ended.within == ended.looks)
    if ended is None or not told or not ended.copies or ended.unknown:
        return days
    number, carried = ended.number * MINUTE_S // DAY_S, ended.running / ended.copies
    day = next((d for d in days if d.number == number), Day(number))
    if ended.over:
        day = day._replace(over=carried if day.over is None else min(day.over, carried))
    else:
        day = day._replace(best=max(day.best, carried))
    return (*(d for d in days if d.number != number), day)


def capacity(service: Service, policy: Policy, now: float) -> float:
    """Calls that one copy runs at once within the target.

    The best 1-min mean of the last days, each day back worth less; not less than half of what the engine takes, unless
    a minute at less than that was over the target: then that minute's load, where nothing better is known.
    """
    first = max(1.0, service.max_num_seqs * policy.capacity_first_pct / 100)
    days, today = service.scaling.days if service.scaling else (), int(now) // DAY_S
    kept = 1 - policy.capacity_decay_pct / 100
    best = max((d.best * kept ** (today - d.number) for d in days), default=0.0)
    too_much = min((d.over for d in days if d.over is not None), default=first)
    return max(best, first) if too_much >= first else max(1.0, best or too_much)
