"""An operator's button: what it does to which replica, when it waits, and how it is refused."""

from __future__ import annotations

from dataclasses import replace

from scheduler.decision import Code, Reason, Verb
from scheduler.draft import Draft
from scheduler.estimate import drain_bound_s
from scheduler.hold import outlook
from scheduler.lifecycle import legal
from scheduler.orders import orders
from scheduler.planner import plan
from scheduler.world import Act, Order, Phase, Tier, Want
from tests.scheduler.build import LONG, NOW, POLICY, a_card, a_host, a_replica, a_service, a_world, acting, held
from tests.scheduler.cases import cases


def an_order(act: Act, replica: int | None = 1, **more) -> Order:
    return Order(**{"id": 7, "act": act, "service": "s", "until": NOW + 600, "replica": replica, **more})


def told(order: Order, *things, **more):
    """What the stage alone decides."""
    draft = Draft(a_world(*things, orders=(order,), **more), POLICY, NOW)
    orders(draft, POLICY, NOW)
    return draft.decisions


def one(order: Order, *things, **more):
    decisions = told(order, *things, **more)
    assert len(decisions) == 1, decisions
    return decisions[0]


@cases(
    ("act", "replica", "verb"),
    [
        (Act.DRAIN, a_replica(), Verb.DRAIN),
        (Act.DRAIN, a_replica(in_flight=None), Verb.DRAIN),
        (Act.KEEP, a_replica(drain_at=NOW + 9, reason="idle"), Verb.WAKE),
        (Act.KEEP, a_replica(), Verb.WAKE),
        (Act.WAKE, a_replica(phase=Phase.ASLEEP), Verb.WAKE),
        (Act.WAKE, a_replica(phase=Phase.DRAINING, reason="idle"), Verb.WAKE),
        (Act.STOP, a_replica(phase=Phase.STARTING), Verb.STOP),
        (Act.STOP, a_replica(phase=Phase.ASLEEP), Verb.STOP),
        (Act.STOP, a_replica(phase=Phase.FAILED), Verb.STOP),
        (Act.STOP, a_replica(phase=Phase.DRAINING, quiet=True, reason="operator"), Verb.STOP),
    ],
)
def test_a_step_that_fulfils_the_order_names_it(act, replica, verb):
    decision = one(an_order(act), a_service(), replica)
    assert (decision.verb, decision.reason, decision.order, decision.refusal) == (verb, Reason.OPERATOR, 7, None)
    assert legal(decision, replica)


def test_a_ready_one_is_drained_before_it_stops_and_the_order_stays_open():
    decision = one(an_order(Act.STOP, force=True), a_service(), a_replica(in_flight=3))
    assert (decision.verb, decision.order, decision.force) == (Verb.DRAIN, None, False)
    assert decision.numbers["in_flight"] == 3
    assert decision.numbers["order_no"] == 7


@cases(("force", "lasted", "stops"), [(False, LONG, False), (True, 1.0, False), (True, LONG, True)])
def test_only_force_cuts_and_only_at_the_bound(force, lasted, stops):
    service = a_service(generation_s=2.0)
    assert drain_bound_s(POLICY, service) < LONG
    busy = a_replica(phase=Phase.DRAINING, in_flight=2, reason="operator", want_since=NOW - lasted)
    decisions = told(an_order(Act.STOP, force=force), service, busy)
    assert [(d.verb, d.force) for d in decisions] == ([(Verb.STOP, True)] if stops else [])


def test_without_force_a_busy_one_may_drain_for_ever():
    busy = a_replica(phase=Phase.DRAINING, in_flight=2, reason="operator", want_since=NOW - 99 * LONG)
    assert acting(plan(a_world(a_service(), busy, orders=(an_order(Act.STOP),)), POLICY, NOW)) == []


@cases(
    ("act", "replica", "code"),
    [
        (Act.DRAIN, a_replica(phase=Phase.ASLEEP), Code.ALREADY_SO),
        (Act.DRAIN, a_replica(phase=Phase.STARTING), Code.WRONG_PHASE),
        (Act.KEEP, a_replica(left_alone_until=NOW + 9), Code.ALREADY_SO),
        (Act.KEEP, a_replica(phase=Phase.ASLEEP), Code.ALREADY_SO),
        (Act.WAKE, a_replica(), Code.ALREADY_SO),
        (Act.WAKE, a_replica(phase=Phase.DRAINING, reason="operator"), Code.WRONG_PHASE),
        (Act.STOP, a_replica(phase=Phase.ASLEEP, want=Want.STOPPED), Code.ALREADY_SO),
        (Act.STOP, a_replica(id=2), Code.ALREADY_SO),
        (Act.STOP, a_replica(external=True), Code.IMPORTED),
        (Act.PRELOAD, a_replica(), Code.ALREADY_SO),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_type(act, replica, code):
    decision = one(an_order(act), a_service(), replica)
    assert (decision.refusal.code, decision.order) == (code, 7)
    assert decision.refuses_wish is None, "who gave the order is told, not who calls the service"


def test_an_order_of_an_unknown_service_is_done():
    assert one(an_order(Act.STOP, None)).refusal.code is Code.ALREADY_SO


def test_an_order_lapses_and_waits_for_no_thaw():
    lapsed = replace(an_order(Act.DRAIN), until=NOW)
    assert one(lapsed, a_service(), a_replica()).refusal.code is Code.LAPSED
    assert one(an_order(Act.DRAIN), a_service(), a_replica(), frozen=True).refusal.code is Code.FROZEN


def test_a_silent_host_is_left_alone():
    decision = one(an_order(Act.STOP), a_service(), a_replica(), a_host(seen_at=NOW - 30))
    assert decision.refusal.code is Code.HOST_LOST


def test_two_hosts_stay_two():
    cards = (a_card("c1", "h1"), a_card("c2", "h2"))
    service = a_service(min_replicas=2, max_replicas=2)
    pair = (a_replica(1, card="c1"), a_replica(2, card="c2"))
    for order in (an_order(Act.DRAIN), an_order(Act.STOP), an_order(Act.STOP, None)):
        decisions = told(order, *cards, service, *pair)
        assert [d.refusal.code for d in decisions] == [Code.TWO_HOSTS]


def test_a_wake_waits_its_turn_and_is_refused_for_want_of_room():
    loading = a_replica(2, "t", phase=Phase.STARTING)
    assert told(an_order(Act.WAKE), a_service(), a_service("t"), a_replica(phase=Phase.ASLEEP), loading) == []
    tight = a_card(total=16000)
    full = a_replica(2, "t")
    refused = one(an_order(Act.WAKE), tight, a_service(), a_service("t"), a_replica(phase=Phase.ASLEEP), full)
    assert refused.refusal.code is Code.SHORT_OF_MEMORY
    assert refused.refusal.numbers["short_mib"] > 0


@cases(("card", "code"), [({"healthy": False}, "card_unhealthy"), ({"cordoned": True}, "cordoned")])
def test_nothing_wakes_on_a_card_that_takes_nothing(card, code):
    decision = one(an_order(Act.WAKE), a_card(**card), a_service(), a_replica(phase=Phase.ASLEEP))
    assert decision.refusal.code == code


def test_a_preload_is_a_wish_that_growth_serves_and_then_it_is_met():
    order = an_order(Act.PRELOAD, None)
    start = one_acting(plan(a_world(a_service(), orders=(order,)), POLICY, NOW))
    assert (start.verb, start.reason) == (Verb.START, Reason.OPERATOR)
    loading = a_replica(phase=Phase.STARTING)
    assert one(order, a_service(), loading).refusal.code is Code.ALREADY_SO


def one_acting(decisions):
    found = acting(decisions)
    assert len(found) == 1, decisions
    return found[0]


def test_a_preload_of_a_second_copy_asks_for_two():
    cards = (a_card("c1", "h1"), a_card("c2", "h2"))
    order = an_order(Act.PRELOAD, None, count=2)
    world = a_world(*cards, a_service(max_replicas=2), a_replica(), orders=(order,))
    assert one_acting(plan(world, POLICY, NOW)).cards == ("c2",)
    few = a_world(*cards, a_service(), a_replica(), orders=(order,))
    assert [d.refusal.code for d in plan(few, POLICY, NOW)] == [Code.MAX_REPLICAS]


def crowded(force: bool):
    """A card that only fits the preload when its idle neighbour goes."""
    neighbour = a_service("t", weights=50000, priority=10)
    service = a_service(weights=50000)
    return a_world(neighbour, service, a_replica(1, "t"), orders=(an_order(Act.PRELOAD, None, force=force),))


def test_a_preload_takes_room_from_an_idle_neighbour_only_when_forced():
    assert {d.reason for d in acting(plan(crowded(False), POLICY, NOW))} <= {Reason.IDLE}
    notice = one_acting(plan(crowded(True), POLICY, NOW))
    assert (notice.verb, notice.reason, notice.replica, notice.force) == (Verb.DRAIN, Reason.ROOM, 1, False)
    assert notice.numbers["room_for"] == "s"


def test_a_refused_order_is_not_told_to_callers():
    order = an_order(Act.WAKE)
    tight = a_card(total=16000)
    world = a_world(
        tight, a_service(), a_service("t"), a_replica(phase=Phase.ASLEEP), a_replica(2, "t"), orders=(order,)
    )
    decisions = plan(world, POLICY, NOW)
    assert any(d.refusal for d in decisions)
    told_callers = outlook(world, POLICY, world.services["s"], decisions, NOW)
    assert (told_callers.state, told_callers.refusal) == ("asleep", None)


def test_stopping_all_tells_each_copy_and_the_service_may_come_back_for_a_caller():
    cards = (a_card("c1", "h1"), a_card("c2", "h2"))
    copies = (a_replica(1, card="c1"), a_replica(2, card="c2", phase=Phase.ASLEEP))
    decisions = told(an_order(Act.STOP, None), *cards, a_service(), *copies)
    assert {(d.verb, d.replica, d.order) for d in decisions} == {(Verb.DRAIN, 1, None), (Verb.STOP, 2, None)}
    hot = plan(a_world(*cards, a_service(tier=Tier.HOT), copies[0], orders=(an_order(Act.STOP, None),)), POLICY, NOW)
    assert {(d.verb, d.reason) for d in acting(hot)} == {
        (Verb.DRAIN, Reason.OPERATOR),
        (Verb.START, Reason.MINIMUM),
    }, "who must be ready is loaded elsewhere"


def test_a_held_caller_and_an_order_are_served_by_one_load():
    order = an_order(Act.PRELOAD, None)
    start = one_acting(plan(a_world(a_service(demand=held()), orders=(order,)), POLICY, NOW))
    assert start.reason is Reason.HOLD
