"""A cold service sleeps rather than stops where its next caller's hold would be over before it were loaded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.decision import Verb
from scheduler.planner import plan
from scheduler.sleep import sleeps_idle
from scheduler.world import Phase, Tier
from tests.scheduler.build import NOW, POLICY, a_card, a_draft, a_host, a_replica, a_service, a_world

HOST = a_host(memory_mib=64 * 1024)  # of it 48 GiB for sleepers, three quarters of that for cold ones
#: So long its loads took; small models' callers are held for 15 s.
TOOK = {("s", "h1"): (16.0,)}


def sleeps(*things, took=TOOK, policy=POLICY):
    draft = a_draft(HOST, a_card(), a_replica(), *things, policy=policy, load_s=took)
    return sleeps_idle(draft, draft.replicas[1])


@pytest.mark.parametrize(("cap_s", "expected"), [(None, True), (15.9, True), (16.0, False), (60.0, False)])
def test_what_its_loads_took_is_held_against_the_hold(cap_s, expected):
    assert sleeps(a_service(hold_cap_s=cap_s)) is expected


def test_what_is_only_estimated_is_no_reason():
    assert not sleeps(a_service(weights=100_000, hold_cap_s=5), took={})


def sleepers(count: int, tier: Tier, weights: int = 1000):
    for i in range(count):
        yield a_service(f"n{i}", tier=tier, weights=weights)
        yield a_replica(10 + i, f"n{i}", card=f"c{2 + i}", phase=Phase.ASLEEP)
        yield a_card(f"c{2 + i}")


@pytest.mark.parametrize(("weights", "expected"), [(8000, True), (8001, False)])
def test_cold_sleepers_have_their_share_of_what_sleepers_may_take(weights, expected):
    own = 48 * 1024 * 3 // 4 - 2 * 8000
    assert sleeps(a_service(weights=own, hold_cap_s=15), *sleepers(2, Tier.COLD, weights)) is expected


def test_warm_sleepers_do_not_count_in_the_share_of_cold_ones():
    assert sleeps(a_service(), *sleepers(3, Tier.WARM, 10000))


def full_card(count: int, tier: Tier = Tier.COLD, **more):
    """So many sleepers on the card; the first was used longest ago, and all before the copy that would sleep."""
    for i in range(count):
        yield a_service(f"n{i}", tier=tier, weights=1000, **more)
        yield a_replica(10 + i, f"n{i}", phase=Phase.ASLEEP, last_call_at=NOW - 5000 + i)


@pytest.mark.parametrize(("there", "expected"), [(2, True), (3, False)])
def test_cold_sleepers_have_their_share_of_a_cards_seats(there, expected):
    assert sleeps(a_service(), *full_card(there)) is expected


# Who slept longest gives way


LEAVING = a_replica(1, phase=Phase.DRAINING, quiet=True, reason="idle", last_call_at=NOW - 1500)


def goes(*things, leaving=LEAVING, policy=POLICY):
    world = a_world(HOST, a_card(), leaving, *things, load_s=TOOK)
    return [(d.verb, d.replica) for d in plan(world, policy, NOW) if d.refusal is None]


def test_the_cold_sleeper_unused_for_longest_stops_and_then_it_sleeps():
    assert goes(a_service(), *full_card(3)) == [(Verb.STOP, 10)]
    assert goes(a_service(), *full_card(2)) == [(Verb.SLEEP, 1)]


def test_a_warm_one_is_not_kept_from_sleep_by_cold_ones():
    assert goes(a_service(tier=Tier.WARM), *full_card(4)) == [(Verb.STOP, 10)]
    assert goes(a_service(tier=Tier.WARM), *full_card(4, Tier.WARM)) == [(Verb.STOP, 1)]


def test_nobody_stops_for_one_that_was_used_less_lately_or_that_stops_anyway():
    older = replace(LEAVING, last_call_at=NOW - 9000, loaded_at=NOW - 9000)
    assert goes(a_service(), *full_card(3), leaving=older) == [(Verb.STOP, 1)]
    assert goes(a_service(hold_cap_s=60), *full_card(3)) == [(Verb.STOP, 1)]
    assert goes(a_service(can_sleep=False), *full_card(3)) == [(Verb.STOP, 1)]


def test_nobody_stops_while_room_is_awaited_or_where_it_is_exempt():
    for_room = replace(LEAVING, reason="room")
    assert (Verb.STOP, 10) not in goes(a_service(), *full_card(3), leaving=for_room)
    assert goes(a_service(), *full_card(3, whitelisted_until=NOW + 1)) == [(Verb.STOP, 1)]


def test_a_share_of_nothing_stops_every_cold_one():
    assert not sleeps(a_service(), policy=replace(POLICY, cold_sleep_pct=0))
    assert goes(a_service(), *full_card(1), policy=replace(POLICY, cold_sleep_pct=0)) == [(Verb.STOP, 1)]


def test_one_that_cannot_sleep_stops_all_the_same():
    assert not sleeps(a_service(can_sleep=False))
