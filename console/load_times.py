"""What real starts and wakes took, row to core: a part of the seam."""

from __future__ import annotations

from collections import defaultdict

from console.catalog.models import LoadTime
from console.same_rows import Standing
from scheduler.world import LoadTimes

LOAD_TIMES = Standing(lambda: LoadTime.objects.order_by(), "pk", "kind", "service__name", "host__name", "seconds")
Times = dict[tuple[str, str], LoadTimes]  # (service, host)


def load_times() -> tuple[Times, Times]:
    """(starts, wakes). One query."""
    found: dict[str, Times] = defaultdict(dict)
    for _, kind, service, host, seconds in LOAD_TIMES.all():
        found[kind][service, host] = LoadTimes(tuple(seconds))
    return found["start"], found["wake"]
