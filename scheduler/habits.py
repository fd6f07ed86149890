"""From the past of a service to what is expected of a day: hours by kind of day, and periodic jobs to the minute.

Dates, hours and minutes are of site time; which dates are worked on is given as data. Nothing here knows a clock.
"""

from __future__ import annotations

from calendar import monthrange
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum

from scheduler.memory import HUNDRED
from scheduler.policy import Policy

HOURS, HOUR_MIN, MINUTE_S, DAY_MIN, WEEK = 24, 60, 60, 1440, 7
MONTHS = 12
#: How far back an occasion is looked for, in days: thirteen months.
FARTHEST = 396


class DayKind(StrEnum):
    WORKDAY = "workday"
    DAY_OFF = "dayoff"


Kinds = Mapping[date, DayKind]


@dataclass(frozen=True, slots=True)
class Past:
    """`called`: observed date → hours with at least one call, as bits (bit 0: midnight); a quiet day is there with 0.

    `starts`: (date, minute of the day) of first calls after a pause, in any order.
    """

    called: Mapping[date, int] = field(default_factory=dict)
    starts: Sequence[tuple[date, int]] = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """A periodic job is expected at `minute` of the day with `probability`; `rule` is a key of `RULES`."""

    minute: int
    probability: float
    rule: str


@dataclass(frozen=True, slots=True)
class Day:
    """`hours`: probability of at least one call in each of 24; `moments` by minute."""

    hours: tuple[float, ...]
    moments: tuple[Moment, ...]


def day_ahead(past: Past, kinds: Kinds, day: date, today: date, policy: Policy) -> Day:
    """What is expected of `day`, from the whole days before `today`. `kinds` must name every date that is looked at."""
    jobs = moments(past.starts, kinds, day, today, policy)
    return Day(hourly(unexplained(past, jobs, policy), kinds, kinds[day], today, policy), jobs)


def unexplained(past: Past, jobs: Sequence[Moment], policy: Policy) -> Mapping[date, int]:
    """`past.called` without the hours that only these jobs filled: they are expected to the minute, not by the hour."""
    tolerance = policy.forecast_tolerance_s // MINUTE_S
    if not jobs:
        return past.called
    starts: dict[date, list[int]] = defaultdict(list)
    for day, minute in past.starts:
        starts[day].append(minute)
    left = dict(past.called)
    for day, minutes in starts.items():
        if day in left:
            ours = {m for m in minutes if any(abs(m - job.minute) <= tolerance for job in jobs)}
            left[day] = _without(left[day], ours, {m for m in minutes if m not in ours})
    return left


def _without(bits: int, jobs: Iterable[int], others: Iterable[int]) -> int:
    """Hours of the jobs, and those into which they lasted, are taken out; an hour in which others began stays."""
    began = {minute // HOUR_MIN for minute in others}
    for minute in jobs:
        hour = minute // HOUR_MIN
        while hour < HOURS and bits >> hour & 1 and hour not in began:
            bits &= ~(1 << hour)
            hour += 1
    return bits


def hourly(called: Mapping[date, int], kinds: Kinds, kind: DayKind, today: date, policy: Policy) -> tuple[float, ...]:
    """Probability of a call in each hour of a day of this kind.

    Share of observed days with a call in that hour, younger weeks counting more; shrunk to the share over all days,
    and that to zero, each as if `forecast_prior_days` more days had been seen (an empirical-Bayes mean).
    """
    oldest = today - timedelta(days=WEEK * policy.forecast_weeks)
    days = [(day, bits) for day, bits in called.items() if oldest <= day < today]
    weights = {day: (policy.forecast_decay_pct / HUNDRED) ** ((today - day).days // WEEK) for day, _ in days}
    alike = {day for day, _ in days if kinds[day] is kind}
    whole, own = sum(weights.values()), sum(weights[day] for day in alike)
    prior = policy.forecast_prior_days
    found = []
    for hour in range(HOURS):
        hits = [day for day, bits in days if bits >> hour & 1]
        coarse = sum(weights[day] for day in hits) / (whole + prior)
        found.append((sum(weights[day] for day in hits if day in alike) + prior * coarse) / (own + prior))
    return tuple(found)


def moments(
    starts: Iterable[tuple[date, int]], kinds: Kinds, day: date, today: date, policy: Policy
) -> tuple[Moment, ...]:
    """Periodic jobs expected on `day`; one that several rules find is there once, as the surest of them says."""
    tolerance = policy.forecast_tolerance_s // MINUTE_S
    by_day = _by_day(starts, tolerance)
    if not by_day:
        return ()
    since = min(by_day)
    found: list[Moment] = []
    for name, rule in RULES.items():
        days = list(_first(rule(day, kinds), since, today, policy.forecast_occasions))
        found += _repeated([by_day.get(one, []) for one in days], name, policy)
    found.sort(key=lambda m: (-m.probability, m.minute, m.rule))
    kept: list[Moment] = []
    for one in found:
        if all(abs(one.minute - other.minute) > tolerance for other in kept):
            kept.append(one)
    return tuple(sorted(kept, key=lambda m: m.minute))


def _by_day(starts: Iterable[tuple[date, int]], tolerance: int) -> dict[date, list[int]]:
    """Minutes by date; the last of a day also as the first before the next: midnight parts no job from itself."""
    found: dict[date, list[int]] = defaultdict(list)
    for day, minute in starts:
        found[day].append(minute)
        if minute >= DAY_MIN - tolerance:
            found[day + timedelta(days=1)].append(minute - DAY_MIN)
    return dict(found)


def _first(days: Iterator[date], since: date, today: date, most: int) -> Iterator[date]:
    """The last occasions that are over, newest first, none before the service was known."""
    count = 0
    for day in days:
        if day < since or count == most:
            return
        if day < today:
            count += 1
            yield day


def _repeated(occasions: Sequence[Sequence[int]], rule: str, policy: Policy) -> Iterator[Moment]:
    """Minutes around which enough of the occasions had a start, the most frequent first."""
    if len(occasions) < policy.forecast_repeats:
        return
    tolerance = policy.forecast_tolerance_s // MINUTE_S
    at: dict[int, set[int]] = defaultdict(set)
    for i, minutes in enumerate(occasions):
        for minute in minutes:
            at[minute].add(i)
    while at:
        hits = {m: set().union(*(at.get(n, ()) for n in range(m - tolerance, m + tolerance + 1))) for m in at}
        best = max(at, key=lambda m: (len(hits[m]), len(at[m]), -m))
        if len(hits[best]) < policy.forecast_repeats:
            return
        if best >= 0:
            yield Moment(best, len(hits[best]) / len(occasions), rule)
        at = {m: days for m, days in at.items() if abs(m - best) > tolerance}


# Rules: the days before `day` on which a job of that kind would have begun, newest first


def _daily(day: date, kinds: Kinds) -> Iterator[date]:
    """Days of the same kind: what runs on workdays is not expected on Sunday."""
    for back in range(1, FARTHEST):
        before = day - timedelta(days=back)
        if kinds.get(before) is kinds[day]:
            yield before


def _weekly(day: date, kinds: Kinds) -> Iterator[date]:
    for back in range(WEEK, FARTHEST, WEEK):
        yield day - timedelta(days=back)


def _monthly(day: date, kinds: Kinds) -> Iterator[date]:
    """The same day of the months that have it."""
    for year, month in _months_before(day):
        if day.day <= monthrange(year, month)[1]:
            yield date(year, month, day.day)


def _last_workday(day: date, kinds: Kinds) -> Iterator[date]:
    """If it is the last workday of its month: those of the months before."""
    if last_workday(day.year, day.month, kinds) != day:
        return
    for year, month in _months_before(day):
        if (last := last_workday(year, month, kinds)) is not None:
            yield last


def last_workday(year: int, month: int, kinds: Kinds) -> date | None:
    """None where a day of the month's end is not known."""
    for number in range(monthrange(year, month)[1], 0, -1):
        kind = kinds.get(date(year, month, number))
        if kind is None:
            return None
        if kind is DayKind.WORKDAY:
            return date(year, month, number)
    return None


def _months_before(day: date) -> Iterator[tuple[int, int]]:
    for back in range(1, MONTHS + 1):
        whole = day.year * MONTHS + day.month - 1 - back
        yield whole // MONTHS, whole % MONTHS + 1


RULES: dict[str, Callable[[date, Kinds], Iterator[date]]] = {
    "daily": _daily,
    "weekly": _weekly,
    "monthly": _monthly,
    "last_workday": _last_workday,
}
