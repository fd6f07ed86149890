"""S19: a spike of four times in half a minute: shaved by what can be served in time, copies come, nobody is dropped."""

from __future__ import annotations

import pytest

from scheduler.decision import Verb
from scheduler.hold import hold_cap_s
from tests.plays.farm import Farm
from tests.scenarios.crowd import Crowd
from tests.scheduler.build import NOW, a_card, a_replica, a_service, a_world


def a_site(load_s: float, answer_s: float, most: int = 8) -> Crowd:
    """Two copies of 16 calls at once, six more cards free on four hosts."""
    service = a_service("s", weights=30_000, min_replicas=2, max_replicas=most, generation_s=answer_s)
    cards = [a_card(f"c{n}", host=f"h{n % 4}") for n in range(8)]
    there = [a_replica(n + 1, "s", card=f"c{n}") for n in range(2)]
    loads = {("s", f"h{n}"): [load_s] * 3 for n in range(4)}
    return Crowd(Farm(a_world(service, *cards, *there, load_s=loads), load_s={"s": load_s}), "s", answer_s)


def spike(crowd: Crowd, usual: float, times: float, seconds: int = 30) -> None:
    """From the usual number of calls a second to so many times as many."""
    for second in range(seconds):
        crowd.step(usual * (1 + (times - 1) * (second + 1) / seconds))


@pytest.mark.parametrize(
    ("load_s", "answer_s", "times"), [(45.0, 4.0, 4), (20.0, 4.0, 4), (45.0, 2.0, 6), (60.0, 8.0, 4)]
)
def test_a_spike_is_shaved_and_answered_by_more_copies(load_s, answer_s, times):
    crowd = a_site(load_s, answer_s)
    usual = 10 / answer_s
    crowd.steps(60, usual)
    assert crowd.refused == []
    spike(crowd, usual, times)
    crowd.steps(180, usual * times)
    assert crowd.dropped == 0, "after acceptance"
    starts = [d for _, d in crowd.farm.journal if d.verb is Verb.START]
    assert starts, "copies come"
    assert {d.reason.value for d in starts} <= {"queue", "p99"}
    cap_s = hold_cap_s(crowd.farm.policy, crowd.service)
    assert max(crowd.waits_s) <= cap_s + answer_s, "who was let in is served within the hold"
    before = len(crowd.refused)
    crowd.steps(60, usual * times)
    assert len(crowd.refused) == before, "with the copies there nobody is refused any more"


def test_who_is_refused_is_told_when_the_first_copy_comes():
    """A wall of calls: what cannot be served is refused at once, with the load's own rest as the time to come back."""
    crowd = a_site(40.0, 4.0)
    crowd.steps(30, 2.0)
    crowd.step(at_once=400)
    crowd.steps(40, 40.0)
    coming = [
        retry for at, retry in crowd.refused if any(d.verb is Verb.START for t, d in crowd.farm.journal if t < at)
    ]
    assert coming
    assert max(coming) <= 41
    assert min(coming) >= 1
    assert sorted(coming, reverse=True) == coming, "counted down"
    assert crowd.dropped == 0


def test_at_its_maximum_the_rest_is_refused_for_as_long_as_it_lasts_and_nobody_waits_too_long():
    crowd = a_site(20.0, 4.0, most=3)
    crowd.steps(300, 40.0)
    assert len(crowd.ready()) == 3
    late = [at for at, _ in crowd.refused if at > NOW + 200]
    assert late
    assert all(retry == 4 for at, retry in crowd.refused if at > NOW + 200), "when an answer has ended"
    assert max(crowd.waits_s) <= 20
    served = crowd.served
    crowd.steps(60, 40.0)
    assert crowd.served - served == pytest.approx(3 * 16 / 4 * 60, rel=0.05), "the engines are full all the time"
    assert crowd.dropped == 0


def test_a_calm_day_refuses_nobody():
    crowd = a_site(45.0, 4.0)
    crowd.steps(600, 2.5)
    assert (crowd.refused, crowd.dropped) == ([], 0)
    assert not [d for _, d in crowd.farm.journal if d.refusal is None]
