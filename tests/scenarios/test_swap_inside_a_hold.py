"""Two idle services of one priority on a card with room for one: a waiting call makes the other go, inside its hold."""

from __future__ import annotations

import pytest

from scheduler.decision import Verb
from scheduler.hold import hold_cap_s, outlook
from scheduler.world import Tier
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world

GIB = 1024


def a_farm(load_s: float, *, learned: bool = False, tier: Tier = Tier.COLD) -> Farm:
    """A and B both need more than half the card; A is loaded and idle."""
    a, b = (a_service(name, 15 * GIB, 24 * GIB, tier=tier) for name in "AB")
    times = {(s.name, "h1"): [load_s] * 5 for s in (a, b)} if learned else {}
    there = a_replica(1, "A", kv_granted_mib=24 * GIB)
    return Farm(a_world(a_card(), a, b, there, load_s=times), load_s={"A": load_s, "B": load_s})


@pytest.mark.parametrize("tier", [Tier.COLD, Tier.WARM])
def test_with_a_load_of_4_s_the_plain_caller_is_answered_inside_15_s(tier):
    farm = a_farm(4.0, learned=True, tier=tier)
    farm.call("B")
    took = farm.until(lambda f: "B" in f.answered)
    first = farm.told["B"][0][1]
    assert (first.state, first.stage, first.eta_s) == ("loading", "room", 5 + 5 + 4)
    assert not any(o.plain_now for _, o in farm.told["B"])
    assert took <= hold_cap_s(POLICY, farm.world.services["B"]) == 15


def test_what_happened_is_told_by_the_journal():
    farm = a_farm(4.0)
    farm.call("B")
    farm.until(lambda f: "B" in f.answered)
    notice, drain = farm.did("A", Verb.DRAIN)
    assert notice.not_before == NOW + POLICY.grace_room_s
    assert notice.numbers["room_for"] == "B"
    assert [d.reason for d in (notice, drain, *farm.did("A", Verb.STOP))] == ["room"] * 3
    assert set(farm.refusals("B")) == {"not_now"}
    assert [(s.came, s.went) for s in farm.world.swaps] == [("B", "A")]


def test_the_estimate_counts_down_through_notice_stop_and_load():
    farm = a_farm(4.0, learned=True)
    farm.call("B")
    farm.until(lambda f: "B" in f.answered)
    promised = [at + outlook.eta_s for at, outlook in farm.told["B"]]
    assert max(promised) - min(promised) <= 3
    stages = [o.stage for _, o in farm.told["B"]]
    assert list(dict.fromkeys(stages)) == ["room", "weights", "warmup"]


def test_with_a_learned_load_of_10_s_the_plain_caller_is_told_at_once():
    farm = a_farm(10.0, learned=True)
    farm.call("B")
    farm.step()
    first = farm.told["B"][0][1]
    assert first.plain_now
    assert first.low_s == 5 + 5 + 10
    assert first.refusal is None


def test_with_a_learned_load_of_10_s_a_stream_is_answered():
    farm = a_farm(10.0, learned=True)
    farm.call("B", stream=True)
    assert farm.until(lambda f: "B" in f.answered) <= POLICY.hold_stream_s


def test_a_caller_told_to_come_back_finds_it_ready():
    farm = a_farm(10.0, learned=True)
    farm.call("B")
    farm.step()
    eta_s = farm.told["B"][0][1].eta_s
    farm.hang_up("B")
    farm._demand("B", expected_until=farm.now + eta_s + POLICY.grace_room_s)
    farm.until(lambda f: bool(f.ready("B")))
    assert farm.now - NOW <= eta_s + 1


def test_when_the_caller_hangs_up_during_the_notice_the_other_stays():
    farm = a_farm(4.0)
    farm.call("B")
    farm.step()
    farm.hang_up("B")
    (back,) = farm.step()
    assert (back.verb, back.reason, back.service) == (Verb.WAKE, "unneeded", "A")
    assert farm.world.replicas[1].drain_at is None


def test_a_call_for_the_other_during_its_notice_keeps_it():
    farm = a_farm(4.0)
    farm.call("B")
    farm.step(2)
    farm.change(1, last_call_at=farm.now)
    farm.calls[1] = 1
    decisions = farm.step()
    assert [(d.verb, d.reason) for d in decisions if d.service == "A"] == [(Verb.WAKE, "call")]
    assert farm.refusals("B")[-1] == "no_capacity"


def test_it_does_not_swap_back_at_once():
    farm = a_farm(4.0)
    farm.call("B")
    farm.until(lambda f: "B" in f.answered)
    farm.call("A")
    farm.step()
    told = farm.told["A"][0][1]
    assert told.refusal.code == "anti_swap"
    assert 0 < told.refusal.numbers["retry_after_s"] <= POLICY.min_loaded_s
    assert told.plain_now
    assert farm.ready("B")


def test_a_service_called_a_moment_ago_stays_a_little():
    farm = a_farm(4.0)
    farm.change(1, last_call_at=NOW - 1)
    farm.call("B")
    farm.step()
    assert farm.told["B"][0][1].eta_s == pytest.approx(4 + 5 + 5 + 15 / 1000 * 1024 + 8)
    assert farm.did("A") == []


def test_after_the_minimum_stay_it_may_swap_back():
    farm = a_farm(4.0)
    farm.call("B")
    farm.until(lambda f: "B" in f.answered)
    back_at = farm.now + POLICY.min_loaded_s
    farm.call("A")
    farm.until(lambda f: "A" in f.answered)
    assert back_at <= farm.now <= back_at + 20


def test_a_stream_that_outlasts_the_rest_waits_for_it():
    farm = a_farm(4.0)
    farm.call("B")
    farm.until(lambda f: "B" in f.answered)
    farm.step(POLICY.min_loaded_s - 60)
    farm.call("A", stream=True)
    farm.until(lambda f: "A" in f.answered)
    assert all(o.refusal is None for _, o in farm.told["A"])
    assert farm.answered["A"] - farm.told["A"][0][0] <= POLICY.hold_stream_s


@pytest.mark.parametrize("period", [30, 60])
def test_called_in_turn_every_minute_they_swap_at_most_once_per_minimum_stay(period):
    farm = a_farm(4.0)
    for turn in range(20):
        farm.call("AB"[turn % 2])
        for _ in range(period):
            farm.step()
    starts = len(farm.did("A", Verb.START)) + len(farm.did("B", Verb.START))
    assert 2 <= starts <= 20 * period / POLICY.min_loaded_s + 2


def in_use(answer_s: float | None) -> Farm:
    """The same pair while A answers a call; its answers take `answer_s` in the mean."""
    farm = a_farm(4.0, learned=True)
    farm._service("A", generation_s=answer_s)
    farm.calls[1] = 1
    farm.change(1, last_call_at=NOW)
    return farm


@pytest.mark.parametrize("answer_s", [2.0, 6.0])
def test_an_equal_that_is_just_answering_is_waited_for(answer_s):
    farm = in_use(answer_s)
    farm.call("B", stream=True)
    while farm.now < NOW + answer_s:
        farm.step()
        assert farm.told["B"][-1][1].refusal is None
        assert not farm.did("A"), "one in use goes only for higher priority"
    farm.calls[1] = 0
    farm.until(lambda f: "B" in f.answered, limit_s=60)
    assert farm.did("A", Verb.DRAIN)[0].not_before is not None
    assert not any(told.refusal for _, told in farm.told["B"])


@pytest.mark.parametrize("answer_s", [2.0, 6.0, 40.0])
def test_but_no_longer_than_an_answer_takes(answer_s):
    farm = in_use(answer_s)
    farm.call("B", stream=True)
    took = farm.until(lambda f: any(told.refusal for _, told in f.told.get("B", [])))
    assert answer_s <= took <= answer_s + POLICY.grace_room_s + 2
    assert farm.told["B"][-1][1].refusal.code == "no_capacity"
    assert not farm.did("A")


def test_nor_where_answers_outlast_the_callers_patience():
    farm = in_use(40.0)
    farm.call("B")
    farm.step()
    told = farm.told["B"][0][1].refusal
    assert told is not None
    assert told.code == "anti_swap"
    assert told.numbers["retry_after_s"] == 40 + POLICY.grace_room_s


@pytest.mark.parametrize("answer_s", [None, 4.0])
def test_one_that_is_worth_more_or_of_which_nothing_is_known_is_not_waited_for(answer_s):
    farm = in_use(answer_s)
    if answer_s is not None:
        farm._service("A", priority=60)
    farm.call("B", stream=True)
    farm.step()
    assert farm.told["B"][0][1].refusal.code == "no_capacity"


def test_that_a_minimum_found_no_room_says_nothing_to_callers_for_whom_room_is_made():
    """Who comes between two plans is told what the last one left behind: it must be true of a call."""
    farm = a_farm(4.0, learned=True)
    farm._service("B", min_replicas=1)
    service = farm.world.services["B"]
    refused = farm.step()
    assert [d.refusal.code for d in refused if d.refusal] == ["short_of_memory"]
    assert outlook(farm.world, farm.policy, service, refused, farm.now).refusal is None
    farm.call("B")
    farm.until(lambda f: "B" in f.answered, limit_s=60)
    assert not any(told.refusal for _, told in farm.told["B"])


def test_where_no_room_would_help_a_minimum_tells_callers_at_once():
    farm = a_farm(4.0)
    farm._service("B", min_replicas=1, card_classes=("elsewhere",))
    refused = farm.step()
    told = outlook(farm.world, farm.policy, farm.world.services["B"], refused, farm.now).refusal
    assert told is not None
    assert told.code == "wrong_class"
