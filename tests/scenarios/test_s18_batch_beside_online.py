"""S18: batch by night makes its online neighbour slower: its concurrency is lowered until the neighbour is in its band.

How much slower is the simulator's documented model (`workers/simulator/interference.py`), told as simulated: the
strength is set so that the whole batch costs what the story tells, and varied to both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from scheduler.isolation import Step, caps, day_calls, quiet_p99s, stepped, steps
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.world import Profile, World
from tests.scheduler.build import NOW, a_card, a_replica, a_service, a_world
from workers.simulator.interference import busy_share, slowdown

POLICY = Policy()
NIGHT, DAY = 2 * 60, 14 * 60
BASE_MS = 420.0
LOOK_S = 10.0  # a slot of the gateways' figures
BATCH, ONLINE = 1, 2


@dataclass
class Shared:
    """A card with batch and an online neighbour; `behind_s`: figures follow what happens so much later."""

    strength: float
    seqs: int = 16
    minute: int = NIGHT
    behind_s: float = LOOK_S
    now: float = NOW
    world: World = field(init=False)
    rises: list[float] = field(default_factory=list)  # of the neighbour's P99, percent, at each look
    calls: list[int] = field(default_factory=list)
    taken: list[tuple[float, Step]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = a_world(
            a_card(),
            a_service("night-batch", profile=Profile.BATCH, min_replicas=1, max_num_seqs=self.seqs),
            a_service("hotline", min_replicas=1),
            a_replica(BATCH, "night-batch"),
            a_replica(ONLINE, "hotline", p99_ms=BASE_MS, in_flight=3),
            site_minute=self.minute,
        )
        for replica, p99_ms in quiet_p99s(self.world, POLICY, self.now).items():  # an evening without batch
            self._replica(replica, quiet_p99_ms=p99_ms)

    def _replica(self, id: int, **fields: object) -> None:
        replicas = {**self.world.replicas, id: replace(self.world.replicas[id], **fields)}
        self.world = replace(self.world, replicas=replicas)

    def rise_pct(self, calls: int) -> float:
        return (slowdown([busy_share(calls, self.seqs)], self.strength) - 1) * 100

    def look(self, wanted: int) -> None:
        """A slot passes: as many batch calls run as want to and may."""
        cap = caps(self.world, []).get("c1")
        by_day = day_calls(self.world, POLICY, self.world.services["night-batch"], self.now)
        limits = [limit for limit in (by_day, None if cap is None else cap.calls) if limit is not None]
        running = min([wanted, self.seqs, *limits])
        self.calls.append(running)
        self.rises.append(self.rise_pct(running))
        seen = self.rises[max(0, len(self.rises) - 1 - round(self.behind_s / LOOK_S))]
        self._replica(BATCH, in_flight=running, last_call_at=self.now)
        self._replica(ONLINE, p99_ms=BASE_MS * (1 + seen / 100))
        for step in steps(self.world, POLICY, self.now):
            self.taken.append((self.now, step))
            card = stepped(self.world.cards["c1"], step, self.now)
            self.world = replace(self.world, cards={"c1": card})
        for replica, p99_ms in quiet_p99s(self.world, POLICY, self.now).items():
            self._replica(replica, quiet_p99_ms=p99_ms)
        if len(self.calls) % 12 == 1:
            heard = {name: replace(host, seen_at=self.now) for name, host in self.world.hosts.items()}
            self.world = replace(self.world, hosts=heard)
            assert plan(self.world, POLICY, self.now) == [], "nothing is moved and nobody is stopped"
        self.now += LOOK_S


def test_nineteen_percent_become_twelve_and_stay_there():
    shared = Shared(strength=0.19)
    assert shared.rise_pct(16) == pytest.approx(19.0)
    for _ in range(360):
        shared.look(16)
    assert shared.rises[0] == pytest.approx(19.0)
    first = shared.taken[0][1]
    assert (first.old, first.new, first.numbers["neighbour"]) == (None, 8, "hotline")
    later = shared.rises[12:]
    assert sorted(later)[len(later) * 3 // 4] <= 12.0
    assert sum(later) / len(later) <= 12.0
    assert max(later) <= 14.0, "never again far out: one step too many, and that is taken back"
    assert min(shared.calls) >= 2, "and batch goes on"


@pytest.mark.parametrize("strength", [0.095, 0.118])
def test_what_stays_in_the_band_is_not_touched(strength):
    shared = Shared(strength)
    for _ in range(60):
        shared.look(16)
    assert shared.taken == []
    assert set(shared.calls) == {16}


@pytest.mark.parametrize(("strength", "seqs"), [(0.25, 16), (0.3, 24), (0.34, 32), (0.38, 64)])
@pytest.mark.parametrize("behind_s", [0.0, 10.0, 30.0])
def test_a_stronger_neighbourhood_is_brought_back_too(strength, seqs, behind_s):
    """Up to double the story's strength, however late the figures follow."""
    shared = Shared(strength, seqs, behind_s=behind_s)
    for _ in range(360):
        shared.look(seqs)
    later = sorted(shared.rises[30:])
    assert later[len(later) // 2] <= 12.0
    assert sum(later) / len(later) <= 12.0


@pytest.mark.parametrize("strength", [1.0, 2.0])
def test_where_even_one_call_is_too_much_one_is_left(strength):
    """Such a pair belongs on two cards, or on slices: the controller can only do its part, and says so."""
    shared = Shared(strength)
    for _ in range(60):
        shared.look(16)
    assert set(shared.calls[40:]) == {1}
    assert shared.taken[-1][1].numbers["over_pct"] > 0


@pytest.mark.parametrize("strength", [0.19, 0.38, 0.9])
def test_by_day_the_first_look_lowers_it(strength):
    shared = Shared(strength, minute=DAY, behind_s=0.0)
    shared.look(16)
    assert shared.calls[0] == POLICY.batch_day_calls, "it had a trickle to begin with"
    if shared.rise_pct(POLICY.batch_day_calls) > POLICY.neighbour_rise_day_pct:
        assert shared.taken[0][0] == NOW
        assert shared.taken[0][1].new == POLICY.batch_day_calls // 2


def test_the_morning_ends_the_free_hours_and_the_evening_brings_them_back():
    shared = Shared(strength=0.05)
    shared.look(16)
    shared.world = replace(shared.world, site_minute=7 * 60)
    shared.look(16)
    shared.world = replace(shared.world, site_minute=22 * 60)
    shared.look(16)
    assert shared.calls == [16, 4, 16]


def test_when_batch_ends_the_neighbour_and_the_limit_are_as_before():
    shared = Shared(strength=0.3)
    for _ in range(30):
        shared.look(16)
    assert shared.world.cards["c1"].batch_calls is not None
    for _ in range(200):
        shared.look(0)
    assert shared.rises[-1] == 0
    assert shared.world.cards["c1"].batch_calls is None
    assert shared.world.replicas[ONLINE].quiet_p99_ms == pytest.approx(BASE_MS, rel=0.02)
