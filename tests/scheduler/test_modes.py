"""What a pool's mode lets act, and what callers hear meanwhile. The plan itself knows no modes."""

from __future__ import annotations

from dataclasses import replace

from scheduler import modes
from scheduler.decision import TAKING, Decision, Reason, Verb
from scheduler.planner import plan
from scheduler.world import Phase, Pool, Tier, Want
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world, acting, held
from tests.scheduler.cases import cases


def a_world_in(mode: str, *things, **more):
    return a_world(*things, pools={"default": Pool("default", mode=mode)}, **more)


def a_drain(reason: Reason, **more) -> Decision:
    return Decision(Verb.DRAIN, "s", reason, 1, **more)


@cases("reason", list(Reason))
def test_in_observe_nothing_acts_in_enforce_everything(reason):
    for mode, told in (("observe", "not_managed"), ("enforce", "")):
        world = a_world_in(mode, a_card(), a_service(), a_replica())
        assert modes.advice(a_drain(reason), world) == told
        assert modes.advice(Decision(Verb.START, "s", reason, cards=("c1",)), world) == told


@cases("reason", list(Reason))
def test_in_suggest_what_takes_waits_and_what_gives_acts(reason):
    world = a_world_in("suggest", a_card(), a_service(), a_replica())
    waits = reason in (
        Reason.IDLE, Reason.ROOM, Reason.SURPLUS, Reason.PRESSURE, Reason.REPACK, Reason.BUDGET, Reason.REGRANT
    )  # fmt: skip
    assert modes.advice(a_drain(reason), world) == ("awaiting_approval" if waits else "")
    assert (reason in TAKING) is waits


def test_the_strictest_of_its_pools_counts():
    cards = [a_card("c1", pool="p"), a_card("c2", pool="q")]
    world = a_world(*cards, a_service(), pools={"p": Pool("p"), "q": Pool("q", mode="observe")})
    assert modes.advice(Decision(Verb.START, "s", Reason.HOLD, cards=("c1", "c2")), world) == "not_managed"
    assert modes.advice(Decision(Verb.START, "s", Reason.HOLD, cards=("c1",)), world) == ""


def test_a_pool_nobody_described_acts():
    assert modes.advice(a_drain(Reason.IDLE), a_world(a_card(), a_service(), a_replica())) == ""


@cases(
    ("verb", "replica", "waits"),
    [
        (Verb.DRAIN, {"drain_at": NOW - 1, "reason": "idle"}, False),
        (Verb.DRAIN, {"drain_at": NOW - 1, "reason": "room"}, True),
        (Verb.DRAIN, {}, True),
        (Verb.SLEEP, {"phase": Phase.DRAINING, "reason": "idle"}, False),
        (Verb.STOP, {"phase": Phase.DRAINING, "reason": "idle"}, False),
        (Verb.STOP, {"phase": Phase.DRAINING, "reason": "operator"}, True),
        (Verb.STOP, {"phase": Phase.ASLEEP, "reason": "idle"}, True),
    ],
)
def test_what_was_begun_with_leave_is_finished_without(verb, replica, waits):
    world = a_world_in("suggest", a_card(), a_service(), a_replica(**replica))
    assert bool(modes.advice(Decision(verb, "s", Reason.IDLE, 1), world)) is waits


def test_a_notice_anew_is_no_end_of_the_old_one():
    world = a_world_in("suggest", a_card(), a_service(), a_replica(drain_at=NOW + 5, reason="idle"))
    assert modes.advice(a_drain(Reason.IDLE, not_before=NOW + 300), world) == "awaiting_approval"


def test_an_advice_about_a_start_is_about_the_nth_copy_of_all_else_about_the_replica():
    world = a_world(a_card(), a_service())
    assert modes.subject(Decision(Verb.START, "s", Reason.HOLD, cards=("c1",)), world, 2) == "s#2"
    assert modes.subject(Decision(Verb.START, "s", Reason.FAULT, 7, cards=("c1",)), world, 0) == "replica 7"
    assert modes.subject(a_drain(Reason.IDLE), world, 0) == "replica 1"


def test_copies_in_hand_are_those_that_are_or_will_be_ready():
    things = [
        a_replica(1, "a"),
        a_replica(2, "a", phase=Phase.STARTING),
        a_replica(3, "a", phase=Phase.FAILED),
        a_replica(4, "a", phase=Phase.DRAINING),
        a_replica(5, "a", phase=Phase.ASLEEP),
        a_replica(6, "b", phase=Phase.STARTING, want=Want.STOPPED),
    ]
    assert modes.in_hand(a_world(a_card(), a_service("a"), a_service("b"), *things)) == {"a": 3}


# What callers hear


def told(mode: str, *things):
    world = a_world_in(mode, *things)
    return modes.told(plan(world, POLICY, NOW), world)


def test_a_caller_in_an_observed_pool_hears_that_nothing_is_moved_there():
    assert told("observe", a_card(), a_service(demand=held())) == {"s": "not_managed"}
    assert told("suggest", a_card(), a_service(demand=held())) == {}
    assert told("enforce", a_card(), a_service(demand=held())) == {}


def full_card(caller_priority: int = 50):
    idle = a_service("idle", weights=12000, tier=Tier.WARM)
    caller = a_service("caller", weights=12000, priority=caller_priority, demand=held())
    return a_card(total=24576), idle, caller, a_replica(1, "idle", last_call_at=NOW - 400)


@cases(("mode", "word"), [("observe", "not_managed"), ("suggest", "awaiting_approval")])
def test_a_giving_that_needs_a_taking_waits_with_it_and_its_caller_hears_so(mode, word):
    assert told(mode, *full_card()) == {"caller": word}


def test_the_victims_own_callers_hear_nothing():
    card, idle, caller, replica = full_card(90)
    busy = replace(idle, demand=held(0, last_call_at=NOW))
    assert set(told("suggest", card, busy, caller, replace(replica, in_flight=2))) == {"caller"}


def test_who_does_not_wait_is_told_nothing():
    hot = a_service("hot", tier=Tier.HOT)
    assert told("observe", a_card(), hot) == {}


def test_in_suggest_an_idle_one_gets_no_notice_by_itself():
    idle = a_service("idle", tier=Tier.WARM)
    other = a_service("h", tier=Tier.HOT)
    world = a_world_in("suggest", a_card(), idle, other, a_replica(1, "idle"), a_replica(2, "h", measured_mib=60000))
    (notice,) = acting(plan(world, POLICY, NOW))
    assert (notice.verb, notice.reason) == (Verb.DRAIN, Reason.IDLE)
    assert modes.advice(notice, world) == "awaiting_approval"
