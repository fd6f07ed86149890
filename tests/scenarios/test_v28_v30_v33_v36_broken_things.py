"""V28, V30, V31, V33, V36: loads that fail, hosts that die or are cut off, cards that cannot be read or are lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.decision import Verb
from scheduler.draft import Draft
from scheduler.memory import held_mib
from scheduler.world import Phase, Want, World
from tests.plays.farm import Farm
from tests.scenarios.lagging import Lagging
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world

GIB = 1024


def booked_mib(farm: Farm, card: str) -> int:
    book = Draft(farm.world, POLICY, farm.now).book(card)
    return sum(held_mib(s.replica, s.service, POLICY) for s in book.seats)


def with_card(world: World, card: str, **fields: object) -> World:
    return replace(world, cards={**world.cards, card: replace(world.cards[card], **fields)})


# V28


@pytest.mark.parametrize("bad", [{"c1"}, {"c1", "c2"}])
def test_v28_a_failed_load_holds_neither_memory_nor_the_name(bad):
    cards = [a_card("c1"), a_card("c2", "h2")]
    farm = Farm(a_world(*cards, a_service("s", 30 * GIB, 8 * GIB)), fails={("s", c) for c in bad})
    farm.call("s", stream=True)
    farm.until(lambda f: any(r.phase is Phase.FAILED for r in f.world.replicas.values()))
    assert booked_mib(farm, "c1") == booked_mib(farm, "c2") == 0
    farm.fails.clear()
    farm.until(lambda f: "s" in f.answered, limit_s=POLICY.down_retry_s + 120)
    living = [r for r in farm.world.replicas.values() if r.phase is not Phase.FAILED]
    assert len(living) == 1
    assert farm.world.services["s"].failures == ()


@pytest.mark.parametrize("after_s", [1, 15, 29])
def test_v28_a_cancelled_load_is_gone_and_may_begin_again(after_s):
    cards = [a_card("c1")]
    a, b = (a_service(n, 30 * GIB, 16 * GIB) for n in "AB")
    farm = Lagging(a_world(*cards, a, b), load_s={"A": 30.0, "B": 5.0})
    farm.call("A", stream=True)
    farm.step(after_s)
    farm.hang_up("A")
    farm.call("B", stream=True)  # the only way a load is cancelled: somebody else needs its memory
    farm.until(lambda f: "B" in f.answered, limit_s=60)
    assert booked_mib(farm, "c1") == b.claim.fixed_mib + b.claim.kv_cap_mib
    farm.step(POLICY.min_loaded_s + POLICY.grace_room_s + 1)
    farm.call("A", stream=True)
    farm.until(lambda f: "A" in f.answered, limit_s=120)


# V30, V31


def two_hosts(**more: object) -> Farm:
    """The only copy is on h1; h2 is in maintenance."""
    cards = [a_card("c1", "h1"), a_card("c2", "h2", cordoned=True)]
    there = a_replica(1, "s", "c1", last_call_at=NOW)
    return Farm(a_world(*cards, a_service("s"), there), **more)


def test_v30_what_died_with_its_host_is_rebuilt_only_where_work_is_allowed():
    farm = two_hosts()
    farm.dead.add("h1")
    for _ in range(POLICY.lost_s + 60):
        farm.step()
    assert farm.did("s", Verb.START) == []
    farm.call("s", stream=True)
    farm.step()
    told = farm.told["s"][-1][1]
    assert told.refusal is not None, "callers get a reason, not silence"
    assert told.refusal.code in ("cordoned", "host_lost")
    farm.world = with_card(farm.world, "c2", cordoned=False)
    farm.until(lambda f: any(r.cards == ("c2",) for r in f.ready("s")), limit_s=30)


def test_v30_a_host_that_comes_back_empty_gets_new_work():
    farm = two_hosts()
    farm.dead.add("h1")
    for _ in range(POLICY.lost_s + 30):
        farm.step()
    farm.dead.clear()
    farm._drop(1)  # its report no longer names the copy
    farm.call("s", stream=True)
    farm.until(lambda f: "s" in f.answered, limit_s=60)
    assert [r.cards for r in farm.ready("s")] == [("c1",)]
    assert booked_mib(farm, "c1") == 13000


@pytest.mark.parametrize("cut_s", [90, 300])
def test_v31_a_cut_off_hosts_memory_stays_booked_and_one_copy_too_many_goes_when_it_is_back(cut_s):
    cards = [a_card("c1", "h1"), a_card("c2", "h2")]
    farm = Farm(a_world(*cards, a_service("s", min_replicas=1), a_replica(1, "s", "c1", last_call_at=NOW)))
    farm.dead.add("h1")
    began = farm.now
    while farm.now - began < cut_s:
        farm.step()
        assert booked_mib(farm, "c1") == 13000
    assert [d.cards for d in farm.did("s", Verb.START)] == [("c2",)], "once, elsewhere"
    farm.dead.clear()
    farm.until(lambda f: len(f.world.replicas) == 1, limit_s=60)
    assert len(farm.ready("s")) == 1


# V33


@pytest.mark.parametrize("blind_s", [30, 600])
def test_v33_cards_that_cannot_be_read_get_nothing_and_lose_nothing(blind_s):
    class Blind(Farm):
        def _measured(self, card):
            seen = super()._measured(card)
            return replace(seen, unavailable_mib=None) if card.id == "c1" and self.now < NOW + blind_s else seen

    runs = [a_service("a"), a_replica(1, "a", "c1", last_call_at=NOW, kv_granted_mib=4000)]
    farm = Blind(a_world(a_card("c1"), *runs, a_service("s")))
    farm.call("s", stream=True)
    while farm.now < NOW + blind_s:
        assert [d for d in farm.step() if d.refusal is None] == []
        farm.change(1, last_call_at=farm.now)
    assert set(farm.refusals("s")) == {"unmeasured"}
    farm.step()
    farm.step()
    assert farm.did("s", Verb.START), "fresh values, and it goes on by itself"
    assert farm.did("a") == []


# V36


def four_cards(**more: object) -> Farm:
    """A copy on each card of h1; h2 has room. Services of one pool, all in use."""
    cards = [a_card(f"c{i}", "h1") for i in range(4)] + [a_card("d0", "h2"), a_card("d1", "h2")]
    services = [a_service(f"s{i}", 30 * GIB, 20 * GIB, min_replicas=1) for i in range(4)]
    copies = [a_replica(i, f"s{i}", f"c{i}", last_call_at=NOW, kv_granted_mib=20 * GIB) for i in range(4)]
    return Farm(a_world(*cards, *services, *copies), **more)


@pytest.mark.parametrize("lost", ["c0", "c2"])
def test_v36_a_lost_card_moves_its_own_copy_and_nobody_elses(lost):
    farm = four_cards()
    index = int(lost[1])
    farm.world = with_card(farm.world, lost, healthy=False)
    farm.change(index, phase=Phase.FAILED, fault="card_lost", fatal=False, failures_here=1, failed_at=farm.now)
    farm.until(lambda f: bool(f.ready(f"s{index}")), limit_s=90)
    (rebuilt,) = farm.ready(f"s{index}")
    assert farm.world.cards[rebuilt.cards[0]].host == "h2"
    for other in {0, 1, 2, 3} - {index}:
        assert farm.did(f"s{other}") == []


def test_v36_the_other_cards_of_its_host_take_work_and_so_does_it_when_it_has_healed():
    farm = four_cards()
    cards = {id: card for id, card in farm.world.cards.items() if card.host == "h1"}
    farm.world = replace(farm.world, cards=cards)
    farm.world = with_card(farm.world, "c2", healthy=False)
    small = a_service("n", 4000, 2000)
    farm.world = replace(farm.world, services={**farm.world.services, "n": small})
    farm.call("n", stream=True)
    farm.until(lambda f: "n" in f.answered)
    assert farm.ready("n")[0].cards != ("c2",)
    farm.world = with_card(farm.world, "c2", healthy=True)
    big = a_service("big", 16000, 4000)
    farm._drop(2)
    farm.world = replace(
        farm.world, services={k: v for k, v in farm.world.services.items() if k != "s2"} | {"big": big}
    )
    farm.call("big", stream=True)
    farm.until(lambda f: "big" in f.answered)
    assert farm.ready("big")[0].cards == ("c2",)
    assert all(r.want is Want.READY for r in farm.world.replicas.values())
