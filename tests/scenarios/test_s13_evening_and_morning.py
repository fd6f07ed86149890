"""S13: the evening gives copies back in one step, the morning has them again within two minutes; nobody is dropped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.decision import Reason, Verb
from scheduler.looks import Scaling
from scheduler.world import Tier
from tests.plays.farm import Farm
from tests.scenarios.crowd import Crowd
from tests.scheduler.build import NOW, a_card, a_replica, a_service, a_world

EVENING = NOW - NOW % 86400 + 86400 + 15 * 3600 + 600  # 23:10 in Shanghai is 15:10 UTC
NIGHT_S = 10 * 3600 + 1200  # to 09:30


def a_site(copies: int, load_s: float, policy_seqs: int = 16, **service) -> Crowd:
    """Eight cards on four hosts; the copies have been there since the afternoon."""
    offered = a_service(
        "s", weights=30_000, min_replicas=2, max_replicas=8, tier=Tier.COLD, max_num_seqs=policy_seqs, **service
    )
    cards = [a_card(f"c{n}", host=f"h{n % 4}") for n in range(8)]
    there = [a_replica(n + 1, "s", card=f"c{n}", since=EVENING - 9999, loaded_at=EVENING - 9999) for n in range(copies)]
    loads = {("s", f"h{n}"): [load_s] * 3 for n in range(4)}
    world = a_world(replace(offered, generation_s=4.0), *cards, *there, load_s=loads)
    return Crowd(Farm(world, now=EVENING, load_s={"s": load_s}), "s")


def drained(crowd: Crowd) -> list:
    return [d for at, d in crowd.farm.journal if d.verb is Verb.DRAIN and d.reason is Reason.SURPLUS]


@pytest.mark.parametrize(
    ("copies", "running", "left"),
    [(6, 16, 3), (6, 24, 5), (5, 3, 2)],
    ids=["golden", "busier", "idle"],
)
def test_the_evening_goes_down_in_one_step_and_drops_nobody(copies, running, left):
    crowd = a_site(copies, 45.0)
    crowd.steps(19 * 60, running / 4)
    assert len(crowd.ready()) == copies, "nothing before the time is up"
    crowd.steps(4 * 60, running / 4)
    made = drained(crowd)
    assert (len(crowd.ready()), len(made)) == (left, copies - left)
    assert len({at for at, d in crowd.farm.journal if d in made}) == 1, "in one step"
    assert crowd.scaling.came_from == copies
    crowd.steps(60, running / 4)
    assert [r.phase.value for r in crowd.replicas() if r.want.value != "ready"] == [], "all done inside the bound"
    assert crowd.dropped == 0
    crowd.steps(5 * 60, running / 4)
    assert len(crowd.ready()) == left, "and there it stays"
    assert crowd.refused == []


@pytest.mark.parametrize("load_s", [45.0, 80.0])
def test_the_morning_has_eight_again_within_two_minutes(load_s):
    """09:30: 48 run, 18 wait: 12 would be needed, 8 are allowed, in one step."""
    crowd = a_site(3, load_s, scaling=Scaling(came_from=6, came_from_at=EVENING))
    crowd.farm.now += NIGHT_S
    crowd.steps(120, 4.0)
    began = crowd.farm.now
    crowd.step(at_once=66)
    waited = 0
    while len(crowd.ready()) < 8:
        crowd.step(10.0)
        waited += 1
        assert waited < 400
    raises = [d for at, d in crowd.farm.journal if d.reason in (Reason.QUEUE, Reason.P99) and at >= began]
    assert {d.reason for d in raises if d.refusal is None} == {Reason.QUEUE}
    first = [d for d in raises if d.refusal is None and "raised_from" in d.numbers]
    assert len(first) == 5, "3 to 8 in one step"
    assert first[0].numbers["desired"] >= 8
    assert waited <= max(120, load_s + 30)
    ready_at = crowd.farm.now
    crowd.steps(330, 10.0)
    known = [ms for at, ms in crowd.p99s if at >= ready_at + 60]
    assert known[-1] is not None
    assert known[-1] <= 800, "over the last five minutes"
    assert crowd.slow_s(began) <= ready_at - began + 90, "the time above it"
    assert crowd.dropped == 0
    assert max(crowd.waits_s) <= 45, "nobody who was let in waited longer than a load"


def test_up_and_down_do_not_follow_each_other():
    """A load that stays is answered once: then the plan is quiet, past the time after which copies may go."""
    crowd = a_site(3, 20.0)
    crowd.step(at_once=66)
    crowd.steps(300, 9.0)
    acts = len([d for _, d in crowd.farm.journal if d.refusal is None])
    crowd.steps(1800, 9.0)
    later = [(at - EVENING, d.verb, d.reason) for at, d in crowd.farm.journal if d.refusal is None][acts:]
    assert later == []
    assert crowd.dropped == 0
