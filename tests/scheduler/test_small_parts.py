"""The small parts: turns, sleep, scores, wishes, freezing, and the plan as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

import scheduler
from scheduler.decision import CONVENIENCE, MAY_CUT, PASSING, Code, Reason, Refusal
from scheduler.freeze import fell_together
from scheduler.growth import growth
from scheduler.memory import room_mib
from scheduler.notices import called_since, last_call_at, reason_of
from scheduler.planner import FROZEN_STAGES, STAGES, plan
from scheduler.scores import SCORES, Offer, best_fit, field_of, fragmentation, price, profile, scored, spread
from scheduler.sleep import host_room_mib, may_sleep
from scheduler.turns import rest_s, waits_for
from scheduler.victims import Kind, used, victims
from scheduler.wishes import asked_for, needs, waited_for
from scheduler.world import Demand, Phase, Profile, Tier, Want
from tests.scheduler.build import LONG, NOW, POLICY, a_card, a_draft, a_host, a_replica, a_service, a_world, held
from tests.scheduler.cases import cases

FOLDER = Path(scheduler.__file__).parent


# The core as a whole


def test_the_planner_is_a_table_of_contents():
    assert len((FOLDER / "planner.py").read_text().splitlines()) <= 80
    assert [s.__name__ for s in STAGES] == [
        "tighten",
        "orders",
        "maintenance",
        "notices",
        "moves_on",
        "faults",
        "pressure",
        "throttle",
        "growth",
        "kv_growth",
        "preload",
        "settle",
        "budget",
        "scale_in",
        "reclaim",
        "prefetch",
        "moves_begin",
    ]
    assert [s.__name__ for s in FROZEN_STAGES] == ["orders", "all_refused"]


def test_an_empty_world_has_an_empty_plan():
    assert plan(a_world(), POLICY, NOW) == []


def test_a_dry_run_may_end_where_its_question_is_answered():
    asked = a_service("asked", demand=held(1))
    world = a_world(a_card("a"), asked, a_service("idle", tier=Tier.COLD), a_replica(1, "idle", "a", in_flight=0))
    whole, part = plan(world, POLICY, NOW), plan(world, POLICY, NOW, until=growth)
    assert part == whole[: len(part)]
    assert [d.service for d in part] == ["asked"]


def test_a_plan_does_not_change_its_world():
    world = a_world(a_card(), a_service(demand=held()), a_replica(phase=Phase.FAILED, failures_here=1))
    before = dict(world.replicas)
    plan(world, POLICY, NOW)
    assert world.replicas == before


def test_no_reason_both_serves_convenience_and_may_cut():
    assert CONVENIENCE.isdisjoint(MAY_CUT)


@cases("code", list(Code))
def test_a_refusal_knows_whether_it_passes(code):
    assert Refusal(code).passing is (code in PASSING)


# Turns


@cases(
    ("replica", "rest"),
    [
        (a_replica(phase=Phase.STARTING), (16, 0)),
        (a_replica(phase=Phase.STARTING, since=NOW - 6, want_since=NOW - 6), (10, 0)),
        (a_replica(phase=Phase.DRAINING, want=Want.ASLEEP, want_since=NOW - 1), (4, 4)),
        (a_replica(phase=Phase.DRAINING, want=Want.STOPPED, want_since=NOW - 9), (0, 0)),
    ],
)
def test_how_long_a_move_still_takes(replica, rest):
    assert rest_s(a_draft(a_card(), a_service(), replica), replica) == rest


def test_a_card_at_rest_may_load_now():
    assert waits_for(a_draft(a_card(), a_service(), a_replica()), a_card()) is None


def test_a_new_try_does_not_wait_for_itself():
    draft = a_draft(a_card(), a_service(), a_replica(phase=Phase.STARTING))
    assert waits_for(draft, a_card()).code is Code.LOAD_IN_FLIGHT
    assert waits_for(draft, a_card(), but=1) is None


def test_at_a_hosts_limit_one_waits_for_the_load_that_ends_first():
    cards = [a_card(f"c{i}") for i in (1, 2, 3)]
    services = [a_service("x"), a_service("y")]
    early = a_replica(1, "x", "c1", Phase.STARTING, since=NOW - 9, want_since=NOW - 9)
    draft = a_draft(*cards, *services, early, a_replica(2, "y", "c2", Phase.STARTING))
    assert waits_for(draft, cards[2]).numbers["replica"] == 1


# Sleep


@cases(("memory", "room"), [(20000, 3616), (100000, 80000), (200000, 160000), (16384, 0)])
def test_host_memory_for_sleepers_leaves_the_larger_floor(memory, room):
    draft = a_draft(a_host(memory_mib=memory), a_card())
    assert host_room_mib(draft, draft.world.hosts["h1"]) == room


def test_sleepers_of_all_cards_of_the_host_count():
    cards = [a_card("c1"), a_card("c2"), a_card("c3", "h2")]
    services = [a_service(n, weights=5000) for n in "abc"]
    sleepers = [a_replica(i, n, f"c{i}", Phase.ASLEEP) for i, n in enumerate("abc", 1)]
    draft = a_draft(a_host(memory_mib=100000), *cards, *services, *sleepers)
    assert host_room_mib(draft, draft.world.hosts["h1"]) == 80000 - 2 * 5000


@cases(("tier", "sleeps"), [(Tier.HOT, True), (Tier.WARM, True), (Tier.COLD, False)])
def test_cold_ones_do_not_sleep(tier, sleeps):
    draft = a_draft(a_card(), a_service(tier=tier), a_replica())
    assert may_sleep(draft, draft.replicas[1]) is sleeps


# Scores


def offer(*things, card=None):
    card = card or a_card()
    draft = a_draft(card, a_service(), *things)
    return draft, Offer(card, draft.book(card.id), 4000)


def score(rule, draft, service, there):
    """What a rule says of the only offer."""
    return rule(draft, service, there, field_of(draft, service, [there]))


def test_scores_stay_between_minus_one_and_one():
    for things in (
        [],
        [a_service("x"), a_replica(1, "x")],
        [a_service("x", profile=Profile.LOWFREQ), a_replica(1, "x")],
    ):
        draft, there = offer(*things)
        for name, value in score(scored, draft, a_service(), there).items():
            assert abs(value) <= getattr(POLICY, f"score_{name}")


def test_each_score_has_its_weight():
    assert all(hasattr(POLICY, name) for name in SCORES)


def test_best_fit_grows_with_what_is_used():
    empty, used_card = offer(), offer(a_service("x"), a_replica(1, "x"))
    values = [score(best_fit, d, a_service(), o) for d, o in (empty, used_card)]
    assert values == sorted(values)


@cases(
    ("mine", "theirs", "value"),
    [
        (Profile.ONLINE, Profile.ONLINE, -1),
        (Profile.ONLINE, Profile.LOWFREQ, 1),
        (Profile.LOWFREQ, Profile.ONLINE, 1),
        (Profile.BATCH, Profile.BATCH, 1),
        (Profile.LOWFREQ, Profile.LOWFREQ, 0),
        (Profile.BATCH, Profile.ONLINE, -0.5),
        (Profile.ONLINE, Profile.BATCH, -0.5),
    ],
)
def test_which_profiles_go_together(mine, theirs, value):
    draft, there = offer(a_service("x", profile=theirs), a_replica(1, "x"))
    assert score(profile, draft, a_service(profile=mine), there) == value


def test_fragmentation_counts_what_would_not_fit_any_more():
    large = a_service("large", weights=60000, kv=0)
    draft, there = offer(large)
    room = room_mib(there.book)
    taken = a_service(weights=20000).claim.fixed_mib + 4000
    assert score(fragmentation, draft, a_service(weights=20000), there) == pytest.approx(-(room - taken) / 2 / 81920)
    assert score(fragmentation, draft, a_service(weights=1000), there) == 0


def test_price_and_spread():
    draft, there = offer(a_replica())
    assert score(price, draft, a_service(), there) == 0
    assert score(spread, draft, a_service(), there) == -1
    assert score(spread, draft, a_service("x"), there) == 0


# Wishes and victims


@cases(
    ("demand", "waits"),
    [
        (Demand(), False),
        (Demand(held=1), True),
        (Demand(expected_until=NOW + 1), True),
        (Demand(expected_until=NOW), False),
    ],
)
def test_who_is_waited_for(demand, waits):
    assert waited_for(a_service(demand=demand), NOW) is waits


def test_what_went_after_a_wish_went_knowingly():
    service = a_service(wished_at=NOW - 10)
    gone = {"phase": Phase.ASLEEP, "reason": "idle"}
    assert not asked_for(a_draft(service, a_replica(**gone, want_since=NOW - 5)), service)
    assert asked_for(a_draft(service, a_replica(**gone, want_since=NOW - 20)), service)


def test_callers_come_first_among_the_reasons():
    service = a_service(demand=held(), tier=Tier.HOT, min_replicas=2, wished_at=NOW)
    reasons = [reason for _, reason in needs(a_draft(service), service)]
    assert reasons == [Reason.HOLD, Reason.OPERATOR, Reason.MINIMUM, Reason.MINIMUM]


def test_the_order_of_victims():
    services = [
        a_service(n, priority=p, tier=Tier.WARM) for n, p in (("a", 50), ("b", 10), ("c", 50), ("d", 20), ("e", 5))
    ]
    on = [
        a_replica(1, "a", last_call_at=NOW - 600),
        a_replica(2, "b", last_call_at=NOW - 400),
        a_replica(3, "c", phase=Phase.ASLEEP),
        a_replica(4, "d", phase=Phase.STARTING),
        a_replica(5, "e", in_flight=2),
    ]
    found = victims(a_draft(a_card(), *services, *on), "c1", a_service("me", priority=60))
    assert [v.replica.id for v in found] == [3, 4, 2, 1, 5]
    assert [v.kind for v in found] == [Kind.SLEEPER, Kind.UNWANTED_LOAD, Kind.IDLE, Kind.IDLE, Kind.IN_USE]


def test_last_use_is_a_call_or_the_load():
    draft = a_draft(a_service())
    assert used(draft, a_replica()) == NOW - LONG
    assert used(draft, a_replica(last_call_at=NOW - 5)) == NOW - 5
    assert last_call_at(draft, a_replica(service="unknown")) is None


@cases(("reason", "ago", "called"), [("room", 1, True), ("room", 3, False), ("idle", 3, True)])
def test_a_call_counts_from_the_beginning_of_its_notice(reason, ago, called):
    replica = a_replica(drain_at=NOW + 3, reason=reason, last_call_at=NOW - ago)
    assert called_since(a_draft(a_service(), replica), replica) is called


def test_an_unknown_reason_counts_as_an_operators():
    assert reason_of(a_replica(reason="idle")) is Reason.IDLE
    assert reason_of(a_replica(reason="")) is Reason.OPERATOR


# Freezing


@cases(("silent", "all_", "frozen"), [(1, 4, False), (2, 4, True), (2, 10, False), (4, 10, True), (0, 3, False)])
def test_many_hosts_silent_at_once_freeze_the_farm(silent, all_, frozen):
    hosts = [a_host(f"h{i}", seen_at=NOW - (30 + i if i < silent else 1)) for i in range(all_)]
    assert fell_together(hosts, POLICY, NOW) is frozen
