"""V17, V22, V23: demand that has gone, what counts as use, and the order in which a busy engine is put away."""

from __future__ import annotations

import pytest

from scheduler.decision import Reason, Verb
from scheduler.policy import Policy
from scheduler.world import Phase, Profile, Want
from tests.scenarios.lagging import Lagging
from tests.scheduler.build import NOW, a_card, a_replica, a_service, a_world

GIB = 1024


def one_of_two(**more) -> Lagging:
    """A card that fits only one of A and B; each loads for a minute."""
    a, b = (a_service(n, 15 * GIB, 24 * GIB) for n in "AB")
    return Lagging(a_world(a_card(), a, b), load_s={"A": 60.0, "B": 60.0}, lag_s=3.0, **more)


@pytest.mark.parametrize("left_after_s", [1, 3, 20, 50])
def test_v17_a_load_nobody_waits_for_makes_way_for_who_waits(left_after_s):
    farm = one_of_two()
    farm.call("A", stream=True)
    farm.step(left_after_s)
    farm.hang_up("A")
    farm.step(2)
    came = farm.now
    farm.call("B", stream=True)
    farm.until(lambda f: bool(f.did("A", Verb.STOP)), limit_s=5)
    farm.until(lambda f: not [r for r in f.world.replicas.values() if r.service == "A"], limit_s=10)
    farm.until(lambda f: "B" in f.answered, limit_s=100)
    assert farm.now - came <= 60 + farm.stop_s + farm.lag_s + 5
    assert "A" not in farm.answered


def test_v17_with_nobody_else_waiting_it_may_finish_and_its_idle_time_begins():
    farm = one_of_two()
    farm.call("A", stream=True)
    farm.step(3)
    farm.hang_up("A")
    farm.until(lambda f: bool(f.ready("A")), limit_s=70)
    ready_at = farm.now
    notice = farm.until(lambda f: any(r.drain_at is not None for r in f.ready("A")), limit_s=3000)
    assert farm.policy.idle_unload_s <= notice <= farm.policy.idle_unload_s + 5
    assert ready_at + notice == farm.now


#: Everything short, so that one rule is seen at a time; both cards are more than half full, or the copy would stay.
QUICK = Policy(idle_unload_s=60, grace_s=30, min_loaded_s=10)


@pytest.mark.parametrize("stream_s", [30, 90, 400])
def test_v22_the_idle_time_runs_from_the_end_of_an_answer(stream_s):
    copy = a_replica(1, "s", kv_granted_mib=24 * GIB, last_call_at=NOW)
    another = a_service("x")  # the only service of a pool would be kept
    farm = Lagging(a_world(a_card(), a_service("s", 30 * GIB, 24 * GIB), another, copy), policy=QUICK)
    farm.calls[1] = 1
    for _ in range(stream_s):
        farm.step()
        assert farm.did("s") == []
    farm.calls[1] = 0
    seen_last = farm.now - 1  # by the tick before
    farm.until(lambda f: bool(f.did("s", Verb.DRAIN)))
    assert farm.now - seen_last >= QUICK.idle_unload_s
    assert farm.did("s", Verb.DRAIN)[0].not_before - seen_last >= QUICK.idle_unload_s + QUICK.grace_s


def evicting(answer_s: float, profile: Profile = Profile.LOWFREQ) -> Lagging:
    """A grew beyond its claim until the card is nearly full, with one answer in flight that takes `answer_s` more."""
    online = a_service("hotline", 16 * GIB, 34 * GIB)
    grower = a_service("A", 7 * GIB, 6 * GIB, profile=profile)
    there = [
        a_replica(1, "A", kv_granted_mib=6 * GIB, last_call_at=NOW),
        a_replica(2, "hotline", kv_granted_mib=34 * GIB, last_call_at=NOW),
    ]
    world = a_world(a_card(), a_card("c2", "h2"), online, grower, *there)
    farm = Lagging(world, grown={1: 24 * GIB, 2: 50 * GIB}, load_s={"A": 8.0})
    farm.calls.update({1: 1, 2: 1})
    farm.ends_at = NOW + answer_s
    return farm


def events_of(farm: Lagging, limit_s: float = 120.0) -> list[tuple[float, str]]:
    """What befell replica 1, in its order, until it is gone."""
    seen: list[tuple[float, str]] = []
    began = farm.now
    while 1 in farm.world.replicas:
        assert farm.now - began < limit_s
        if farm.now >= farm.ends_at and farm.calls.get(1):
            farm.calls[1] = 0
            seen.append((farm.now, "answered"))
        seen += [(farm.now, d.verb.value) for d in farm.step() if d.replica == 1 and d.refusal is None]
    return [*seen, (farm.now, "gone")]


@pytest.mark.parametrize("answer_s", [4, 8, 15])
def test_v23_under_pressure_an_answer_that_ends_in_time_is_whole(answer_s):
    farm = evicting(answer_s)
    events = [what for _, what in events_of(farm)]
    assert events == ["drain", "answered", "stop", "gone"]
    assert not any(d.force for d in farm.did("A"))
    assert farm.did("hotline") == [], "the online neighbour is never touched"
    farm.until(lambda f: bool(f.ready("A")), limit_s=60)
    assert farm.ready("A")[0].cards == ("c2",)


def test_v23_one_that_does_not_is_cut_at_the_bound_and_not_before():
    farm = evicting(90.0)
    events = events_of(farm)
    assert [what for _, what in events] == ["drain", "stop", "gone"]
    drained, stopped = events[0][0], events[1][0]
    assert farm.policy.pressure_drain_s <= stopped - drained <= farm.policy.pressure_drain_s + 2
    assert [d.force for d in farm.did("A", Verb.STOP)] == [True]


@pytest.mark.parametrize("reason", [Reason.IDLE, Reason.SURPLUS, Reason.REPACK, Reason.BUDGET])
def test_v23_no_convenience_cuts_however_long_it_takes(reason):
    copy = a_replica(1, "s", phase=Phase.DRAINING, reason=reason.value, want_since=NOW, kv_granted_mib=24 * GIB)
    farm = Lagging(a_world(a_card(), a_service("s", 30 * GIB, 24 * GIB), copy))
    farm.calls[1] = 1
    while farm.now - NOW < farm.policy.drain_overdue_s:
        farm.step(10)
        assert farm.world.replicas[1].want in (Want.DRAINED, Want.READY)
    farm.until(lambda f: f.world.replicas[1].want is Want.READY, limit_s=20)
    assert not any(d.verb is Verb.STOP or d.force for d in farm.did("s"))
    assert farm.world.replicas[1].left_alone_until >= farm.now + farm.policy.left_alone_s - 20
