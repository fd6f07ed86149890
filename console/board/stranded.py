"""Fragmentation as the board tells it: of the memory that is free, how much the expected mix cannot use."""

from __future__ import annotations

from collections.abc import Iterable

from console.fleet.models import Pool


def stranded_pct(pools: Iterable[Pool]) -> float | None:
    """F over these pools, as last measured by control; None: not measured yet."""
    known = [pool for pool in pools if pool.free_mib is not None and pool.stranded_mib is not None]
    free = sum(pool.free_mib or 0 for pool in known)
    if not known:
        return None
    return 100 * sum(pool.stranded_mib or 0 for pool in known) / free if free else 0.0
