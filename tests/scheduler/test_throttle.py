"""Preloads give way to a neighbour they slow; loads that somebody waits for do not."""

from __future__ import annotations

from scheduler.decision import Code, Decision, Reason, Verb
from scheduler.draft import Draft
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.throttle import disturbed, throttled
from scheduler.world import Act, Demand, Order, Phase, Profile, Throttled, Want
from tests.scheduler.build import NOW, POLICY, a_card, a_draft, a_host, a_replica, a_service, a_world, acting, held
from tests.scheduler.cases import cases


def loading(rise=25.0, age=20.0, *, reason="forecast", demand=None, more=(), **fields):
    """A preload (1) on a card beside a busy service (2)."""
    return a_world(
        a_service("report", demand=demand or Demand()),
        a_service("desk", min_replicas=1),
        a_replica(1, "report", phase=Phase.STARTING, reason=reason, since=NOW - age, want_since=NOW - age, **fields),
        a_replica(2, "desk", disturbance_pct=rise, in_flight=3),
        *more,
    )


def stops(world, policy=POLICY):
    return [d for d in plan(world, policy, NOW) if d.reason is Reason.THROTTLE]


def test_it_is_called_off_with_its_numbers():
    assert stops(loading()) == [
        Decision(
            Verb.STOP,
            "report",
            Reason.THROTTLE,
            1,
            numbers={"neighbour": "desk", "disturbance_pct": 25.0, "card": "c1", "lasted_s": 20.0},
        )
    ]


@cases(("rise", "age", "stopped"), [(20.0, 10.0, 1), (19.9, 10.0, 0), (90.0, 9.9, 0), (None, 99, 0)])
def test_from_the_line_on_and_not_before_it_can_be_the_cause(rise, age, stopped):
    assert len(stops(loading(rise, age))) == stopped


def test_both_numbers_are_the_policys():
    assert stops(loading(25.0), Policy(throttle_rise_pct=26)) == []
    assert stops(loading(25.0, 20), Policy(throttle_after_s=21)) == []


@cases("demand", [held(), Demand(expected_until=NOW + 5)])
def test_a_load_with_waiters_is_never_slowed(demand):
    assert stops(loading(300.0, demand=demand)) == []


@cases("reason", ["hold", "minimum", "rebuild", "queue", "p99", "regrant"])
def test_only_loads_ahead_of_calls_are(reason):
    assert stops(loading(300.0, reason=reason)) == []


def test_an_operators_preload_gives_way_unless_forced():
    for force, stopped in ((False, 1), (True, 0)):
        order = Order(7, Act.PRELOAD, "report", NOW + 99, force=force)
        world = loading(reason="operator")
        draft = Draft(world, POLICY, NOW)
        assert draft.world.orders == ()
        found = stops(a_world(*world.services.values(), *world.replicas.values(), orders=(order,)))
        assert len(found) == stopped


def test_one_that_is_called_off_already_is_left():
    assert stops(loading(want=Want.STOPPED)) == []


def test_a_neighbour_on_another_card_is_not_slowed_by_it():
    world = loading(None, more=[a_card("c1"), a_card("c2"), a_replica(3, "desk", "c2", disturbance_pct=80.0)])
    assert stops(world) == []


def test_a_silent_host_is_told_nothing():
    assert stops(loading(more=[a_host("h1", seen_at=NOW - 30)])) == []


@cases("phase", [Phase.STARTING, Phase.DRAINING, Phase.ASLEEP])
def test_who_does_not_serve_is_not_disturbed(phase):
    draft = a_draft(a_service("desk"), a_replica(2, "desk", phase=phase, disturbance_pct=80.0))
    assert disturbed(draft, "c1") is None


def test_the_most_disturbed_is_named():
    draft = a_draft(
        a_service("desk"),
        a_service("hall"),
        a_replica(2, "desk", disturbance_pct=21.0),
        a_replica(3, "hall", disturbance_pct=55.5),
    )
    assert disturbed(draft, "c1") == {"neighbour": "hall", "disturbance_pct": 55.5}


# Further ones wait


def asked_for(*more, **fields):
    """An operator's preload that nobody waits for, as a plan."""
    fields.setdefault("wished_at", NOW - 1)
    return plan(a_world(a_service("report", **fields), *more), POLICY, NOW)


def test_it_does_not_begin_beside_a_disturbed_neighbour():
    found = asked_for(a_service("desk"), a_replica(2, "desk", disturbance_pct=30.0, in_flight=1))
    (refusal,) = [d.refusal for d in found if d.service == "report"]
    assert (refusal.code, refusal.passing) == (Code.THROTTLED, True)
    assert refusal.numbers["neighbour"] == "desk"


def test_it_goes_to_another_card_where_none_is():
    cards = [a_card("c1"), a_card("c2", "h2")]
    found = asked_for(*cards, a_service("desk"), a_replica(2, "desk", disturbance_pct=30.0, in_flight=1))
    (start,) = acting(found)
    assert (start.verb, start.cards) == (Verb.START, ("c2",))


def test_a_caller_is_not_kept_waiting_for_it():
    found = asked_for(a_service("desk"), a_replica(2, "desk", disturbance_pct=30.0, in_flight=1), demand=held())
    assert [d.verb for d in acting(found)] == [Verb.START]


def test_nor_is_a_minimum():
    found = asked_for(
        a_service("desk"), a_replica(2, "desk", disturbance_pct=30.0, in_flight=1), wished_at=None, min_replicas=1
    )
    assert [d.verb for d in acting(found)] == [Verb.START]


def test_loads_of_one_host_share_its_bus():
    """A neighbour is disturbed on the card of a load: no other preload begins on that host, on other hosts one may."""
    draft = a_draft(
        *(a_card("c1"), a_card("c2"), a_card("c3", "h2")),
        *(a_service("desk"), a_service("other")),
        a_replica(1, "other", "c1", Phase.STARTING, reason="hold"),
        a_replica(2, "desk", "c1", disturbance_pct=30.0),
    )
    codes = [throttled(draft, draft.world.cards[c]) for c in ("c1", "c2", "c3")]
    assert [r and r.code for r in codes] == [Code.THROTTLED, Code.THROTTLED, None]


def test_a_disturbed_card_without_a_load_does_not_stop_the_whole_host():
    draft = a_draft(a_card("c1"), a_card("c2"), a_service("desk"), a_replica(2, "desk", "c1", disturbance_pct=30.0))
    assert throttled(draft, draft.world.cards["c2"]) is None


@cases(("ago", "waits"), [(0, True), (299, True), (300, False)])
def test_after_one_was_called_off_the_host_has_a_rest(ago, waits):
    past = (Throttled("report", "c1", NOW - 5000), Throttled("report", "c1", NOW - ago))
    draft = a_draft(a_card("c1"), a_card("c2"), a_card("c3", "h2"), a_service("report"), throttled=past)
    refusal = throttled(draft, draft.world.cards["c2"])
    assert (refusal is not None) is waits
    assert throttled(draft, draft.world.cards["c3"]) is None
    if refusal is not None:
        assert refusal.numbers["retry_after_s"] == 300 - ago


def test_profiles_do_not_matter_to_who_is_slowed():
    world = loading()
    for profile in Profile:
        desk = a_service("desk", min_replicas=1, profile=profile)
        again = a_world(world.services["report"], desk, *world.replicas.values())
        assert len(stops(again)) == 1
