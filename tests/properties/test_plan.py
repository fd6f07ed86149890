"""Rules that hold in every world, by random worlds and random histories."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.bar import bar_of
from scheduler.decision import CONVENIENCE, Reason, Verb
from scheduler.draft import Draft, moving
from scheduler.lifecycle import legal
from scheduler.memory import (
    allocatable_mib,
    awake_count,
    book_limit_pct,
    held_mib,
    kv_sums,
    room_mib,
    within_oversell,
)
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.two_hosts import may_go
from scheduler.wishes import needs
from scheduler.world import Phase, Tier, Want, World
from tests.plays.farm import Farm
from tests.properties.worlds import worlds
from tests.scheduler.build import NOW, POLICY, a_card, a_service, a_world, acting

#: The same worlds in every run, so that a failure is the change's and not the day's.
SAME = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
MANY = settings(SAME, max_examples=200)
SOME = settings(SAME, max_examples=30)
LOADS = (Verb.START, Verb.WAKE)


def after(world: World, decisions) -> Draft:
    """The world with a plan's decisions charged to it."""
    draft = Draft(world, POLICY, NOW)
    for decision in acting(decisions):
        assert draft.do(decision), decision
    return draft


def cards_loaded(world: World, decisions) -> list[str]:
    """Cards on which the plan begins a start or wake; a notice or drain taken back loads nothing."""
    found = []
    for d in acting(decisions):
        old = world.replicas.get(d.replica) if d.replica is not None else None
        if d.verb is Verb.START or (d.verb is Verb.WAKE and old.phase is Phase.ASLEEP):
            found += d.cards or old.cards
    return found


@MANY
@given(worlds())
def test_each_decision_is_legal_and_a_replica_has_at_most_one(world):
    decisions = acting(plan(world, POLICY, NOW))
    for decision in decisions:
        assert legal(decision, world.replicas.get(decision.replica) if decision.replica is not None else None)
    assert max(Counter(d.replica for d in decisions if d.replica is not None).values(), default=0) <= 1


@MANY
@given(worlds())
def test_no_start_or_wake_oversells_weights_or_touches_the_buffer(world):
    decisions = plan(world, POLICY, NOW)
    draft = after(world, decisions)
    for card in cards_loaded(world, decisions):
        book = draft.book(card)
        assert room_mib(book) >= 0
        assert sum(held_mib(s.replica, s.service, POLICY) for s in book.seats) <= allocatable_mib(book)


@MANY
@given(worlds())
def test_no_start_or_wake_leaves_oversell_above_the_limit_of_the_mix(world):
    decisions = plan(world, POLICY, NOW)
    draft = after(world, decisions)
    for card in cards_loaded(world, decisions):
        book = draft.book(card)
        assert within_oversell(*kv_sums(book), book_limit_pct(book))


@MANY
@given(worlds())
def test_no_start_or_wake_breaks_the_limits_of_a_card(world):
    decisions = plan(world, POLICY, NOW)
    draft = after(world, decisions)
    for card in cards_loaded(world, decisions):
        book = draft.book(card)
        assert awake_count(book) <= POLICY.max_replicas_per_card
        assert world.cards[card].healthy
    for d in acting(decisions):
        if d.verb is Verb.START and d.replica is None:
            mates = [r for r in draft.on_card(d.cards[0]) if r.service == d.service]
            assert len(mates) == 1


@MANY
@given(worlds())
def test_at_most_one_load_is_in_flight_on_a_card_and_few_on_a_host(world):
    decisions = plan(world, POLICY, NOW)
    draft = after(world, decisions)
    loaded = cards_loaded(world, decisions)
    assert len(loaded) == len(set(loaded))
    for card in loaded:
        assert sum(moving(r) for r in draft.on_card(card)) == 1
        assert len(draft.loading_on(world.cards[card].host)) <= POLICY.max_loads_per_host


@MANY
@given(worlds())
def test_whitelisted_ones_are_never_asked_to_go_for_our_convenience(world):
    for d in acting(plan(world, POLICY, NOW)):
        if d.verb in (Verb.DRAIN, Verb.STOP) and d.reason in (Reason.IDLE, Reason.ROOM):
            replica = world.replicas[d.replica]
            until = world.services[d.service].whitelisted_until
            began = replica.phase in (Phase.DRAINING, Phase.STARTING)
            assert began or until is None or until <= NOW


@MANY
@given(worlds())
def test_the_minimum_of_each_service_stays(world):
    before, draft = Draft(world, POLICY, NOW), after(world, plan(world, POLICY, NOW))
    for service in world.services.values():
        had = len(before.staying(service.name))
        assert len(draft.staying(service.name)) >= min(had, service.min_replicas)


@MANY
@given(worlds())
def test_no_drain_takes_a_service_from_two_hosts_to_one(world):
    draft = Draft(world, POLICY, NOW)
    for d in acting(plan(world, POLICY, NOW)):
        if d.verb is Verb.DRAIN and d.reason in CONVENIENCE:
            assert may_go(draft, world.replicas[d.replica])
        draft.do(d)


@MANY
@given(worlds())
def test_each_wish_is_granted_or_refused_once_with_a_type(world):
    decisions = plan(world, POLICY, NOW)
    refused = Counter(d.service for d in decisions if d.refusal is not None)
    draft = after(world, decisions)
    assert max(refused.values(), default=0) <= 1
    for service in world.services.values():
        count = max((c for c, _ in needs(draft, service)), default=0)
        assert len(draft.in_hand(service.name)) >= count or refused[service.name] == 1


@MANY
@given(worlds())
def test_no_call_is_cut_and_nobody_elses_engine_touched(world):
    for d in acting(plan(world, POLICY, NOW)):
        replica = world.replicas.get(d.replica)
        if replica is None:
            continue
        assert not replica.external
        if d.verb in (Verb.SLEEP, Verb.STOP) and replica.phase is Phase.DRAINING:
            assert replica.quiet or (d.force and d.reason in (Reason.PRESSURE, Reason.FAULT))


@MANY
@given(worlds())
def test_the_order_of_mappings_does_not_matter(world):
    turned = replace(
        world,
        replicas=dict(reversed(world.replicas.items())),
        cards=dict(reversed(world.cards.items())),
        services=dict(reversed(world.services.items())),
    )
    assert plan(world, POLICY, NOW) == plan(turned, POLICY, NOW)


@MANY
@given(worlds())
def test_a_frozen_world_only_refuses(world):
    assert acting(plan(replace(world, frozen=True), POLICY, NOW)) == []


@MANY
@given(worlds())
def test_silent_hosts_are_left_alone(world):
    silent = {h.name for h in world.hosts.values() if NOW - h.seen_at > POLICY.silent_s}
    for d in acting(plan(world, POLICY, NOW)):
        cards = d.cards or world.replicas[d.replica].cards
        notice_taken_back = d.verb is Verb.WAKE and world.replicas[d.replica].phase is Phase.READY
        assert notice_taken_back or world.cards[cards[0]].host not in silent


@MANY
@given(worlds())
def test_every_bar_adds_up_to_its_card(world):
    draft = Draft(world, POLICY, NOW)
    for card in world.cards:
        bar = bar_of(draft.book(card))
        assert bar.sum_mib == bar.total_mib
        assert min(bar.buffer_mib, bar.free_mib or 0, bar.unknown_mib, bar.external_mib or 0) >= 0


QUICK = Policy(idle_unload_s=60, grace_s=10, min_loaded_s=40, half_empty_pct=0)
EVENTS = st.tuples(
    st.sampled_from(["call", "stream", "hang up", "wait", "wait", "host dies", "host is back", "fails", "mends"]),
    st.integers(0, 5),
)


def a_history_farm(draw_tiers, minima) -> Farm:
    cards = [a_card(f"c{i}", f"h{i % 3}", total=40960) for i in range(4)]
    names = "abcdef"
    wanted = [
        a_service(n, 12000, 3000, tier=t, min_replicas=m, max_replicas=max(m, 1), priority=50 + 20 * (n == "f"))
        for n, t, m in zip(names, draw_tiers, minima, strict=True)
    ]
    return Farm(a_world(*cards, *wanted), policy=QUICK, load_s=dict.fromkeys(names, 7.0))


def happen(farm: Farm, event: str, which: int) -> None:
    name = "abcdef"[which]
    match event:
        case "call" | "stream":
            farm.call(name, stream=event == "stream")
        case "hang up":
            farm.hang_up(name)
        case "host dies" if not farm.dead:
            farm.dead.add(f"h{which % 3}")
        case "host is back":
            farm.dead.clear()
        case "fails":
            farm.fails.add((name, f"c{which % 4}"))
        case "mends":
            farm.fails.clear()


HISTORIES = given(
    st.lists(EVENTS, max_size=25),
    st.lists(st.sampled_from([Tier.COLD, Tier.WARM]), min_size=6, max_size=6),
    st.lists(st.sampled_from([0, 0, 1, 2]), min_size=6, max_size=6),
)


@SOME
@HISTORIES
def test_a_history_never_overfills_a_card_nor_swaps_back_within_the_minimum_stay(events, tiers, minima):
    farm = a_history_farm(tiers, minima)
    for event, which in events:
        happen(farm, event, which)
        for _ in range(6):
            farm.step()
            draft = Draft(farm.world, QUICK, farm.now)
            for card in farm.world.cards:
                assert room_mib(draft.book(card)) >= 0, farm.phases()
                assert sum(r.phase is Phase.STARTING for r in draft.on_card(card)) <= 1
    last: dict[tuple[str, str], float] = {}
    for swap in farm.world.swaps:
        back = last.get((swap.went, swap.came))
        assert back is None or swap.at - back >= QUICK.min_loaded_s
        last[swap.came, swap.went] = swap.at


@SOME
@HISTORIES
def test_with_constant_demand_the_plan_becomes_empty(events, tiers, minima):
    farm = a_history_farm(tiers, minima)
    for event, which in events:
        happen(farm, event, which)
        farm.step(3)
    farm.dead.clear()
    farm.fails.clear()
    for name in list(farm.world.services):
        farm.hang_up(name)
    quiet, steps = 0, 0
    while quiet < 80:
        quiet = 0 if acting(farm.step(2)) else quiet + 1
        steps += 1
        assert steps < 700, farm.journal[-5:]
    for service in farm.world.services.values():
        assert len(farm.ready(service.name)) >= service.min_replicas or farm.refusals(service.name)


@pytest.mark.parametrize("want", [Want.STOPPED, Want.ASLEEP])
def test_what_is_decided_is_not_decided_again(want):
    """A tick may come twice: a replica that was told already is left alone."""
    farm = a_history_farm([Tier.COLD] * 6, [1] * 6)
    farm.step()
    first = farm.journal[:]
    farm._refresh()
    again = acting(plan(farm.world, QUICK, NOW))
    assert {d.service for _, d in first if d.refusal is None}.isdisjoint(d.service for d in again)
