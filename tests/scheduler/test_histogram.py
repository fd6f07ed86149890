"""Durations counted, merged, told: within 2 %."""

from __future__ import annotations

import random
import statistics

import pytest

from scheduler.histogram import BUCKETS, ERROR, MOST, Histogram, Tally, bucket, middle_ms, unpacked
from tests.scheduler.cases import cases


def filled(values) -> Histogram:
    tally = Tally()
    for value in values:
        tally.add(value)
    return unpacked(*tally.packed())


@cases("ms", [1.001, 2, 7.7, 41, 799, 800, 801, 12_345, 3_600_000])
def test_what_is_told_is_within_the_error(ms):
    assert middle_ms(bucket(ms)) == pytest.approx(ms, rel=ERROR)


@cases("ms", [-3, 0, 0.2, 1])
def test_below_a_millisecond_is_a_millisecond(ms):
    assert bucket(ms) == 0
    assert middle_ms(0) == 1


def test_beyond_the_last_bucket_counts_there():
    assert bucket(1e12) == BUCKETS - 1


CROWD = sorted(map(random.Random(7).lognormvariate, [5] * 5000, [1] * 5000))
COUNTED = filled(CROWD)


@cases("share", [0.5, 0.9, 0.99, 1.0])
def test_quantiles_of_a_crowd(share):
    exact = CROWD[max(0, -(-int(share * 5000 * 1000) // 1000) - 1)]
    assert COUNTED.quantile_ms(share) == pytest.approx(exact, rel=ERROR * 1.01)


def test_merged_is_as_if_counted_together():
    draw = random.Random(3)
    parts = [[draw.expovariate(1 / 300) for _ in range(200)] for _ in range(6)]
    merged = Histogram()
    for part in parts:
        merged = merged.plus(filled(part))
    assert merged == filled([value for part in parts for value in part])
    assert merged.samples == 1200


def test_nothing_has_no_quantile():
    assert Histogram().quantile_ms(0.99) is None
    assert Tally().packed() == (0, b"")
    assert unpacked(0, b"") == Histogram()


def test_the_first_and_the_last_bucket_travel():
    assert filled([0.1, 1e12]).quantile_ms(1.0) == middle_ms(BUCKETS - 1)
    assert filled([0.1, 0.1, 1e12]).quantile_ms(0.5) == 1


def test_a_count_too_large_for_its_two_bytes_is_cut_and_spoils_no_neighbour():
    tally = Tally()
    tally.counts[5], tally.counts[6] = MOST + 10, 1
    assert unpacked(*tally.packed()).samples == MOST + 1


@cases(("first", "packed"), [(-1, b"\1\0"), (BUCKETS, b"\1\0"), (BUCKETS - 1, b"\1\0\1\0"), (0, b"\1")])
def test_what_no_gateway_can_have_sent_is_refused(first, packed):
    with pytest.raises(ValueError, match="no histogram"):
        unpacked(first, packed)


def test_a_slot_of_a_usual_replica_is_small():
    draw = random.Random(1)
    tally = Tally()
    for _ in range(300):
        tally.add(draw.lognormvariate(5, 0.5))
    assert len(tally.packed()[1]) < 200


def test_half_of_the_samples_lie_below_the_median():
    values = [float(v) for v in range(1, 1001)]
    assert filled(values).quantile_ms(0.5) == pytest.approx(statistics.median_low(values), rel=ERROR)
