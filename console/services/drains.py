"""Drains that outlast their bound: they cut nothing and go on, and the page says so."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from console import reading, state
from console.catalog.models import Replica, Service
from scheduler.estimate import drain_bound_s
from scheduler.policy import Policy
from scheduler.world import Phase, Want


def overdue(service: Service, rows: Sequence[Replica], rules: Policy) -> frozenset[int]:
    """Replicas of the service that have drained for longer than three of its answers take. A query when one drains."""
    now = time.time()
    draining = [row for row in rows if row.want == Want.DRAINED and row.phase in (Phase.READY, Phase.DRAINING)]
    if not draining:
        return frozenset()
    week = reading.week(state.moment(now - state.WEEK_S), [service.name])
    _, generation_s = week.get(service.name, (0, None))
    bound_s = drain_bound_s(rules, replace(state.claim_only(service, rules), generation_s=generation_s))
    return frozenset(row.pk for row in draining if now - row.want_since.timestamp() > bound_s)
