"""Many hosts fell silent at once: more likely our view than their death, so nothing is moved until they report."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.hosts import silent
from scheduler.memory import HUNDRED
from scheduler.policy import Policy
from scheduler.world import Host


def fell_together(hosts: Iterable[Host], policy: Policy, now: float) -> bool:
    """True while enough hosts are silent that were last heard within one window. One host alone never freezes."""
    heard = [host for host in hosts if host.seen_at is not None]
    times = sorted(host.seen_at for host in heard if host.seen_at is not None and silent(host, policy, now))
    most = max((_within(times, first, policy.freeze_window_s) for first in times), default=0)
    return most >= policy.freeze_hosts and most * HUNDRED > len(heard) * policy.freeze_pct


def _within(times: list[float], first: float, window_s: float) -> int:
    return sum(first <= time <= first + window_s for time in times)
