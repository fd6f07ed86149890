"""What is expected, and how much of what is free it could use: counted by control, read by plans and pages."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta

from django.db.models import Count

from console import claims, state
from console.catalog.models import Service
from console.fleet.models import Pool
from console.journal.models import Decision
from scheduler.decision import Reason, Verb
from scheduler.draft import Draft
from scheduler.fragmentation import Stranded

EXPECTED = timedelta(days=28)
#: Starts that say nothing about who will come: a move, and another try of the same start.
NO_DEMAND = (Reason.REPACK.value, Reason.FAULT.value, Reason.REGRANT.value)


def count_starts(now: float | None = None) -> int:
    """Writes on each service how often a copy was started in the last 28 days; how many rows changed."""
    since = state.moment(time.time() if now is None else now) - EXPECTED
    starts = Decision.objects.filter(verb=Verb.START.value, refusal="", at__gte=since, service__isnull=False)
    rows = starts.exclude(reason__in=NO_DEMAND).values_list("service_id").annotate(n=Count("pk")).order_by()
    counts = dict(rows)
    changed = 0
    for pk, known in Service.objects.values_list("pk", "starts_28d"):
        if (counted := counts.get(pk, 0)) != known:
            changed += Service.objects.filter(pk=pk).update(starts_28d=counted)
    return changed


def measure(now: float | None = None) -> Mapping[str, Stranded]:
    """Writes each pool's free and stranded memory; a pool without a usable card has none of either."""
    now = time.time() if now is None else now
    rules = state.policy()
    found = Draft(claims.world(now, rules), rules, now).stranded()
    for pool in Pool.objects.values_list("pk", "name"):
        part = found.get(pool[1], Stranded())
        Pool.objects.filter(pk=pool[0]).update(
            free_mib=part.free_mib, stranded_mib=round(part.stranded_mib), stranded_at=state.moment(now)
        )
    return found
