"""What holds of every card with batch, every preload and every outgrown engine, by random worlds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.decision import Code, Reason, Verb
from scheduler.isolation import Why, caps, day_calls, in_window, over, quiet_p99s, shared_cards, stepped, steps
from scheduler.lifecycle import legal
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.world import Act, Order, Phase, Pool, Profile, Throttled, World
from tests.properties.worlds import any_world
from tests.scheduler.build import NOW, POLICY

SAME = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
MANY = settings(SAME, max_examples=200)
SOME = settings(SAME, max_examples=40)


def busy_world(cards: int, services: int, density: int, seed: int) -> World:
    """A random world with measurements: much batch, slow neighbours, full KV, preloads, slices, some of it unknown."""
    dice = Random(seed)
    world = any_world(cards, services, density, seed)
    there = {
        c.id: replace(
            c,
            slice_of=dice.choice(["", "", "big"]),
            batch_calls=(calls := dice.choice([None, None, 1, 2, 9])),
            batch_calls_at=None if calls is None else NOW - dice.choice([1.0, 40.0, 70.0]),
            batch_lowered_at=None if calls is None else NOW - dice.choice([1.0, 40.0, 70.0]),
        )
        for c in world.cards.values()
    }
    on = {
        r.id: replace(
            r,
            in_flight=dice.choice([None, 0, 1, 5, 40]),
            p99_ms=dice.choice([None, 100.0, 300.0, 5000.0]),
            quiet_p99_ms=dice.choice([None, 90.0, 290.0]),
            disturbance_pct=dice.choice([None, -5.0, 3.0, 19.0, 60.0]),
            kv_full_samples=dice.choice([0, 0, 1, 2]),
            kv_used_pct=dice.choice([None, 50.0, 97.0]),
            waiting=dice.choice([None, 0, 7]),
            kv_granted_mib=dice.choice([r.kv_granted_mib, r.kv_granted_mib // 2]),
            since=NOW - dice.choice([0.0, 20.0, 60.0]) if r.phase is Phase.STARTING else r.since,
            reason=dice.choice(["forecast", "operator", "hold", "regrant"]) if r.phase in LOADED else r.reason,
        )
        for r in world.replicas.values()
    }
    named = {
        n: replace(
            s,
            profile=dice.choice([Profile.BATCH, *Profile]),
            p99_target_ms=dice.choice([None, 250, 9000]),
            slice_required=dice.random() < 0.2,
        )
        for n, s in world.services.items()
    }
    mode = dice.choice(["observe", "suggest", "enforce", "enforce"])
    names = sorted(named)
    orders = tuple(Order(i, Act.PRELOAD, n, NOW + 99, force=dice.random() < 0.3) for i, n in enumerate(names[:2]))
    past = tuple(Throttled(names[0], c, NOW - dice.choice([10, 290, 400])) for c in sorted(there)[:1])
    return replace(
        world,
        cards=there,
        replicas=on,
        services=named,
        pools={"default": Pool("default", mode=mode)},
        site_minute=dice.choice([None, 0, 419, 420, 720, 1320]),
        throttled=past,
        orders=orders,
    )


LOADED = (Phase.STARTING, Phase.READY)


def worlds() -> st.SearchStrategy[World]:
    return st.builds(busy_world, st.integers(1, 4), st.integers(1, 6), st.integers(1, 8), st.integers(0, 2**32))


@MANY
@given(worlds())
def test_limits_are_of_governed_cards_with_batch_and_never_starve_it(world):
    """Nothing but pressure admits nobody, and the controller never goes below its least."""
    for card, cap in caps(world, []).items():
        assert card in shared_cards(world)
        assert world.pools["default"].mode != "observe"
        assert (cap.calls, cap.why) == (world.cards[card].batch_calls, Why.NEIGHBOUR)
        assert cap.calls >= POLICY.batch_least_calls
    for service in world.services.values():
        free = service.profile is not Profile.BATCH or in_window(POLICY, world.site_minute)
        assert (day_calls(world, POLICY, service, NOW) is None) is free


@MANY
@given(worlds())
def test_a_step_down_has_a_slow_neighbour_and_batch_in_flight_to_blame(world):
    shared = shared_cards(world)
    for step in steps(world, POLICY, NOW):
        assert step.new != step.old
        assert step.old == world.cards[step.card].batch_calls
        if step.new is None or (step.old is not None and step.new > step.old):
            continue
        assert step.new >= POLICY.batch_least_calls
        assert shared[step.card].in_flight
        assert any(over(world, POLICY, r) is not None for r in shared[step.card].online)


@MANY
@given(worlds())
def test_a_step_up_has_no_slow_neighbour(world):
    shared = shared_cards(world)
    for step in steps(world, POLICY, NOW):
        if step.old is not None and step.card in shared and (step.new is None or step.new > step.old):
            well = all(over(world, POLICY, r) is None for r in shared[step.card].online)
            assert well or world.pools["default"].mode == "observe"


@MANY
@given(worlds())
def test_what_is_unknown_slows_nobody(world):
    blind = {i: replace(r, p99_ms=None, disturbance_pct=None) for i, r in world.replicas.items()}
    for step in steps(replace(world, replicas=blind), POLICY, NOW):
        assert step.old is not None
        assert step.new is None or step.new > step.old
    assert quiet_p99s(replace(world, replicas=blind), POLICY, NOW) == {}


@MANY
@given(worlds())
def test_steps_that_were_taken_are_not_taken_again_at_once(world):
    cards = dict(world.cards)
    for step in steps(world, POLICY, NOW):
        cards[step.card] = stepped(cards[step.card], step, NOW)
    assert steps(replace(world, cards=cards), POLICY, NOW + 0.5) == []


@MANY
@given(worlds())
def test_only_preloads_that_nobody_waits_for_are_called_off(world):
    for d in plan(world, POLICY, NOW):
        if d.reason is not Reason.THROTTLE:
            continue
        old, service = world.replicas[d.replica], world.services[d.service]
        assert legal(d, old)
        assert (d.verb, old.phase) == (Verb.STOP, Phase.STARTING)
        assert old.reason in ("forecast", "operator")
        assert service.demand.held == 0
        neighbours = [r for r in world.replicas.values() if set(r.cards) & set(old.cards) and r.id != old.id]
        assert any((r.disturbance_pct or 0) >= POLICY.throttle_rise_pct for r in neighbours)


@MANY
@given(worlds())
def test_no_preload_begins_beside_a_disturbed_neighbour(world):
    for d in plan(world, POLICY, NOW):
        if d.verb is not Verb.START or d.refusal or d.reason is not Reason.OPERATOR:
            continue
        forced = any(o.force for o in world.orders if o.service == d.service)
        on = [r for r in world.replicas.values() if set(r.cards) & set(d.cards) and r.phase is Phase.READY]
        assert forced or all((r.disturbance_pct or 0) < POLICY.throttle_rise_pct for r in on)


@MANY
@given(worlds())
def test_who_needs_a_slice_is_started_on_one_only(world):
    for d in plan(world, POLICY, NOW):
        if d.verb is Verb.START and not d.refusal and d.replica is None and world.services[d.service].slice_required:
            assert all(world.cards[c].slice_of for c in d.cards)


@MANY
@given(worlds())
def test_more_kv_takes_nothing_from_anybody(world):
    """Growth for KV starts copies and drains what a larger one replaces; nobody else's copy goes for it."""
    for d in plan(world, POLICY, NOW):
        if d.reason is Reason.REGRANT and not d.refusal:
            assert d.verb in (Verb.START, Verb.DRAIN)
            if d.verb is Verb.DRAIN:
                assert any(
                    r.service == d.service and r.reason == "regrant" and r.phase is Phase.READY
                    for r in world.replicas.values()
                )
        if d.refusal is not None and d.refusal.code is Code.KV_FULL:
            assert world.replicas[d.replica].kv_full_samples >= POLICY.kv_full_samples


@SOME
@given(worlds(), st.integers(1, 3))
def test_kv_growth_ends(world, at_once):
    """Each plan starts at most so many copies for it, and a service never has more than one beyond its maximum."""
    policy = Policy(kv_placements=at_once)
    found = [d for d in plan(world, policy, NOW) if d.verb is Verb.START and not d.refusal]
    grown = [d for d in found if d.reason in (Reason.QUEUE, Reason.REGRANT) and "kv_now_mib" in d.numbers]
    assert len(grown) <= at_once
    for d in grown:
        service = world.services[d.service]
        live = [r for r in world.replicas.values() if r.service == d.service and r.phase in LOADED]
        assert len(live) <= max(service.max_replicas, service.min_replicas) + (d.reason is Reason.REGRANT) + 1


def test_the_worlds_have_all_that_is_spoken_of():
    """Else the properties above would say little."""
    seen: dict[str, int] = {}
    for seed in range(250):
        world = busy_world(1 + seed % 4, 1 + seed % 6, 1 + seed % 8, seed)
        found = plan(world, POLICY, NOW)
        told = {
            "caps": bool(caps(world, [])),
            "down": any(s.new is not None and (s.old is None or s.new < s.old) for s in steps(world, POLICY, NOW)),
            "up": any(s.old is not None and (s.new is None or s.new > s.old) for s in steps(world, POLICY, NOW)),
            "quiet": bool(quiet_p99s(world, POLICY, NOW)),
            "throttle": any(d.reason is Reason.THROTTLE for d in found),
            "waits": any(d.refusal is not None and d.refusal.code is Code.THROTTLED for d in found),
            "kv": any(d.refusal is not None and d.refusal.code is Code.KV_FULL for d in found),
            "regrant": any(d.reason is Reason.REGRANT and not d.refusal for d in found),
        }
        for name, so in told.items():
            seen[name] = seen.get(name, 0) + so
    assert min(seen.values()) >= 1, seen
