"""S05: a model idle for a week holds memory while a hot one cannot grow: it is announced and reclaimed, the hot one
scales, latency returns, and the journal says who was in whose way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.decision import Reason, Verb
from scheduler.world import Phase, Tier
from tests.plays.farm import Farm
from tests.scenarios.crowd import Crowd
from tests.scheduler.build import NOW, a_card, a_replica, a_service, a_world

WEEK = 7 * 86400


def a_site(tier: Tier = Tier.COLD, priority: int = 50, idle_mib: int = 50_000, **idle) -> Crowd:
    """Two cards: on each a copy has room for itself; the second is held by a model that nobody called for a week."""
    hot = a_service("hot", weights=50_000, max_replicas=4, tier=Tier.HOT, generation_s=4.0)
    other = a_service("idle", weights=idle_mib, tier=tier, priority=priority)
    cards = [a_card("c0", host="h0"), a_card("c1", host="h1")]
    idle = dict(last_call_at=NOW - WEEK) | idle
    there = [a_replica(1, "hot", card="c0"), a_replica(2, "idle", card="c1", **idle)]
    loads = {("hot", f"h{n}"): [30.0] * 3 for n in range(2)}
    return Crowd(Farm(a_world(hot, other, *cards, *there, load_s=loads), load_s={"hot": 30.0}), "hot")


def grow(crowd: Crowd) -> None:
    """Latency goes from 200 ms to seconds: 5 calls a second of 4 s each at an engine of 16."""
    crowd.steps(60, 1.0)
    known = [ms for _, ms in crowd.p99s if ms is not None]
    assert not known or known[-1] < 500
    crowd.steps(60, 5.0)


@pytest.mark.parametrize("tier", [Tier.COLD, Tier.WARM])
@pytest.mark.parametrize("idle_mib", [40_000, 60_000])
def test_the_idle_one_makes_room_and_latency_returns(tier, idle_mib):
    crowd = a_site(tier, idle_mib=idle_mib)
    grow(crowd)
    crowd.steps(120, 5.0)
    worst = max(ms for _, ms in crowd.p99s if ms is not None)
    assert worst >= 1500, "it was slow"
    went = [d for _, d in crowd.farm.journal if d.service == "idle" and d.refusal is None]
    assert went[0].verb is Verb.DRAIN
    assert went[0].not_before is not None, "announced"
    assert {d.numbers["room_for"] for d in went if d.verb is Verb.DRAIN and "room_for" in d.numbers} == {"hot"}
    assert went[-1].verb is (Verb.SLEEP if tier is Tier.WARM else Verb.STOP)
    came = [d for _, d in crowd.farm.journal if d.service == "hot" and d.verb is Verb.START and d.refusal is None]
    assert [d.reason for d in came] == [Reason.QUEUE] or [d.reason for d in came] == [Reason.P99]
    assert len(crowd.ready()) == 2
    crowd.steps(400, 5.0)
    assert crowd.p99s[-1][1] is not None
    assert crowd.p99s[-1][1] < 800, "latency returned"
    assert crowd.dropped == 0
    waited = [d.refusal.code.value for _, d in crowd.farm.journal if d.service == "hot" and d.refusal]
    assert "not_now" in waited, "the timeline says what it waited for"


@pytest.mark.parametrize(
    "kept",
    [
        {"last_call_at": NOW - 1, "in_flight": 1},  # in use
        {"left_alone_until": NOW + 9999},
        {"external": True, "measured_mib": 60_000},
    ],
)
def test_who_is_in_use_or_left_alone_stays(kept):
    crowd = a_site(**kept)
    if kept.get("in_flight"):
        crowd.farm.calls[2] = 1
    grow(crowd)
    crowd.steps(60, 5.0)
    assert crowd.farm.world.replicas[2].phase is Phase.READY
    assert not crowd.farm.did("idle")
    assert len(crowd.ready()) == 1
    assert crowd.dropped == 0


@pytest.mark.parametrize("fields", [{"whitelisted_until": NOW + WEEK}, {"priority": 51}, {"min_replicas": 1}])
def test_nor_does_one_that_is_whitelisted_or_worth_more(fields):
    crowd = a_site()
    services = dict(crowd.farm.world.services)
    services["idle"] = replace(services["idle"], **fields)
    crowd.farm.world = replace(crowd.farm.world, services=services)
    grow(crowd)
    crowd.steps(60, 5.0)
    assert crowd.farm.world.replicas[2].phase is Phase.READY


def test_a_call_in_the_notice_keeps_the_idle_one():
    crowd = a_site()
    crowd.steps(60, 1.0)
    while crowd.farm.world.replicas[2].drain_at is None:
        crowd.step(5.0)
        assert crowd.farm.now < NOW + 300
    crowd.farm.calls[2] = 1
    crowd.farm.change(2, last_call_at=crowd.farm.now, in_flight=1)
    crowd.steps(20, 5.0)
    assert crowd.farm.world.replicas[2].phase is Phase.READY
    assert [d.reason for d in crowd.farm.did("idle", Verb.WAKE)][:1] == [Reason.CALL]
