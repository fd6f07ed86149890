"""The working copy: what each decision changes, and what is not recorded."""

from __future__ import annotations

from scheduler.decision import Code, Decision, Reason, Refusal, Verb
from scheduler.draft import moving
from scheduler.hosts import host_of, lost, silence_s, silent
from scheduler.lifecycle import WANT_AFTER, legal, seen_phase
from scheduler.memory import room_mib
from scheduler.two_hosts import may_come, may_go
from scheduler.world import Phase, Want
from tests.scheduler.build import NOW, POLICY, a_card, a_draft, a_host, a_replica, a_service, a_world
from tests.scheduler.cases import cases


def after(replica, verb, **more):
    """The replica after one decision about it."""
    draft = a_draft(a_card(), a_service(), replica)
    assert draft.do(Decision(verb, "s", more.pop("reason", Reason.OPERATOR), replica.id, **more))
    return draft.replicas[replica.id]


def test_a_new_copy_is_starting_and_holds_its_memory():
    draft = a_draft(a_card(), a_service())
    assert draft.do(Decision(Verb.START, "s", Reason.HOLD, cards=("c1",), kv_granted_mib=4000))
    (replica,) = draft.of_service("s")
    assert (replica.phase, replica.want, replica.id < 0) == (Phase.STARTING, Want.READY, True)
    assert room_mib(draft.book("c1")) == 74766 - 13000


def test_a_new_try_raises_the_attempt():
    replica = after(a_replica(phase=Phase.FAILED, attempt=3), Verb.START, kv_granted_mib=10)
    assert (replica.attempt, replica.phase, replica.cards, replica.kv_granted_mib) == (4, Phase.STARTING, ("c1",), 10)


def test_a_wake_from_sleep_is_a_start():
    replica = after(a_replica(phase=Phase.ASLEEP), Verb.WAKE)
    assert (replica.phase, replica.want, replica.waking) == (Phase.STARTING, Want.READY, True)


@cases("replica", [a_replica(drain_at=NOW), a_replica(phase=Phase.DRAINING, reason="idle")])
def test_a_wake_takes_notice_and_drain_back(replica):
    got = after(replica, Verb.WAKE)
    assert (got.phase, got.want, got.drain_at) == (Phase.READY, Want.READY, None)


def test_a_notice_leaves_it_ready():
    got = after(a_replica(), Verb.DRAIN, reason=Reason.IDLE, not_before=NOW + 300)
    assert (got.phase, got.want, got.drain_at, got.reason) == (Phase.READY, Want.READY, NOW + 300, "idle")


def test_a_drain_is_not_quiet_yet():
    got = after(a_replica(drain_at=NOW, quiet=True), Verb.DRAIN)
    assert (got.phase, got.want, got.drain_at, got.quiet) == (Phase.DRAINING, Want.DRAINED, None, False)


@cases(("verb", "want"), [(Verb.SLEEP, Want.ASLEEP), (Verb.STOP, Want.STOPPED)])
def test_sleep_and_stop_take_time_and_hold_meanwhile(verb, want):
    got = after(a_replica(phase=Phase.DRAINING), verb)
    assert (got.phase, got.want, moving(got)) == (Phase.DRAINING, want, True)


def test_a_forced_stop_of_a_ready_one_drains():
    assert after(a_replica(), Verb.STOP, force=True).phase is Phase.DRAINING


@cases(
    "decision",
    [
        Decision(Verb.STOP, "s", Reason.IDLE, 1),
        Decision(Verb.SLEEP, "s", Reason.IDLE, 1),
        Decision(Verb.WAKE, "s", Reason.CALL, 1),
        Decision(Verb.DRAIN, "s", Reason.IDLE, 99),
        Decision(Verb.DRAIN, "s", Reason.IDLE),
    ],
)
def test_what_is_not_legal_is_not_recorded(decision):
    draft = a_draft(a_card(), a_service(), a_replica())
    assert not draft.do(decision)
    assert draft.decisions == []


def test_a_replica_has_one_decision_a_plan():
    draft = a_draft(a_card(), a_service(), a_replica())
    assert draft.do(Decision(Verb.DRAIN, "s", Reason.IDLE, 1))
    assert not draft.do(Decision(Verb.WAKE, "s", Reason.HOLD, 1))


def test_a_copy_of_this_plan_is_left_alone():
    draft = a_draft(a_card(), a_service())
    draft.do(Decision(Verb.START, "s", Reason.HOLD, cards=("c1",)))
    (new,) = draft.of_service("s")
    assert not draft.do(Decision(Verb.STOP, "s", Reason.ROOM, new.id))


def test_promised_room_is_held():
    draft = a_draft(a_card(), a_service(), a_service("x"))
    draft.promise([draft.phantom("x", ("c1",), 4000)])
    assert room_mib(draft.book("c1")) == 74766 - 13000
    assert draft.of_service("x") == []


def test_a_promised_wake_holds_what_it_will_hold():
    draft = a_draft(a_card(), a_service(), a_replica(phase=Phase.ASLEEP))
    draft.promise([draft.replicas[1]])
    assert room_mib(draft.book("c1")) == 74766 - 13000


def test_refusals_are_decisions_that_do_nothing():
    draft = a_draft(a_card(), a_service())
    draft.refuse("s", Reason.HOLD, Refusal(Code.NO_CAPACITY))
    assert draft.refused("s")
    assert not draft.refused("x")
    assert draft.of_service("s") == []


@cases(
    ("replica", "is_moving"),
    [
        (a_replica(), False),
        (a_replica(phase=Phase.STARTING), True),
        (a_replica(phase=Phase.STARTING, want=Want.STOPPED), True),
        (a_replica(phase=Phase.DRAINING), False),
        (a_replica(phase=Phase.DRAINING, want=Want.ASLEEP), True),
        (a_replica(phase=Phase.DRAINING, want=Want.STOPPED), True),
        (a_replica(phase=Phase.ASLEEP), False),
        (a_replica(phase=Phase.ASLEEP, want=Want.STOPPED), True),
        (a_replica(phase=Phase.FAILED), False),
    ],
)
def test_who_is_on_the_move(replica, is_moving):
    assert moving(replica) is is_moving
    draft = a_draft(a_card(), a_service(), replica)
    assert (draft.busy("c1") is not None) is is_moving
    assert draft.busy("c1", but=1) is None


# The table of legal steps

LEGAL = {
    Verb.START: {Phase.STOPPED, Phase.FAILED},
    Verb.WAKE: {Phase.ASLEEP, Phase.DRAINING},
    Verb.DRAIN: {Phase.READY},
    Verb.SLEEP: {Phase.DRAINING},
    Verb.STOP: {Phase.STARTING, Phase.DRAINING, Phase.ASLEEP, Phase.FAILED},
}


@cases("verb", list(Verb))
@cases("phase", list(Phase))
def test_the_table_of_legal_steps(verb, phase):
    decision = Decision(verb, "s", Reason.IDLE, 1)
    assert legal(decision, a_replica(phase=phase)) is (phase in LEGAL[verb])
    assert not legal(decision, a_replica(phase=phase, external=True))
    assert legal(decision, None) is (verb is Verb.START)


@cases(
    ("reason", "force", "allowed"),
    [
        (Reason.FAULT, False, True),
        (Reason.PRESSURE, False, True),
        (Reason.IDLE, False, False),
        (Reason.OPERATOR, True, True),
    ],
)
def test_a_ready_one_stops_only_by_fault_pressure_or_force(reason, force, allowed):
    assert legal(Decision(Verb.STOP, "s", reason, 1, force=force), a_replica()) is allowed


@cases(
    ("want", "reason", "allowed"),
    [
        (Want.DRAINED, "idle", True),
        (Want.DRAINED, "room", True),
        (Want.DRAINED, "operator", False),
        (Want.DRAINED, "pressure", False),
        (Want.DRAINED, "fault", False),
        (Want.ASLEEP, "idle", False),
        (Want.STOPPED, "idle", False),
    ],
)
def test_which_drains_are_taken_back(want, reason, allowed):
    replica = a_replica(phase=Phase.DRAINING, want=want, reason=reason)
    assert legal(Decision(Verb.WAKE, "s", Reason.HOLD, 1), replica) is allowed


def test_every_verb_says_what_is_wanted_after():
    assert set(WANT_AFTER) == set(Verb)


@cases(
    ("want", "attempt", "phase", "phase_attempt", "seen"),
    [
        (Want.READY, 2, Phase.READY, 2, Phase.READY),
        (Want.READY, 2, Phase.FAILED, 1, Phase.STARTING),
        (Want.READY, 1, Phase.ASLEEP, 1, Phase.STARTING),
        (Want.READY, 1, Phase.DRAINING, 1, Phase.READY),
        (Want.READY, 1, Phase.FAILED, 1, Phase.FAILED),
        (Want.DRAINED, 1, Phase.READY, 1, Phase.DRAINING),
        (Want.STOPPED, 1, Phase.READY, 1, Phase.DRAINING),
        (Want.STOPPED, 2, Phase.STOPPED, 1, Phase.STARTING),
        (Want.ASLEEP, 1, Phase.ASLEEP, 1, Phase.ASLEEP),
        (Want.STOPPED, 1, Phase.STOPPED, 1, Phase.STOPPED),
    ],
)
def test_the_phase_that_counts(want, attempt, phase, phase_attempt, seen):
    assert seen_phase(want, attempt, phase, phase_attempt) is seen


# Hosts


@cases(
    ("seen_ago", "serving", "is_silent", "is_lost"),
    [
        (0, False, False, False),
        (15, False, False, False),
        (16, False, True, False),
        (60, False, True, False),
        (61, False, True, True),
        (61, True, True, False),
        (None, False, True, True),
    ],
)
def test_a_host_is_silent_and_then_lost(seen_ago, serving, is_silent, is_lost):
    host = a_host(seen_at=None if seen_ago is None else NOW - seen_ago, serving=serving)
    assert silent(host, POLICY, NOW) is is_silent
    assert lost(host, POLICY, NOW) is is_lost


def test_an_unknown_host_is_lost():
    assert lost(None, POLICY, NOW)
    assert silence_s(None, NOW) == float("inf")
    assert silence_s(a_host(seen_at=NOW + 1), NOW) == 0


def test_the_host_of_a_replica_is_that_of_its_card():
    world = a_world(a_card("c1", "h7"))
    assert host_of(world, a_replica()).name == "h7"
    assert host_of(world, a_replica(card="c9")) is None


PAIR = a_service(min_replicas=2, max_replicas=4)
CARDS = [a_card("c1"), a_card("c2"), a_card("c3", "h2"), a_card("c4", "h3")]


@cases(
    ("on", "host", "allowed"),
    [([], "h1", True), (["c1"], "h1", False), (["c1"], "h2", True), (["c1", "c3"], "h1", True)],
)
def test_who_may_come_by_the_rule_of_two_hosts(on, host, allowed):
    draft = a_draft(PAIR, *CARDS, *(a_replica(i, card=c) for i, c in enumerate(on)))
    assert may_come(draft, PAIR, draft.world.hosts[host]) is allowed
    assert may_come(draft, a_service(min_replicas=1), draft.world.hosts[host])


@cases(
    ("on", "goes", "allowed"),
    [
        (["c1", "c3"], 0, False),
        (["c1", "c2", "c3"], 0, True),
        (["c1", "c2", "c3"], 2, False),
        (["c1", "c3", "c4"], 2, True),
        (["c1", "c2"], 0, True),
    ],
)
def test_who_may_go_by_the_rule_of_two_hosts(on, goes, allowed):
    draft = a_draft(PAIR, *CARDS, *(a_replica(i, card=c) for i, c in enumerate(on)))
    assert may_go(draft, draft.replicas[goes]) is allowed
