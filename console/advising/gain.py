"""What a pool that only observes or suggests would have gained: its advice of 30 days, summed."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from console.fleet.models import Pool
from console.journal.models import Advice
from console.journal.words import reason_word
from scheduler.decision import Reason
from scheduler.policy import Policy

DAYS = 30
HOUR_S, GIB = 3600, 1024
#: Advice that would have given memory back for as long as it stood.
GIVES_BACK = (Reason.IDLE, Reason.SURPLUS)


@dataclass(frozen=True, slots=True)
class Gain:
    """`mib_h`: MiB times hours in which idle copies held what nobody asked of them."""

    pool: str
    mode: str
    counts: list[tuple[str, int]]  # reason in words, most frequent first
    mib_h: float

    @property
    def gib_h(self) -> float:
        return self.mib_h / GIB

    @property
    def mean_gib(self) -> float:
        """On average at any moment of the 30 days."""
        return self.gib_h / (DAYS * 24)


def gains(now: datetime, rules: Policy) -> list[Gain]:
    """One a pool whose mode does not let it act, by name; one query."""
    since = now - timedelta(days=DAYS)
    rows = Advice.objects.filter(Q(closed_at=None) | Q(closed_at__gte=since)).exclude(pool__mode=Pool.Mode.ENFORCE)
    columns = rows.order_by("pool__name").values_list(
        "pool__label", "pool__mode", "reason", "opened_at", "closed_at", "replica__kv_granted_mib",
        "service__weights_mib", "service__headroom_mib", "service__overhead_mib",
    )  # fmt: skip
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    mib_h: dict[tuple[str, str], float] = defaultdict(float)
    for pool, mode, reason, opened, closed, *claim in columns:
        counts[pool, mode][reason] += 1
        if reason in GIVES_BACK:
            hours = ((closed or now) - max(opened, since)).total_seconds() / HOUR_S
            mib_h[pool, mode] += _held(claim, rules) * max(0.0, hours)
    return [
        Gain(pool, str(Pool.Mode(mode).label), _named(found), mib_h[pool, mode])
        for (pool, mode), found in counts.items()
    ]


def _held(claim: list[Any], rules: Policy) -> int:
    kv, weights, headroom, overhead = claim
    if weights is None:
        return 0
    return int(weights + headroom + (rules.default_overhead_mib if overhead is None else overhead) + (kv or 0))


def _named(found: Counter[str]) -> list[tuple[str, int]]:
    return [(str(reason_word(reason)), count) for reason, count in found.most_common()]
