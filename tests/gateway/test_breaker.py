from __future__ import annotations

from console.gateway.breaker import Breaker
from console.gateway.limits import Limits

LIMITS = Limits()


def broken(now: float = 100.0) -> Breaker:
    breaker = Breaker(LIMITS)
    for n in range(5):
        breaker.failed(1, now + n / 10)
    return breaker


def test_five_failures_within_the_window_open_it() -> None:
    breaker = Breaker(LIMITS)
    for n in range(4):
        breaker.failed(1, 100.0 + n)
        assert breaker.usable(1)
    breaker.failed(1, 104.0)
    assert not breaker.usable(1)
    assert breaker.usable(2)


def test_slow_failures_do_not() -> None:
    breaker = Breaker(LIMITS)
    for n in range(20):
        breaker.failed(1, n * 3.0)
    assert breaker.usable(1)


def test_a_whole_answer_forgets_failures() -> None:
    breaker = Breaker(LIMITS)
    for n in range(20):
        breaker.failed(1, n / 10)
        if n % 4 == 3:
            breaker.served(1)
    assert breaker.usable(1)


def test_a_stall_opens_it_at_once() -> None:
    breaker = Breaker(LIMITS)
    breaker.stalled(1, 100.0)
    assert not breaker.usable(1)


def test_pauses_double_up_to_the_bound() -> None:
    breaker = broken()
    now, pauses = 100.4, []
    for _ in range(6):
        start = now
        while not breaker.due(now):
            now += 0.5
        pauses.append(round(now - start))
        breaker.probe_failed(1, now)
    assert pauses == [5, 10, 20, 40, 60, 60]
    breaker.served(1)
    assert breaker.usable(1)


def test_failures_of_calls_begun_before_do_not_prolong_it() -> None:
    breaker = broken()
    for n in range(20):
        breaker.failed(1, 101.0 + n / 10)
    assert breaker.due(105.5) == [1]


def test_it_forgets_replicas_that_are_gone() -> None:
    breaker = broken()
    breaker.forget_others({2})
    assert breaker.usable(1)
    assert breaker.due(1000.0) == []
