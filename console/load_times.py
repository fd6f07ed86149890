"""What real starts and wakes took, row to core: a part of the seam."""

from __future__ import annotations

from collections import defaultdict

from console.catalog.models import LoadTime
from scheduler.world import LoadTimes

Times = dict[tuple[str, str], LoadTimes]  # (service, host)


def load_times() -> tuple[Times, Times]:
    """(starts, wakes). One query."""
    found: dict[str, Times] = defaultdict(dict)
    rows = LoadTime.objects.values_list("kind", "service__name", "host__name", "seconds")
    for kind, service, host, seconds in rows:
        found[kind][service, host] = LoadTimes(tuple(seconds))
    return found["start"], found["wake"]
