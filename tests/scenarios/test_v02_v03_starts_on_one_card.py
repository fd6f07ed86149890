"""V02, V03: one start at a time on a card, and none on memory that is still being given back."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from scheduler.decision import Verb
from scheduler.world import Phase, Want
from tests.plays.farm import Farm
from tests.scenarios.lagging import Lagging
from tests.scheduler.build import NOW, a_card, a_replica, a_service, a_world

GIB = 1024


def loading(farm: Farm) -> dict[str, list[str]]:
    """Services that load right now, by card."""
    found: dict[str, list[str]] = {}
    for replica in farm.world.replicas.values():
        if replica.phase is Phase.STARTING:
            found.setdefault(replica.cards[0], []).append(replica.service)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_v02_loads_of_one_card_never_overlap_and_those_of_two_do(seed):
    dice = Random(seed)
    kinds = {"a": "A", "b": "A", "x": "B", "y": "B"}
    services = [
        a_service(n, weights=dice.randint(2000, 14000), kv=dice.randint(1000, 9000), card_classes=frozenset({kind}))
        for n, kind in kinds.items()
    ]
    cards = [a_card("c1", "h1", card_class="A"), a_card("c2", "h2", card_class="B")]
    farm = Farm(a_world(*cards, *services), load_s=dict.fromkeys(kinds, 20.0))
    names = list(kinds)
    dice.shuffle(names)
    for name in names:
        farm.call(name, stream=True)
    together = 0
    while len(farm.answered) < len(names):
        assert farm.now - NOW < 120
        farm.step()
        seen = loading(farm)
        assert all(len(on) == 1 for on in seen.values())
        together += len(seen) == 2
    assert together >= 15, "two cards need not wait for each other"
    assert {r.kv_granted_mib for r in farm.world.replicas.values()} == {s.claim.kv_cap_mib for s in services}
    assert set(farm.refusals("a") + farm.refusals("b") + farm.refusals("x") + farm.refusals("y")) == {"load_in_flight"}


def test_v02_the_second_is_told_behind_whom_it_waits():
    farm = Farm(a_world(a_card(), a_service("a"), a_service("b")), load_s={"a": 20.0, "b": 20.0})
    farm.call("a", stream=True)
    farm.call("b", stream=True)
    farm.step()
    decisions = farm.step()
    (wait,) = [d for d in decisions if d.refusal is not None]
    assert (wait.service, wait.refusal.numbers["service"]) == ("b", "a")
    told = farm.told["b"][-1][1]
    assert (told.state, told.stage, told.refusal) == ("loading", "queued", None)


def swapping(lag_s: float, *more) -> Lagging:
    """A fills the card and is idle; B, which needs its room, is called."""
    a, b = (a_service(n, 15 * GIB, 24 * GIB) for n in "AB")
    there = a_replica(1, "A", kv_granted_mib=24 * GIB)
    return Lagging(a_world(a_card(), *more, a, b, there), lag_s=lag_s, load_s={"B": 10.0})


@pytest.mark.parametrize("lag_s", [1.0, 5.0, 15.0, 45.0])
def test_v03_nothing_starts_before_two_samples_show_the_memory_back(lag_s):
    farm = swapping(lag_s)
    farm.call("B", stream=True)
    stopped_at = None
    while "B" not in farm.answered:
        assert farm.now - NOW < 200
        farm.step()
        if stopped_at is None and 1 not in farm.world.replicas:
            stopped_at = farm.now
        started = [at for at, d in farm.journal if d.service == "B" and d.verb is Verb.START and d.refusal is None]
        if started:
            assert stopped_at is not None
            assert started[0] >= stopped_at + lag_s + 1, "two samples, a second apart"
            assert farm.states["c1"].releasing_mib == 0
        elif stopped_at is not None and farm.now < stopped_at + lag_s:
            assert farm.told["B"][-1][1].state == "loading", "the caller is held, not refused"


def test_v03_what_is_not_back_in_time_is_nobodys_and_the_caller_is_told_the_shortfall():
    farm = swapping(lag_s=10_000.0)
    farm.call("B", stream=True)
    farm.until(lambda f: f.states.get("c1") is not None and f.states["c1"].unexplained_mib > 0, limit_s=200)
    farm.step()
    assert farm.did("B") == []
    refusal = farm.told["B"][-1][1].refusal
    assert refusal is not None
    assert refusal.numbers["short_mib"] > 0


def test_v03_with_another_card_it_goes_there():
    farm = swapping(10_000.0, a_card("c2", "h2", cordoned=True), a_card("c1"))
    farm.call("B", stream=True)
    farm.until(lambda f: f.states.get("c1") is not None and f.states["c1"].unexplained_mib > 0, limit_s=200)
    farm.world = a_world_with_free_card(farm)
    farm.until(lambda f: "B" in f.answered, limit_s=60)
    assert [r.cards for r in farm.ready("B")] == [("c2",)]


def a_world_with_free_card(farm: Lagging):
    cards = {**farm.world.cards, "c2": replace(farm.world.cards["c2"], cordoned=False)}
    return replace(farm.world, cards=cards)


@pytest.mark.parametrize(("kept_mib", "rounds"), [(300, 30), (900, 30), (2500, 19), (4000, 12)])
def test_v11_what_every_round_leaves_behind_is_taken_off_the_room(kept_mib, rounds):
    """Loads and unloads: packing goes by what is measured, and refuses before the buffer is touched.

    81920 - reserve 600 - buffer 6554 - fixed 21480 - least KV 7124 leaves 46162 MiB for what others keep.
    """
    farm = Lagging(a_world(a_card(), a_service("s", 20 * GIB, 8 * GIB)), kept_mib=kept_mib, load_s={"s": 2.0})
    done = 0
    while done < 30 and load_and_unload(farm):
        done += 1
        assert farm.unexplained_mib("c1") == done * kept_mib
    assert done == rounds
    if rounds < 30:
        assert farm.told["s"][-1][1].refusal.numbers["short_mib"] > 0


def load_and_unload(farm: Lagging) -> bool:
    """False when the caller is refused."""
    farm.answered.clear()
    farm.call("s", stream=True)
    farm.step()
    farm.until(lambda f: "s" in f.answered or f.told["s"][-1][1].refusal is not None)
    if "s" not in farm.answered:
        return False
    (copy,) = farm.ready("s")
    farm.change(copy.id, phase=Phase.DRAINING, want=Want.DRAINED, quiet=True, reason="idle", want_since=farm.now)
    farm.until(lambda f: not f.world.replicas)
    farm.until(lambda f: not f.world.cards["c1"].releasing_mib)
    return True
