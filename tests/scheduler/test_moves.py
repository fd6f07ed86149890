"""A repack move: looked at again on the live world, make-before-break, in the window, when nothing is pending."""

from __future__ import annotations

from dataclasses import replace

from scheduler.decision import CONVENIENCE, Code, Reason, Refusal, Verb
from scheduler.layers import Overrides
from scheduler.move import Move
from scheduler.moves import admits, in_window
from scheduler.planner import plan
from scheduler.world import Phase, Pool, Tier, Want
from tests.scheduler.build import LONG, NOW, POLICY, a_card, a_draft, a_host, a_replica, a_service, a_world, held
from tests.scheduler.cases import cases

NIGHT = 120  # 02:00
ONE = Move(7, 1, 1, 1, "s", ("c2",))


def busy(**more):
    """In use, or the reclaim stage would have its say."""
    return {"last_call_at": NOW, "in_flight": 1, **more}


def a_night(*things, moves=(ONE,), **more):
    """Two cards on two hosts, a copy on the first."""
    more.setdefault("site_minute", NIGHT)
    cards = [a_card("c1", "h1"), a_card("c2", "h2")] if not any(hasattr(t, "total_mib") for t in things) else []
    return a_world(*cards, *things, moves=tuple(moves), **more)


def night(*things, **more):
    return plan(a_night(*things, **more), POLICY, NOW)


@cases(
    ("begins", "ends", "minute", "open_"),
    [
        (60, 300, 60, True),
        (60, 300, 299, True),
        (60, 300, 300, False),
        (60, 300, 59, False),
        (1320, 420, 1320, True),
        (1320, 420, 0, True),
        (1320, 420, 419, True),
        (1320, 420, 420, False),
        (60, 300, None, False),
    ],
)
def test_the_window_is_of_site_time_and_may_cross_midnight(begins, ends, minute, open_):
    policy = replace(POLICY, repack_from_min=begins, repack_until_min=ends)
    assert in_window(policy, minute) is open_


def test_a_move_begins_with_a_copy_on_the_new_card():
    (start,) = night(a_service(), a_replica(**busy()))
    assert (start.verb, start.reason, start.cards, start.move) == (Verb.START, Reason.REPACK, ("c2",), 7)
    assert start.kv_granted_mib == 4000
    assert Reason.REPACK in CONVENIENCE


@cases("minute", [None, 59, 300, 720])
def test_not_outside_the_window(minute):
    assert night(a_service(), a_replica(**busy()), site_minute=minute) == []


PENDING = [
    ([a_service("x", demand=held(), weights=500_000)], {}),  # a caller waits, even in vain
    ([a_service("x", max_replicas=1), a_replica(2, "x", "c2", Phase.STARTING)], {}),
    ([a_service("x"), a_replica(2, "x", "c1", Phase.DRAINING, **busy())], {}),
]


@cases(("things", "more"), PENDING)
def test_not_while_something_is_pending(things, more):
    decisions = night(a_service(), a_replica(**busy()), *things, **more)
    assert [d for d in decisions if d.move is not None] == []


def test_what_is_pending_in_another_pool_is_no_matter():
    cards = [a_card("c1", "h1"), a_card("c2", "h2"), a_card("c3", "h3", pool="other")]
    other = [a_service("x"), a_replica(2, "x", "c3", Phase.STARTING)]
    decisions = night(*cards, a_service(), a_replica(**busy()), *other)
    assert [d.move for d in decisions] == [7]


def test_one_move_at_a_time_in_their_order():
    others = [a_service("t"), a_replica(2, "t", "c1", **busy())]
    second = Move(8, 1, 2, 2, "t", ("c2",))
    assert [d.move for d in night(a_service(), a_replica(**busy()), *others, moves=(second, ONE))] == [7]


def copied(phase: Phase, *, old: dict | None = None, copy: dict | None = None, **more):
    old, copy = busy(**(old or {})), dict(copy or {})
    if phase is Phase.READY:
        copy = busy(loaded_at=NOW, **copy)
    things = [a_service(), a_replica(1, **old), a_replica(2, card="c2", phase=phase, reason="repack", **copy)]
    return night(*things, moves=(replace(ONE, copy=2),), **more)


def test_the_old_one_stays_until_the_copy_is_ready():
    assert copied(Phase.STARTING) == []


def test_then_it_is_drained_though_the_window_is_over():
    (drain,) = copied(Phase.READY, site_minute=700)
    assert (drain.verb, drain.reason, drain.replica, drain.move) == (Verb.DRAIN, Reason.REPACK, 1, 7)
    assert drain.not_before is None
    assert not drain.force


@cases("tier", list(Tier))
def test_drained_it_stops_and_does_not_sleep(tier):
    service = a_service(tier=tier)
    drained = a_replica(1, phase=Phase.DRAINING, reason="repack", quiet=True)
    ready = a_replica(2, card="c2", **busy())
    (stop,) = night(service, drained, ready, moves=(replace(ONE, copy=2),))
    assert (stop.verb, stop.replica, stop.force) == (Verb.STOP, 1, False)


@cases("lasted", [10, 700, 1799])
def test_a_call_in_flight_is_never_cut(lasted):
    drained = a_replica(1, phase=Phase.DRAINING, reason="repack", in_flight=1, want_since=NOW - lasted)
    assert night(a_service(), drained, a_replica(2, card="c2", **busy()), moves=(replace(ONE, copy=2),)) == []


def test_a_drain_without_end_is_given_up_and_the_move_has_failed():
    drained = a_replica(1, phase=Phase.DRAINING, reason="repack", in_flight=1, want_since=NOW - 1800)
    copy = a_replica(2, card="c2", **busy())
    (wake,) = night(a_service(max_replicas=2), drained, copy, moves=(replace(ONE, copy=2),))
    assert (wake.verb, wake.replica) == (Verb.WAKE, 1)
    alone = a_replica(1, **busy(left_alone_until=NOW + 3600))
    (failed,) = night(a_service(max_replicas=2), alone, copy, moves=(replace(ONE, copy=2),))
    assert (failed.move, failed.refusal.code) == (7, Code.STAYS)


@cases("old", [None, Phase.STOPPED, Phase.ASLEEP])
def test_it_is_done_when_the_old_one_is_gone(old):
    things = [] if old is None else [a_replica(1, phase=old)]
    decisions = night(
        a_service(max_replicas=2), *things, a_replica(2, card="c2", **busy()), moves=(replace(ONE, copy=2),)
    )
    (done,) = [d for d in decisions if d.move is not None]
    assert (done.move, done.refusal.code) == (7, Code.ALREADY_SO)


def test_a_copy_that_failed_is_stopped_and_the_old_one_serves_on():
    decisions = copied(Phase.FAILED, copy={"failures_here": 1, "failed_at": NOW, "fault": "out_of_memory"})
    stop, failed = decisions
    assert (stop.verb, stop.replica) == (Verb.STOP, 2)
    assert (failed.move, failed.refusal.code, failed.refusal.numbers["fault"]) == (7, Code.LOAD_FAILED, "out_of_memory")


@cases("copy", [None, Phase.STOPPED])
def test_a_copy_that_somebody_stopped_ends_the_move(copy):
    things = [] if copy is None else [a_replica(2, card="c2", phase=copy)]
    (failed,) = night(a_service(), a_replica(1, **busy()), *things, moves=(replace(ONE, copy=2),))
    assert (failed.move, failed.refusal.code) == (7, Code.LOAD_FAILED)


def test_a_caller_who_needs_the_room_takes_it_from_the_copy_that_loads():
    """The copy is a load that nobody waits for; the old one serves on."""
    caller = a_service("caller", weights=64_000, demand=held(), priority=90)
    things = [a_service(), a_replica(1, **busy()), a_replica(2, card="c2", phase=Phase.STARTING, reason="repack")]
    cards = [a_card("c1", "h1", unavailable_mib=40_000), a_card("c2", "h2")]
    decisions = night(*cards, *things, caller, moves=(replace(ONE, copy=2),))
    assert [(d.verb, d.replica) for d in decisions if d.reason is Reason.ROOM] == [(Verb.STOP, 2)]


# What a move may not break


def refused(*things, replica: int = 1, cards=("c2",), **more) -> Code | int:
    found = admits(a_draft(*things, **more), replica, cards)
    return found.code if isinstance(found, Refusal) else found


TWO = (a_card("c1", "h1"), a_card("c2", "h2"))


def test_a_good_move_keeps_the_grant():
    assert refused(*TWO, a_service(), a_replica()) == 4000


@cases(
    ("things", "code"),
    [
        ([a_service()], Code.WRONG_PHASE),
        ([a_replica()], Code.WRONG_PHASE),  # the service is not known any more
        ([a_service(), a_replica(phase=Phase.ASLEEP)], Code.WRONG_PHASE),
        ([a_service(), a_replica(phase=Phase.STARTING)], Code.WRONG_PHASE),
        ([a_service(), a_replica(drain_at=NOW + 100)], Code.WRONG_PHASE),
        ([a_service(), a_replica(want=Want.DRAINED)], Code.WRONG_PHASE),
        ([a_service(), a_replica(external=True)], Code.IMPORTED),
        ([a_service(whitelisted_until=NOW + 1), a_replica()], Code.STAYS),
        ([a_service(), a_replica(left_alone_until=NOW + 1)], Code.STAYS),
        ([a_service(), a_replica(), a_host("h1", seen_at=NOW - LONG)], Code.HOST_LOST),
        ([a_service(), a_replica(), a_host("h2", seen_at=NOW - LONG)], Code.HOST_LOST),
        ([a_service(), a_replica(), a_host("h2", cordoned=True)], Code.CORDONED),
        ([a_service(card_classes=frozenset({"B"})), a_replica()], Code.WRONG_CLASS),
        ([a_service(), a_replica(1), a_replica(2, card="c2")], Code.SAME_SERVICE),
        (
            [a_service(), a_replica(), a_service("n", apart_from=frozenset({"t"})), a_replica(2, "n", "c2")],
            Code.TENANTS_APART,
        ),
        ([a_service(), a_replica(), a_service("n", weights=60_000), a_replica(2, "n", "c2")], Code.SHORT_OF_MEMORY),
    ],
)
def test_who_may_not_be_moved_and_where_not(things, code):
    assert refused(*TWO, *things) is code


def test_the_copy_gets_no_less_kv_than_the_old_one_has():
    tight = a_card("c2", "h2", unavailable_mib=81920 - 6554 - 12_500)
    assert refused(a_card("c1", "h1"), tight, a_service(), a_replica(kv_granted_mib=4000)) is Code.SHORT_OF_MEMORY
    assert refused(a_card("c1", "h1"), tight, a_service(), a_replica(kv_granted_mib=3500)) == 3500


def test_not_into_another_pool_but_from_a_loan_back():
    cards = [a_card("c1", "h1", pool="lent"), a_card("c2", "h2", pool="own")]
    pools = {"lent": Pool("lent", "ondemand"), "own": Pool("own", "ondemand")}
    assert refused(*cards, a_service(), a_replica(), pools=pools) is Code.WRONG_POOL
    pools["lent"] = Pool("lent", "elastic")
    assert refused(*cards, a_service(), a_replica(), pools=pools) == 4000
    pools = {"lent": Pool("lent", "elastic"), "own": Pool("own", "elastic")}
    assert refused(*cards, a_service(), a_replica(), pools=pools) is Code.WRONG_POOL


def test_not_where_all_would_then_be_on_one_host():
    cards = [a_card("a1", "h1"), a_card("b1", "h2"), a_card("b2", "h2"), a_card("c1", "h3")]
    copies = [a_replica(1, card="a1"), a_replica(2, card="b1")]
    service = a_service(min_replicas=2, max_replicas=2)
    assert refused(*cards, service, *copies, cards=("b2",)) is Code.TWO_HOSTS
    assert refused(*cards, service, *copies, cards=("c1",)) == 4000


@cases("cards", [(), ("c2", "c3"), ("gone",)])
def test_as_many_cards_as_it_has_and_all_of_them_known(cards):
    assert refused(*TWO, a_card("c3", "h2"), a_service(), a_replica(), cards=cards) is Code.NO_CAPACITY


def test_over_several_cards_it_moves_as_one_within_one_host():
    service = a_service(cards_per_replica=2)
    four = [a_card(f"{h}{i}", h) for h in ("h1", "h2", "h3") for i in range(2)]
    old = replace(a_replica(), cards=("h10", "h11"))
    assert refused(*four, service, old, cards=("h20", "h21")) == 4000
    assert refused(*four, service, old, cards=("h20", "h30")) is Code.NO_CAPACITY


def test_a_move_that_would_break_a_rule_by_now_is_skipped():
    """Since the proposal the place was taken."""
    taken = [a_service("n", weights=64_000), a_replica(2, "n", "c2", **busy())]
    (skipped,) = night(a_service(), a_replica(**busy()), *taken)
    assert (skipped.move, skipped.refusal.code) == (7, Code.SHORT_OF_MEMORY)
    assert skipped.refuses_wish is None


def test_it_waits_for_its_turn_to_load():
    policy = replace(POLICY, max_loads_per_host=1)
    cards = [a_card("c1", "h1"), a_card("c2", "h2"), a_card("c3", "h2", pool="other")]
    loading = [a_service("x"), a_replica(2, "x", "c3", Phase.STARTING)]
    world = a_night(*cards, a_service(), a_replica(**busy()), *loading)
    assert plan(world, policy, NOW) == []


def test_a_frozen_farm_moves_nothing():
    assert night(a_service(), a_replica(**busy()), frozen=True) == []


def test_a_pool_may_have_hours_of_its_own():
    overrides = Overrides(pools={"default": {"repack_from_min": 600, "repack_until_min": 700}})
    world = a_night(a_service(), a_replica(**busy()), site_minute=650)
    assert plan(world, POLICY, NOW) == []
    assert [d.move for d in plan(world, replace(POLICY, overrides=overrides), NOW)] == [7]
