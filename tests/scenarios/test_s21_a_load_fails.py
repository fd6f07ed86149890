"""S21: a load fails for bad weights, want of memory, storage that is gone: tried again, elsewhere, then told why."""

from __future__ import annotations

import pytest

from scheduler.decision import Code, Verb
from scheduler.world import Phase, Profile, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world

CARDS = [a_card(f"c{i}", f"h{i // 2}", total=40960) for i in range(8)]
EVERYWHERE = {("s", card.id) for card in CARDS}


def a_farm(fault: str, *, fatal: bool = False, where=EVERYWHERE, **more) -> Farm:
    """The failing service beside a hot neighbour on every card, which is in use."""
    neighbours = [a_service(f"n{i}", 3000, 1000, tier=Tier.HOT) for i in range(len(CARDS))]
    seats = [a_replica(i + 1, f"n{i}", card.id, kv_granted_mib=1000, last_call_at=NOW) for i, card in enumerate(CARDS)]
    farm = Farm(a_world(*CARDS, a_service("s", **more), *neighbours, *seats), fails=set(where))
    farm.faults["s"] = (fault, fatal)
    farm.calls = {r.id: 2 for r in seats}
    return farm


def starts(farm: Farm) -> list[tuple[float, str]]:
    return [
        (at, d.cards[0]) for at, d in farm.journal if d.refusal is None and d.verb is Verb.START and d.service == "s"
    ]


def neighbours_moved(farm: Farm) -> list[object]:
    return [d for _, d in farm.journal if d.refusal is None and d.service != "s"]


@pytest.mark.parametrize("fault", ["out_of_memory", "crashed", "timeout", "storage_gone"])
def test_it_is_tried_again_with_back_off_then_on_another_card_and_after_three_it_is_down(fault):
    farm = a_farm(fault)
    farm.call("s", stream=True)
    farm.until(lambda f: "load_failed" in f.refusals("s"))
    tried = starts(farm)
    cards = list(dict.fromkeys(card for _, card in tried))
    assert len(cards) == POLICY.max_failed_cards
    for card in cards:
        at = [when for when, where in tried if where == card]
        gaps = [later - earlier for earlier, later in zip(at, at[1:], strict=False)]
        assert len(gaps) == 3
        assert gaps[1] >= POLICY.retry_second_s
        assert gaps[2] >= POLICY.retry_third_s


@pytest.mark.parametrize("fault", ["bad_weights", "bad_arguments"])
def test_what_no_card_would_cure_skips_the_retries(fault):
    farm = a_farm(fault, fatal=True)
    farm.call("s", stream=True)
    took = farm.until(lambda f: "load_failed" in f.refusals("s"))
    assert len(starts(farm)) == 1
    assert took < 10


@pytest.mark.parametrize(("fault", "fatal"), [("out_of_memory", False), ("bad_weights", True)])
def test_callers_hear_the_true_reason_and_when_to_come_back(fault, fatal):
    farm = a_farm(fault, fatal=fatal)
    farm.call("s", stream=True)
    farm.until(lambda f: "load_failed" in f.refusals("s"))
    refusal = farm.told["s"][-1][1].refusal
    assert (refusal.code, refusal.numbers["fault"]) == (Code.LOAD_FAILED, fault)
    assert 0 < refusal.numbers["retry_after_s"] <= POLICY.down_retry_s


@pytest.mark.parametrize(("fault", "fatal"), [("out_of_memory", False), ("storage_gone", False), ("bad_weights", True)])
def test_the_others_on_the_cards_feel_nothing(fault, fatal):
    farm = a_farm(fault, fatal=fatal)
    farm.call("s", stream=True)
    for _ in range(600):
        farm.step()
    assert neighbours_moved(farm) == []
    assert all(r.phase is Phase.READY for r in farm.world.replicas.values() if r.service != "s")


@pytest.mark.parametrize("host", ["h0", "h1", "h2", "h3"])
def test_storage_gone_on_one_host_leads_to_another_host(host):
    there = {("s", c.id) for c in CARDS if c.host == host}
    farm = a_farm("storage_gone", where=there)
    farm.call("s", stream=True)
    farm.until(lambda f: "s" in f.answered)
    (ready,) = farm.ready("s")
    assert farm.world.cards[ready.cards[0]].host != host
    assert "load_failed" not in farm.refusals("s")


@pytest.mark.parametrize("fault", ["out_of_memory", "bad_weights"])
def test_mended_it_is_tried_again_by_itself_within_300_s(fault):
    farm = a_farm(fault, fatal=fault == "bad_weights")
    farm.call("s", stream=True)
    farm.until(lambda f: "load_failed" in f.refusals("s"))
    farm.fails.clear()
    assert farm.until(lambda f: "s" in f.answered) <= POLICY.down_retry_s + 15


def test_a_load_that_fails_once_is_answered_within_its_second():
    farm = a_farm("out_of_memory", where={("s", "c0")}, profile=Profile.ONLINE)
    farm.call("s", stream=True)
    farm.until(lambda f: len(starts(f)) == 1)
    farm.fails.clear()
    assert farm.until(lambda f: "s" in f.answered) <= 10 + 3


def test_while_it_is_down_memory_of_failed_tries_is_nobodys():
    farm = a_farm("out_of_memory")
    farm.call("s", stream=True)
    farm.until(lambda f: "load_failed" in f.refusals("s"))
    farm.hang_up("s")
    for _ in range(20):
        farm.step()
    assert [r for r in farm.world.replicas.values() if r.service == "s" and r.awake] == []
