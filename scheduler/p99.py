"""The 99th percentile over a window of slots, and how much a neighbour disturbs: unknown below a number of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.histogram import SLOT_S, Histogram
from scheduler.policy import Policy

SHARE = 0.99  # the rule's own number: "P99"
#: Histograms by slot, the slot's time being its number x 10 s.
Slots = Mapping[int, Histogram]


def p99(copies: Sequence[Slots], policy: Policy, now: float, since: float = 0.0) -> tuple[float | None, int]:
    """(ms, samples) of all copies over the last `p99_window_s`, stretched back until there are enough samples.

    Never further back than `p99_stretch_s` or `since`; (None, samples) where that is too few.
    """
    oldest = max(since, now - policy.p99_stretch_s)
    found: list[Histogram] = []
    samples = 0
    for slot in range(int(now) // SLOT_S, int(oldest) // SLOT_S - 1, -1):
        begins = slot * SLOT_S
        if begins < oldest or (samples >= policy.p99_samples and now - begins > policy.p99_window_s):
            break
        there = [slots[slot] for slots in copies if slot in slots]
        found += there
        samples += sum([histogram.samples for histogram in there])
    if samples < policy.p99_samples:
        return None, samples
    return Histogram.sum(found).quantile_ms(SHARE), samples


def disturbance_pct(gaps: Slots, policy: Policy, now: float) -> float | None:
    """By how much the p99 gap between chunks exceeds that of the time before, in percent; negative: it fell.

    None where either has too few samples.
    """
    border_s = now - policy.disturbance_window_s
    border, oldest = border_s / SLOT_S, (border_s - policy.disturbance_past_s) / SLOT_S
    fresh = Histogram.sum(histogram for slot, histogram in gaps.items() if slot >= border)
    if fresh.samples < policy.p99_samples:
        return None
    past = Histogram.sum(histogram for slot, histogram in gaps.items() if oldest <= slot < border)
    if past.samples < policy.p99_samples:
        return None
    now_ms, then_ms = fresh.quantile_ms(SHARE), past.quantile_ms(SHARE)
    return None if now_ms is None or then_ms is None else (now_ms / then_ms - 1) * 100
