"""The seam of the forecast: rows to what a World carries, and what the page of a service says of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Count, Max

from console.catalog.models import Forecast as ForecastRow
from console.catalog.models import Reads as ReadsRow
from console.catalog.models import Service
from console.same_rows import Standing
from scheduler.world import Forecast, Reads

READS = Standing(lambda: ReadsRow.objects.order_by(), "pk", "host__name", "loader", "sums")
_known: tuple[tuple[Any, ...], Mapping[str, Forecast]] = ((), {})


def forecasts() -> Mapping[str, Forecast]:
    """By service name. They change a few times a day: one query asks whether any did, and only then all are read."""
    global _known
    version = tuple(ForecastRow.objects.aggregate(Count("pk"), Max("pk"), Max("changed_at")).values())
    if version != _known[0] or version[0] == 0:
        _known = version, _read() if version[0] else {}
    return _known[1]


def _read() -> Mapping[str, Forecast]:
    rows = ForecastRow.objects.values_list(
        "service__name", "hours_from", "hours", "recalls", "moments", "load_s", "automatic"
    )
    return {
        name: Forecast(
            hours_from=hours_from.timestamp(),
            hours=tuple(hours),
            recalls=tuple(map(bool, recalls)),
            moments=tuple((at, probability) for at, probability, _ in moments),
            load_s=load_s,
            automatic=automatic,
        )
        for name, hours_from, hours, recalls, moments, load_s, automatic in rows
    }


def reads() -> Mapping[tuple[str, str], Reads]:
    """(host, loader) → what real loads took there."""
    return {(host, loader): Reads(*sums) for _, host, loader, sums in READS.all()}


def turn_on(service: Service, now: datetime) -> bool:
    """The owner's switch: what was of no use is forgotten, or the next preload would be judged with it."""
    off = ForecastRow.objects.filter(service=service, automatic=False)
    return bool(off.update(automatic=True, judged=[], changed_at=now))


def turn_off(service: Service, now: datetime) -> bool:
    """Its owner would rather wait for callers."""
    return bool(ForecastRow.objects.filter(service=service, automatic=True).update(automatic=False, changed_at=now))
