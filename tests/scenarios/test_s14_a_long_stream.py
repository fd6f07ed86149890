"""S14: a scale-in never cuts a call: a free copy goes, or the drain waits, and in the end goes back."""

from __future__ import annotations

import pytest

from scheduler.decision import Reason, Verb
from scheduler.looks import Minute, Scaling
from scheduler.world import Phase, Want
from tests.plays.farm import Farm
from tests.scenarios.crowd import Crowd
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world


def a_quiet_site(copies: int, least: int = 2) -> Crowd:
    """Quiet for so long that the next plan scales in."""
    minutes = tuple(Minute(int(NOW) // 60 - ago, 10, 10 * copies) for ago in range(21, -1, -1))
    known = Scaling(looked_at=NOW, ready=copies, live=copies, changed_at=NOW - 3600, minutes=minutes)
    service = a_service(
        "s", weights=30_000, min_replicas=least, max_replicas=8, scaling=known, generation_s=4.0, last_reclaimed_at=None
    )
    cards = [a_card(f"c{n}", host=f"h{n % 4}") for n in range(8)]
    there = [a_replica(n + 1, "s", card=f"c{n}", last_call_at=NOW) for n in range(copies)]
    return Crowd(Farm(a_world(service, *cards, *there)), "s")


def stream(crowd: Crowd, replica: int, seconds: float) -> None:
    assert crowd.arrive(seconds, replica)


def of(crowd: Crowd, number: int):
    return crowd.farm.world.replicas[number]


@pytest.mark.parametrize("holder", [1, 4, 6])
def test_the_copy_with_the_stream_is_not_chosen_while_another_is_free(holder):
    crowd = a_quiet_site(6)
    stream(crowd, holder, 600)
    crowd.steps(30)
    assert of(crowd, holder).phase is Phase.READY
    assert len(crowd.ready()) == 2
    crowd.steps(600)
    assert (crowd.served, crowd.dropped) == (1, 0)


def all_streaming(seconds: dict[int, float]) -> Crowd:
    """Three copies, one must go, none is free."""
    crowd = a_quiet_site(3)
    for number, length in seconds.items():
        stream(crowd, number, length)
    crowd.step()
    return crowd


@pytest.mark.parametrize("length", [600, 1200, 1790])
def test_if_it_must_go_its_drain_waits_while_tokens_flow(length):
    crowd = all_streaming({1: length, 2: length + 100, 3: length + 100})
    draining = [r for r in crowd.replicas() if r.want is Want.DRAINED]
    assert [r.id for r in draining] == [1]
    crowd.steps(length - 10)
    assert of(crowd, 1).phase is Phase.DRAINING, "overdue, and waiting"
    crowd.steps(30)
    assert 1 not in crowd.farm.world.replicas or of(crowd, 1).phase in (Phase.STOPPED, Phase.ASLEEP)
    assert crowd.served == 1
    assert crowd.dropped == 0


def test_after_half_an_hour_it_goes_back_to_ready_and_is_left_alone_for_an_hour():
    crowd = all_streaming(dict.fromkeys((1, 2, 3), 2 * 3600.0))
    began = crowd.farm.now
    gone = next(r.id for r in crowd.replicas() if r.want is Want.DRAINED)
    crowd.steps(POLICY.drain_overdue_s + 3)
    back = of(crowd, gone)
    assert (back.phase, back.want) == (Phase.READY, Want.READY)
    assert back.left_alone_until == pytest.approx(began + POLICY.drain_overdue_s + POLICY.left_alone_s, abs=5)
    [(at, decision)] = [(at, d) for at, d in crowd.farm.journal if d.reason is Reason.UNNEEDED]
    assert (decision.verb, decision.replica) == (Verb.WAKE, gone)
    assert decision.numbers["lasted_s"] >= POLICY.drain_overdue_s
    crowd.steps(POLICY.scale_in_s + 60)
    assert of(crowd, gone).want is Want.READY, "left alone"
    assert crowd.dropped == 0


def test_calls_that_come_again_take_a_draining_copy_back():
    """Nothing is loaded while a copy that is still warm only waits for its stream."""
    crowd = all_streaming({1: 900, 2: 1000, 3: 1000})
    assert len(crowd.ready()) == 2
    crowd.step(at_once=60)
    crowd.steps(25, 8.0)
    assert of(crowd, 1).want is Want.READY
    woken = [d for _, d in crowd.farm.journal if d.verb is Verb.WAKE and d.replica == 1]
    assert woken[0].reason in (Reason.QUEUE, Reason.P99)
    assert crowd.dropped == 0
