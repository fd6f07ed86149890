"""The histogram's promise, for any durations: every quantile within 2 %, however the samples were split."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from scheduler.histogram import ERROR, Histogram, Tally, unpacked

DURATIONS = st.lists(st.floats(0.001, 4_000_000, allow_nan=False), min_size=1, max_size=120)


def packed(values: list[float]) -> Histogram:
    tally = Tally()
    for value in values:
        tally.add(value)
    return unpacked(*tally.packed())


@given(DURATIONS, st.floats(0.01, 1.0))
def test_every_quantile_is_within_the_error(values: list[float], share: float) -> None:
    told = packed(values).quantile_ms(share)
    exact = sorted(values)[max(1, math.ceil(share * len(values))) - 1]
    assert told is not None
    if exact <= 1:
        assert told == 1
    else:
        assert abs(told - exact) <= exact * ERROR * (1 + 1e-9)


@given(st.lists(DURATIONS, min_size=1, max_size=5))
def test_merging_loses_nothing(parts: list[list[float]]) -> None:
    merged = Histogram()
    for part in parts:
        merged = merged.plus(packed(part))
    assert merged == packed([value for part in parts for value in part])
