"""What giving memory back cost: calls that failed for it (harmful), and loads that came too soon after it (regret)."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.memory import ceil_div
from scheduler.policy import Policy

MINUTE_S = 60


def harmful(call_at: float, reclaimed_at: float | None, policy: Policy) -> bool:
    """A call that found its service not loaded and failed or was refused at `call_at`: is a reclaim to blame?"""
    return reclaimed_at is not None and 0 <= call_at - reclaimed_at < policy.harmful_within_s


def regrets(reclaims: Sequence[float], starts: Sequence[float], policy: Policy) -> list[float]:
    """Seconds from each reclaim to the cold start that made it a mistake; at most one a reclaim."""
    found = []
    for at in sorted(reclaims):
        after = [start - at for start in starts if 0 <= start - at < policy.regret_within_s]
        later = [one for one in reclaims if one > at]
        if after and (not later or min(after) <= min(later) - at):
            found.append(min(after))
    return found


def longer_idle_s(idle_unload_s: int, gaps_s: Sequence[float]) -> int:
    """An idle time with which none of these reclaims would have been: up to the longest gap, in whole minutes."""
    return ceil_div(int(idle_unload_s + max(gaps_s, default=0.0)) + 1, MINUTE_S) * MINUTE_S
