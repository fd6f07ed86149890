"""A load that fails, a card that is to blame, a host that dies and comes back: over whole histories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.decision import Reason, Verb
from scheduler.draft import Draft
from scheduler.memory import held_mib
from scheduler.world import Phase, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world

CARDS = [a_card(f"c{i}", f"h{i % 2}", total=40960) for i in range(5)]


def test_a_load_that_fails_is_tried_again_and_then_elsewhere():
    farm = Farm(a_world(*CARDS, a_service()), fails={("s", "c0")})
    farm.call("s", stream=True)
    took = farm.until(lambda f: "s" in f.answered)
    starts = farm.did("s", Verb.START)
    assert [d.cards[0] for d in starts[:4]] == ["c0"] * 4
    assert starts[4].cards[0] != "c0"
    assert 0 + 10 + 30 + 10 <= took <= 70


def test_while_it_pauses_the_caller_is_held_and_not_refused():
    farm = Farm(a_world(*CARDS, a_service()), fails={("s", "c0")})
    farm.call("s", stream=True)
    farm.until(lambda f: "s" in f.answered)
    assert {o.state for _, o in farm.told["s"]} == {"loading"}
    assert set(farm.refusals("s")) == {"back_off"}


def test_after_three_cards_the_caller_gets_the_reason():
    farm = Farm(a_world(*CARDS, a_service()), fails={("s", c.id) for c in CARDS})
    farm.call("s", stream=True)
    farm.until(lambda f: "load_failed" in f.refusals("s"))
    last = farm.told["s"][-1][1]
    assert last.refusal.numbers["fault"] == "crashed"
    assert last.plain_now
    assert len({d.cards[0] for d in farm.did("s", Verb.START)}) == 3


def test_a_mended_service_is_tried_again_by_itself():
    farm = Farm(a_world(*CARDS, a_service()), fails={("s", c.id) for c in CARDS})
    farm.call("s", stream=True)
    farm.until(lambda f: "load_failed" in f.refusals("s"))
    farm.fails.clear()
    assert farm.until(lambda f: "s" in f.answered) <= POLICY.down_retry_s + 20


def test_others_on_the_card_feel_nothing():
    neighbour = [a_service("n", tier=Tier.HOT), a_replica(1, "n", "c0", last_call_at=NOW)]
    farm = Farm(a_world(*CARDS, a_service(), *neighbour), fails={("s", c.id) for c in CARDS})
    farm.call("s")
    for _ in range(120):
        farm.step()
    assert farm.did("n") == []


def pair(**more):
    return a_service(min_replicas=2, max_replicas=2, **more)


def a_pair_farm() -> Farm:
    farm = Farm(a_world(*CARDS, a_card("c9", "h9", total=40960), pair()))
    farm.until(lambda f: len(f.ready("s")) == 2)
    return farm


def test_a_lost_hosts_replica_is_rebuilt_within_its_load_time_and_nothing_else_moves():
    farm = a_pair_farm()
    victim, stays = farm.ready("s")
    farm.dead.add(farm.world.cards[victim.cards[0]].host)
    began = farm.now
    farm.until(lambda f: len(f.ready("s")) == 3)
    assert POLICY.lost_s <= farm.now - began <= POLICY.lost_s + 15
    assert [d.reason for _, d in farm.journal if d.refusal is None][-1] is Reason.REBUILD
    assert farm.world.replicas[stays.id] == replace(stays, since=stays.since, quiet=False)


def test_its_memory_stays_booked_until_it_reports():
    farm = a_pair_farm()
    victim = farm.ready("s")[0]
    farm.dead.add(farm.world.cards[victim.cards[0]].host)
    farm.until(lambda f: len(f.ready("s")) == 3)
    seats = Draft(farm.world, POLICY, farm.now).book(victim.cards[0]).seats
    assert sum(held_mib(s.replica, s.service, POLICY) for s in seats) == 13000


def test_when_it_comes_back_one_too_many_drains_and_stops():
    farm = a_pair_farm()
    farm.dead.add(farm.world.cards[farm.ready("s")[0].cards[0]].host)
    farm.until(lambda f: len(f.ready("s")) == 3)
    farm.dead.clear()
    farm.until(lambda f: len(f.world.replicas) == 2)
    assert [d.reason for d in farm.did("s", Verb.DRAIN)] == [Reason.SURPLUS]
    assert len({farm.world.cards[r.cards[0]].host for r in farm.ready("s")}) == 2


def test_a_short_silence_moves_nothing():
    farm = a_pair_farm()
    farm.dead.add(farm.world.cards[farm.ready("s")[0].cards[0]].host)
    for _ in range(50):
        assert farm.step() == []
    farm.dead.clear()
    assert farm.step() == []


def test_a_frozen_farm_goes_on_when_it_thaws():
    farm = Farm(replace(a_world(*CARDS, a_service()), frozen=True))
    farm.call("s")
    for _ in range(5):
        farm.step()
    assert farm.did("s") == []
    assert farm.told["s"][-1][1].refusal.code == "frozen"
    farm.world = replace(farm.world, frozen=False)
    farm.until(lambda f: "s" in f.answered)


@pytest.mark.parametrize(("tier", "ends"), [(Tier.WARM, Phase.ASLEEP), (Tier.COLD, None)])
def test_an_idle_service_goes_by_its_tier_with_notice_and_comes_back_when_called(tier, ends):
    card = a_card(total=24576)
    farm = Farm(a_world(card, a_service(tier=tier), a_service("x"), a_replica(last_call_at=NOW)))
    farm.until(lambda f: not f.ready("s"), limit_s=2000)
    assert farm.now - NOW >= POLICY.idle_unload_s + POLICY.grace_s
    farm.until(lambda f: [r.phase for r in f.world.replicas.values()] == ([ends] if ends else []))
    began = farm.now
    farm.call("s")
    farm.until(lambda f: "s" in f.answered)
    assert farm.now - began == (farm.wake_s if ends else 10.0)


def test_a_call_in_the_grace_calls_the_reclaim_off():
    farm = Farm(a_world(a_card(total=24576), a_service(), a_service("x"), a_replica(last_call_at=NOW)))
    farm.until(lambda f: f.world.replicas[1].drain_at is not None, limit_s=2000)
    farm.step(299)
    farm.change(1, last_call_at=farm.now)
    farm.step()
    assert farm.world.replicas[1].drain_at is None
    assert farm.world.replicas[1].phase is Phase.READY


def a_draining_farm() -> Farm:
    """One copy that began to drain for idleness just now, with a stream in flight."""
    replica = a_replica(phase=Phase.DRAINING, reason="idle", want_since=NOW)
    farm = Farm(a_world(a_card(total=24576), a_service(), a_service("x"), replica))
    farm.calls[1] = 1
    return farm


def test_what_is_in_flight_when_the_drain_begins_finishes_first():
    farm = Farm(
        a_world(a_card(total=24576), a_service(), a_service("x"), a_replica(phase=Phase.DRAINING, reason="idle"))
    )
    farm.change(1, want_since=NOW)
    farm.calls[1] = 1
    for _ in range(100):
        farm.step()
    assert farm.did("s") == []
    farm.calls[1] = 0
    farm.step()
    assert [d.verb for d in farm.did("s")] == [Verb.STOP]


def test_a_ten_minute_stream_outlasts_every_convenience():
    """After 1800 s the replica is ready again and left alone for an hour."""
    farm = Farm(
        a_world(a_card(total=24576), a_service(), a_service("x"), a_replica(phase=Phase.DRAINING, reason="idle"))
    )
    farm.change(1, want_since=NOW)
    farm.calls[1] = 1
    farm.until(lambda f: bool(f.ready("s")), limit_s=2000)
    assert farm.now - NOW == POLICY.drain_overdue_s + 1
    assert farm.world.replicas[1].left_alone_until == farm.now - 1 + POLICY.left_alone_s


def test_foreign_memory_is_waited_out_without_a_manual_step():
    """A process of somebody else holds the card; the caller is refused with the shortfall, then served."""
    farm = Farm(a_world(a_card(total=24576), a_service()))
    blocked = replace(farm.world.cards["c1"], driver_reserved_mib=20000)
    free = farm.world.cards["c1"]
    farm.world = replace(farm.world, cards={"c1": blocked})
    farm.call("s", stream=True)
    farm.step()
    told = farm.told["s"][-1][1]
    assert (told.refusal.code, told.refusal.numbers["short_mib"] > 0) == ("no_capacity", True)
    farm.world = replace(farm.world, cards={"c1": free})
    farm.step(2)
    assert [d.verb for d in farm.step()] in ([], [Verb.START])
    farm.until(lambda f: "s" in f.answered)
