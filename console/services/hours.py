"""Calls by the hour of the last seven days, in the site's time: a heat map and its sums."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import sqrt
from typing import Any

from django.db.models import Max, Sum
from django.utils import timezone
from django.utils.formats import date_format

from console.usage.models import HourlyCalls

DAYS = 7
HOURS = 24
BUSY_PCT = 55  # from here on dark ground needs light digits


@dataclass(frozen=True, slots=True)
class Cell:
    """`calls` None: that hour has not come yet."""

    hour: int
    calls: int | None
    pct: int  # by the square root: a few calls are seen beside many
    now: bool

    @property
    def busy(self) -> bool:
        return self.pct >= BUSY_PCT


@dataclass(frozen=True, slots=True)
class Day:
    label: str
    cells: list[Cell]
    calls: int


@dataclass(frozen=True, slots=True)
class Week:
    """`hold_mean_s` and `hold_worst_s` (the longest of one call) are None when nobody had to wait."""

    days: list[Day]
    most: int
    calls: int
    failed: int
    cut: int
    cold: int
    hold_mean_s: float | None
    hold_worst_s: float | None
    answer_mean_s: float | None

    @property
    def cold_share(self) -> float | None:
        return self.cold / self.calls if self.calls else None


def week(service: str, now: datetime | None = None) -> Week:
    """One query: the sums of each hour."""
    now = now or timezone.now()
    sums = ("calls", "ok", "failed", "cut", "cold", "hold_ms", "total_ms")
    since = now - timedelta(days=DAYS)
    hours = HourlyCalls.objects.filter(service=service, hour__gte=since).values("hour").order_by()
    rows: list[Any] = list(hours.annotate(**_sums(sums), worst=Max("hold_max_ms")))
    whole = {name: sum(row[f"sum_{name}"] or 0 for row in rows) for name in sums}
    worst = max((row["worst"] or 0 for row in rows), default=0)
    by_hour: dict[tuple[date, int], int] = defaultdict(int)
    for row in rows:
        local = timezone.localtime(row["hour"])
        by_hour[local.date(), local.hour] += row["sum_calls"]
    most = max(by_hour.values(), default=0)
    return Week(
        days=_days(by_hour, most, timezone.localtime(now)),
        most=most,
        calls=whole["calls"],
        failed=whole["failed"],
        cut=whole["cut"],
        cold=whole["cold"],
        hold_mean_s=whole["hold_ms"] / whole["cold"] / 1000 if whole["cold"] else None,
        hold_worst_s=worst / 1000 if worst else None,
        answer_mean_s=whole["total_ms"] / whole["ok"] / 1000 if whole["ok"] else None,
    )


def _sums(names: tuple[str, ...]) -> dict[str, Sum]:
    return {f"sum_{name}": Sum(name) for name in names}


def _days(by_hour: dict[tuple[date, int], int], most: int, now: datetime) -> list[Day]:
    days = []
    for back in range(DAYS - 1, -1, -1):
        day = now.date() - timedelta(days=back)
        cells = []
        for hour in range(HOURS):
            to_come = back == 0 and hour > now.hour
            calls = None if to_come else by_hour.get((day, hour), 0)
            pct = round(100 * sqrt(calls / most)) if calls and most else 0
            cells.append(Cell(hour, calls, pct, back == 0 and hour == now.hour))
        days.append(Day(date_format(day, "m-d D"), cells, sum(cell.calls or 0 for cell in cells)))
    return days
