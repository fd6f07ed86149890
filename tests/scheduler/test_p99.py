"""P99 over its window, and the disturbance of a neighbour: unknown is None, never zero."""

from __future__ import annotations

import pytest

from scheduler.histogram import SLOT_S, Histogram, Tally, unpacked
from scheduler.p99 import disturbance_pct, p99
from scheduler.policy import Policy
from tests.scheduler.cases import cases

NOW = 1_000_000.0
LAST = int(NOW) // SLOT_S - 1  # the last slot that is over
POLICY = Policy()


def of(ms: float, samples: int) -> Histogram:
    tally = Tally()
    for _ in range(samples):
        tally.add(ms)
    return unpacked(*tally.packed())


def slots(*filled: tuple[int, float, int]) -> dict[int, Histogram]:
    """(slots ago, ms, samples)."""
    return {LAST - ago: of(ms, samples) for ago, ms, samples in filled}


def p99_of(one: dict[int, Histogram], *more):
    return p99([one], *more)


def test_copies_count_together():
    parts = [slots((0, 400, 30)), slots((0, 900, 20), (1, 900, 2)), {}]
    assert p99(parts, POLICY, NOW) == (pytest.approx(900, rel=0.02), 52)


def test_the_newest_minute_counts():
    found, samples = p99_of(slots((0, 400, 60), (20, 5000, 60)), POLICY, NOW)
    assert found == pytest.approx(400, rel=0.02)
    assert samples == 60


def test_a_quiet_service_is_read_over_five_minutes():
    found, samples = p99_of(slots(*((ago, 400, 2) for ago in range(40))), POLICY, NOW)
    assert samples == 50, "stretched only until there are enough"
    assert found == pytest.approx(400, rel=0.02)


@cases("each", [0, 1])
def test_too_few_calls_tell_nothing(each):
    found, samples = p99_of(slots(*((ago, 9000, each) for ago in range(60))), POLICY, NOW)
    assert found is None
    assert samples == 29 * each + each  # five minutes of slots that are over


def test_nothing_before_the_copies_changed():
    before = slots((0, 300, 30), (1, 300, 30), (2, 9000, 500), (3, 9000, 500))
    since = (LAST - 1) * SLOT_S
    found, samples = p99_of(before, POLICY, NOW, since)
    assert (found, samples) == (pytest.approx(300, rel=0.02), 60)
    assert p99_of(before, POLICY, NOW, since + 1)[0] is None, "a slot that began before it is of both times"


def test_one_call_in_a_hundred_is_no_p99_two_are():
    calm = slots((0, 200, 99)) | slots((1, 4000, 1))
    assert p99_of(calm, POLICY, NOW)[0] == pytest.approx(200, rel=0.02)
    rough = slots((0, 200, 98)) | slots((1, 4000, 2))
    assert p99_of(rough, POLICY, NOW)[0] == pytest.approx(4000, rel=0.02)


@cases(("now_ms", "then_ms", "pct"), [(24, 20, 20), (20, 20, 0), (10, 20, -50)])
def test_disturbance_is_against_the_five_minutes_before(now_ms, then_ms, pct):
    gaps = slots(*((ago, now_ms, 100) for ago in range(2)), *((ago, then_ms, 100) for ago in range(4, 30)))
    assert disturbance_pct(gaps, POLICY, NOW) == pytest.approx(pct, abs=4 * (1 + pct / 100) + 0.1)


def test_disturbance_needs_samples_on_both_sides():
    assert disturbance_pct(slots((0, 24, 100)), POLICY, NOW) is None
    assert disturbance_pct(slots((20, 24, 100)), POLICY, NOW) is None
    assert disturbance_pct(slots((0, 24, 100), (60, 24, 100)), POLICY, NOW) is None, "older than 5 min is no past"
