"""Batch beside online services: the window of the day, the controller of each card, and what is no reason at all."""

from __future__ import annotations

from dataclasses import replace

from scheduler.decision import Code, Decision, Reason, Refusal, Verb
from scheduler.isolation import (
    Cap,
    Step,
    Why,
    caps,
    day_calls,
    in_window,
    may_run,
    opens_in_s,
    over,
    quiet_p99s,
    shared_cards,
    stepped,
    steps,
    worst,
)
from scheduler.layers import Overrides
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.world import Phase, Pool, Profile
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world, held
from tests.scheduler.cases import cases

BATCH = {"profile": Profile.BATCH}
NOON, MIDNIGHT = 12 * 60, 0


def minute(hour, minutes=0):
    return hour * 60 + minutes


def beside(in_flight=8, *, card=(), online=(), batch=(), target=None, seqs=16, **more):
    """One card with a batch replica (1) and an online one (2); by night unless told otherwise."""
    more.setdefault("site_minute", MIDNIGHT)
    return a_world(
        a_card(**dict(card)),
        a_service("night", max_num_seqs=seqs, **BATCH),
        a_service("hotline", p99_target_ms=target),
        a_replica(1, "night", in_flight=in_flight, **dict(batch)),
        a_replica(2, "hotline", **dict(online)),
        **more,
    )


def slow(pct=19, base=200.0):
    """An online replica whose P99 is this far above its own of quiet times."""
    return {"p99_ms": base * (100 + pct) / 100, "quiet_p99_ms": base}


# The window


@cases(
    ("at", "free"),
    [
        (minute(22), True),
        (minute(21, 59), False),
        (minute(23, 59), True),
        (minute(0), True),
        (minute(6, 59), True),
        (minute(7), False),
        (NOON, False),
        (None, True),
    ],
)
def test_the_window_crosses_midnight(at, free):
    assert in_window(POLICY, at) is free


@cases(("at", "free"), [(minute(1), True), (minute(4), True), (minute(5), False), (minute(0), False)])
def test_a_window_within_one_day(at, free):
    assert in_window(Policy(batch_from_min=60, batch_until_min=300), at) is free


@cases("at", [0, 59, 60, 61, 1439])
def test_equal_ends_are_the_whole_day(at):
    assert in_window(Policy(batch_from_min=60, batch_until_min=60), at)


def limit_of(world, name="night", policy=POLICY, now=NOW):
    return day_calls(world, policy, world.services[name], now)


def test_by_night_nothing_limits_batch():
    assert caps(beside(), []) == {}
    assert limit_of(beside()) is None


def test_by_day_a_fixed_limit_holds_for_batch_and_for_nobody_else():
    world = beside(site_minute=NOON)
    assert (limit_of(world), limit_of(world, "hotline")) == (4, None)
    assert limit_of(world, policy=Policy(batch_day_calls=9)) == 9
    few = a_service("few", profile=Profile.LOWFREQ)
    assert day_calls(world, POLICY, few, NOW) is None


HOURS = ((NOW - 100, NOW + 50), (NOW + 7200, NOW + 9000))


@cases(
    ("now", "free"),
    [
        (NOW - 101, False),
        (NOW - 100, True),
        (NOW + 49, True),
        (NOW + 50, False),
        (NOW + 7200, True),
        (NOW + 9001, False),
    ],
)
@cases("minute", [MIDNIGHT, NOON, None])
def test_its_own_hours_replace_the_policys_window(now, free, minute):
    service = a_service("night", batch_hours=HOURS, **BATCH)
    assert may_run(POLICY, service, minute, now) is free
    world = a_world(service, site_minute=minute)
    assert day_calls(world, POLICY, service, now) == (None if free else 4)


def test_hours_of_which_none_is_near_are_hours_all_the_same():
    service = a_service("night", batch_hours=(), **BATCH)
    assert not may_run(POLICY, service, MIDNIGHT, NOW)
    assert opens_in_s(POLICY, service, MIDNIGHT, NOW) is None


def test_how_long_until_its_hours_begin():
    own = a_service("night", batch_hours=HOURS, **BATCH)
    assert opens_in_s(POLICY, own, NOON, NOW + 60) == 7140
    assert opens_in_s(POLICY, a_service("night", **BATCH), NOON, NOW) == 10 * 3600
    assert opens_in_s(POLICY, a_service("night", **BATCH), minute(23), NOW) == 23 * 3600
    assert opens_in_s(POLICY, a_service("night", **BATCH), None, NOW) is None


# Where nothing is let in, nothing is loaded


STRICT = Policy(batch_day_calls=0)


def asked(policy=STRICT, at=NOON, **more):
    service = a_service("night", demand=held(), **BATCH, **more)
    return plan(a_world(service, site_minute=at), policy, NOW)


def test_outside_its_hours_callers_are_told_when_to_come_and_nothing_is_loaded():
    (refused,) = asked()
    assert (refused.refusal.code, refused.refusal.passing) == (Code.OUTSIDE_WINDOW, False)
    assert refused.refusal.numbers["retry_after_s"] == 10 * 3600


@cases(("policy", "at"), [(STRICT, MIDNIGHT), (POLICY, NOON), (STRICT, None)])
def test_within_them_or_where_a_few_are_let_in_it_is_loaded(policy, at):
    assert [d.verb for d in asked(policy, at)] == [Verb.START]


def test_an_operator_may_load_it_ahead():
    world = a_world(a_service("night", wished_at=NOW - 1, **BATCH), site_minute=NOON)
    assert [d.verb for d in plan(world, STRICT, NOW) if d.refusal is None] == [Verb.START]


def test_what_runs_when_its_hours_end_is_not_stopped_for_it():
    world = a_world(a_service("night", **BATCH), a_replica(1, "night", in_flight=3), site_minute=NOON)
    assert plan(world, STRICT, NOW) == []


@cases(("phase", "counts"), [(Phase.READY, 1), (Phase.DRAINING, 1), (Phase.ASLEEP, 0)])
def test_only_who_computes_counts(phase, counts):
    world = a_world(a_card(batch_calls=3), a_service("night", **BATCH), a_replica(1, "night", phase=phase))
    assert len(caps(world, [])) == counts
    assert len(shared_cards(world)) == counts


def test_the_controllers_limit_is_the_cards():
    assert caps(beside(card={"batch_calls": 2}), []) == {"c1": Cap(2, Why.NEIGHBOUR)}


def test_a_card_under_pressure_without_a_victim_admits_no_batch():
    alert = Decision(Verb.DRAIN, "", Reason.PRESSURE, cards=("c1",), refusal=Refusal(Code.NO_VICTIM))
    other = replace(alert, cards=("c2",))
    assert caps(beside(), [alert]) == {"c1": Cap(0, Why.PRESSURE)}
    assert caps(beside(), [other]) == {}
    assert caps(beside(card={"batch_calls": 3}), [alert]) == {"c1": Cap(0, Why.PRESSURE)}


# What is over


def test_a_neighbour_at_its_target_is_well_and_above_it_is_not():
    for p99, beyond in ((800, None), (801, 0.1), (1200, 50.0)):
        world = beside(target=800, online={"p99_ms": float(p99)})
        found = over(world, POLICY, world.replicas[2])
        assert (found and found["over_pct"]) == beyond
    assert found == {"neighbour": "hotline", "over_pct": 50.0, "p99_ms": 1200.0, "target_ms": 800}


def test_a_service_without_a_target_of_its_own_has_the_policys():
    world = beside(online={"p99_ms": 801.0})
    assert over(world, POLICY, world.replicas[2])["target_ms"] == POLICY.p99_target_ms == 800
    assert over(world, Policy(p99_target_ms=900), world.replicas[2]) is None


def test_who_is_over_its_target_without_batch_too_is_judged_by_its_own_p99_alone():
    for p99, expected in ((1000.0, False), (1100.0, False), (1200.0, True)):
        world = beside(target=800, online={"p99_ms": p99, "quiet_p99_ms": 1000.0})
        assert (over(world, POLICY, world.replicas[2]) is not None) is expected


@cases(("pct", "by_night", "by_day"), [(7, False, False), (9, False, True), (11.9, False, True), (19, True, True)])
def test_its_own_quiet_p99_is_the_measure_less_by_day(pct, by_night, by_day):
    for at, expected in ((MIDNIGHT, by_night), (NOON, by_day)):
        world = beside(online=slow(pct), site_minute=at)
        assert (over(world, POLICY, world.replicas[2]) is not None) is expected


@cases(("pct", "expected"), [(12.0, False), (12.5, True), (300.0, True)])
def test_uneven_chunks_count_as_well(pct, expected):
    world = beside(online={"disturbance_pct": pct})
    assert (over(world, POLICY, world.replicas[2]) is not None) is expected


def test_what_is_unknown_is_no_reason():
    for known in ({}, {"p99_ms": 799.0}, {"quiet_p99_ms": 1.0}, {"p99_ms": 5.0, "quiet_p99_ms": 0.0}):
        world = beside(online=known)
        assert over(world, POLICY, world.replicas[2]) is None
        assert steps(world, POLICY, NOW) == []


def test_the_worst_neighbour_is_named():
    world = beside(online=slow(30))
    world = replace(
        world,
        services={**world.services, "desk": a_service("desk")},
        replicas={**world.replicas, 3: a_replica(3, "desk", **slow(80))},
    )
    found = worst(world, POLICY, shared_cards(world)["c1"].online)
    assert (found["neighbour"], found["rise_pct"]) == ("desk", 80.0)


# The controller


@cases(("in_flight", "new"), [(16, 8), (9, 4), (8, 4), (3, 1), (1, 1)])
def test_the_first_step_halves_what_runs_at_once(in_flight, new):
    (step,) = steps(beside(in_flight, online=slow()), POLICY, NOW)
    assert (step.card, step.old, step.new) == ("c1", None, new)
    assert step.numbers["neighbour"] == "hotline"
    assert step.numbers["rise_pct"] == 19.0
    assert (step.numbers["in_flight"], step.numbers["limit_to"]) == (in_flight, new)


@cases(("limit", "in_flight", "new"), [(8, 8, 4), (8, 2, 1), (8, 9, 4), (3, 3, 1)])
def test_the_next_counts_from_the_limit_or_from_what_runs(limit, in_flight, new):
    card = {"batch_calls": limit, "batch_calls_at": NOW - 30}
    (step,) = steps(beside(in_flight, card=card, online=slow()), POLICY, NOW)
    assert (step.old, step.new) == (limit, new)


def test_a_step_is_given_time_to_show():
    card = {"batch_calls": 8, "batch_calls_at": NOW - 29, "batch_lowered_at": NOW - 29}
    assert steps(beside(card=card, online=slow()), POLICY, NOW) == []


def test_a_step_up_too_far_is_taken_back_at_once():
    card = {"batch_calls": 8, "batch_calls_at": NOW - 1, "batch_lowered_at": NOW - 61}
    (step,) = steps(beside(card=card, online=slow()), POLICY, NOW)
    assert step.new == 4


def test_batch_never_starves():
    card = {"batch_calls": 1, "batch_calls_at": NOW - 999}
    assert steps(beside(1, card=card, online=slow(500)), POLICY, NOW) == []


@cases("in_flight", [0, None])
def test_what_does_not_run_or_cannot_be_counted_is_not_blamed(in_flight):
    assert steps(beside(in_flight, online=slow(500)), POLICY, NOW) == []


def test_all_batch_on_the_card_counts_together():
    world = beside(6, online=slow())
    world = replace(
        world,
        services={**world.services, "more": a_service("more", **BATCH)},
        replicas={**world.replicas, 3: a_replica(3, "more", in_flight=6)},
    )
    (step,) = steps(world, POLICY, NOW)
    assert step.new == 6


@cases(("age", "new"), [(59, None), (60, 4), (600, 4)])
def test_afterwards_it_rises_one_by_one(age, new):
    card = {"batch_calls": 3, "batch_calls_at": NOW - age}
    found = steps(beside(card=card, online=slow(3)), POLICY, NOW)
    assert [step.new for step in found] == ([] if new is None else [new])


def test_it_ends_when_it_binds_nobody_any_more():
    card = {"batch_calls": 15, "batch_calls_at": NOW - 60}
    (step,) = steps(beside(card=card, seqs=16), POLICY, NOW)
    assert (step.old, step.new) == (15, None)


def test_it_ends_with_the_last_batch_on_the_card():
    world = a_world(a_card(batch_calls=2, batch_calls_at=NOW), a_service("hotline"), a_replica(2, "hotline", **slow()))
    (step,) = steps(world, POLICY, NOW)
    assert (step.old, step.new) == (2, None)


def test_a_well_neighbour_and_no_limit_is_nothing_to_do():
    assert steps(beside(online=slow(2)), POLICY, NOW) == []


def test_each_card_has_its_own():
    world = a_world(
        *(a_card(f"c{i}") for i in range(3)),
        a_service("night", **BATCH),
        a_service("hotline"),
        *(a_replica(i, "night", f"c{i}", in_flight=4) for i in range(3)),
        *(a_replica(10 + i, "hotline", f"c{i}", **slow(40 * i)) for i in range(3)),
    )
    assert [step.card for step in steps(world, POLICY, NOW)] == ["c1", "c2"]


def test_a_neighbour_over_two_cards_slows_batch_on_both():
    world = a_world(
        a_card("c1"),
        a_card("c2"),
        a_service("night", **BATCH),
        a_service("big"),
        a_replica(1, "night", "c1", in_flight=4),
        a_replica(2, "night", "c2", in_flight=4),
        replace(a_replica(3, "big", **slow(50)), cards=("c1", "c2")),
    )
    assert [step.card for step in steps(world, POLICY, NOW)] == ["c1", "c2"]


def test_a_step_is_written_down_with_its_time():
    card = a_card(batch_calls=8, batch_calls_at=1.0, batch_lowered_at=1.0)
    assert stepped(card, Step("c1", 8, 4), NOW) == a_card(batch_calls=4, batch_calls_at=NOW, batch_lowered_at=NOW)
    assert stepped(card, Step("c1", 8, 9), NOW) == a_card(batch_calls=9, batch_calls_at=NOW, batch_lowered_at=1.0)
    assert stepped(card, Step("c1", 8, None), NOW) == a_card(batch_calls_at=NOW, batch_lowered_at=1.0)
    assert stepped(a_card(), Step("c1", None, 5), NOW).batch_lowered_at == NOW


@cases(("mode", "acts"), [("observe", False), ("suggest", True), ("enforce", True)])
def test_where_one_only_looks_on_nobody_is_limited(mode, acts):
    pools = {"default": Pool("default", mode=mode)}
    world = beside(online=slow(), pools=pools)
    assert bool(caps(beside(card={"batch_calls": 4}, pools=pools), [])) is acts
    assert bool(steps(world, POLICY, NOW)) is acts
    left = beside(card={"batch_calls": 2}, pools=pools)
    assert [s.new for s in steps(left, POLICY, NOW)] == ([3] if acts else [None])


# What quiet is


def test_the_p99_of_quiet_times_is_learned_slowly():
    world = beside(0, online={"p99_ms": 300.0, "quiet_p99_ms": 200.0})
    assert quiet_p99s(world, POLICY, NOW) == {2: 220.0}
    assert quiet_p99s(beside(0, online={"p99_ms": 300.0}), POLICY, NOW) == {2: 300.0}


@cases("batch", [{"in_flight": 1}, {"in_flight": None}, {"in_flight": 0, "last_call_at": NOW - 299}])
def test_nothing_is_learned_while_batch_runs_or_has_just_run(batch):
    world = beside(batch["in_flight"], online={"p99_ms": 300.0}, batch={k: v for k, v in batch.items() if k[0] == "l"})
    assert quiet_p99s(world, POLICY, NOW) == {}


def test_it_is_learned_where_no_batch_is_at_all():
    world = a_world(a_service("hotline"), a_replica(2, "hotline", p99_ms=90.0))
    assert quiet_p99s(world, POLICY, NOW) == {2: 90.0}
    world = a_world(a_service("hotline"), a_replica(2, "hotline", p99_ms=90.0, quiet_p99_ms=90.0))
    assert quiet_p99s(world, POLICY, NOW) == {}, "what did not change is not written"


def test_what_is_unknown_is_not_learned():
    assert quiet_p99s(beside(0), POLICY, NOW) == {}


# A closed loop: batch slows its neighbour in proportion to its calls


# Layers of the policy


def layered(pools=(), services=()):
    return replace(POLICY, overrides=Overrides(dict(pools), dict(services)))


def test_a_pool_may_have_a_narrower_band_and_slower_steps():
    world = beside(online=slow(11))
    assert steps(world, POLICY, NOW) == []
    (step,) = steps(world, layered(pools={"default": {"neighbour_rise_night_pct": 10, "batch_keep_pct": 25}}), NOW)
    assert (step.old, step.new) == (None, 2)
    assert steps(world, layered(pools={"other": {"neighbour_rise_night_pct": 10}}), NOW) == []


def test_a_service_may_have_its_own_trickle_and_target():
    world = beside(site_minute=NOON, online={"p99_ms": 500.0})
    assert limit_of(world, policy=layered(services={"night": {"batch_day_calls": 1}})) == 1
    assert limit_of(world, policy=layered(services={"other": {"batch_day_calls": 1}})) == 4
    in_pool = layered(pools={"default": {"batch_day_calls": 7}})
    assert day_calls(world, in_pool, world.services["night"], NOW, "default") == 7
    assert over(world, POLICY, world.replicas[2]) is None
    assert over(world, layered(services={"hotline": {"p99_target_ms": 400}}), world.replicas[2]) is not None
