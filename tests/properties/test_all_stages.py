"""What a plan must be (specification, section 10), over random worlds in which every stage has something to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import modes
from scheduler.decision import CONVENIENCE, MAY_CUT, Code, Reason, Verb
from scheduler.draft import Draft, moving
from scheduler.elastic import ELASTIC
from scheduler.expectation import Forecast
from scheduler.kept import whitelisted
from scheduler.lifecycle import legal
from scheduler.memory import (
    allocatable_mib,
    asleep_count,
    awake_count,
    book_limit_pct,
    held_mib,
    kv_sums,
    room_mib,
    within_oversell,
)
from scheduler.planner import plan
from scheduler.sleep import falling_asleep, host_room_mib
from scheduler.two_hosts import may_go
from scheduler.waterline import ahead, levels
from scheduler.world import Budget, Phase, Profile, Replica, Tier, Want, World
from tests.properties.test_plan import EVENTS, SAME, a_history_farm, happen
from tests.properties.wild import wild_worlds
from tests.scheduler.build import NOW, POLICY, acting

MANY = settings(SAME, max_examples=250)


def charged(world: World, decisions) -> Draft:
    draft = Draft(world, POLICY, NOW)
    for decision in acting(decisions):
        assert draft.do(decision), decision
    return draft


def loads(world: World, decisions) -> list[tuple[object, tuple[str, ...]]]:
    """(decision, cards) of each start and wake; a notice or drain taken back loads nothing."""
    found = []
    for d in acting(decisions):
        old = world.replicas.get(d.replica) if d.replica is not None else None
        if d.verb is Verb.START or (d.verb is Verb.WAKE and old.phase is Phase.ASLEEP):
            found.append((d, d.cards or old.cards))
    return found


@MANY
@given(wild_worlds())
def test_each_decision_is_legal_one_a_replica_and_the_same_twice(world):
    decisions = plan(world, POLICY, NOW)
    for d in acting(decisions):
        assert legal(d, world.replicas.get(d.replica) if d.replica is not None else None), d
    assert max(Counter(d.replica for d in acting(decisions) if d.replica is not None).values(), default=0) <= 1
    assert plan(world, POLICY, NOW) == decisions


@MANY
@given(wild_worlds())
def test_weights_are_never_oversold_the_buffer_is_intact_and_oversell_within_its_limit(world):
    decisions = plan(world, POLICY, NOW)
    draft = charged(world, decisions)
    for decision, cards in loads(world, decisions):
        for card in cards:
            book = draft.book(card)
            assert room_mib(book) >= 0, decision
            assert sum(held_mib(s.replica, s.service, POLICY) for s in book.seats) <= allocatable_mib(book)
            assert within_oversell(*kv_sums(book), book_limit_pct(book)), decision


def may_overtake(replica: Replica) -> bool:
    """A stop for pressure, a fault, a deadline or by force does not wait for a start on its card."""
    waits_for_nobody = {*MAY_CUT, Reason.MAINTENANCE, Reason.OPERATOR}
    return replica.want is Want.STOPPED and replica.reason in waits_for_nobody


@MANY
@given(wild_worlds())
def test_the_limits_of_cards_and_hosts_hold(world):
    decisions = plan(world, POLICY, NOW)
    draft = charged(world, decisions)
    taken = loads(world, decisions)
    assert max(Counter(c for _, cards in taken for c in cards).values(), default=0) <= 1
    for decision, cards in taken:
        assert len(cards) == world.services[decision.service].cards_per_replica or decision.replica is not None
        assert len({world.cards[c].host for c in cards}) == 1
        for card in cards:
            assert awake_count(draft.book(card)) <= POLICY.max_replicas_per_card
            assert sum(moving(r) and not may_overtake(r) for r in draft.on_card(card)) == 1
            assert len(draft.loading_on(world.cards[card].host)) <= POLICY.max_loads_per_host
            assert world.cards[card].healthy
            if decision.verb is Verb.START and decision.replica is None:
                assert [r.service for r in draft.on_card(card)].count(decision.service) == 1


@MANY
@given(wild_worlds())
def test_nothing_starts_where_kv_would_be_by_the_page(world):
    for decision, cards in loads(world, plan(world, POLICY, NOW)):
        if decision.verb is Verb.START:
            assert all(world.pools[world.cards[c].pool].kv != ELASTIC for c in cards), decision


@MANY
@given(wild_worlds())
def test_sleepers_fit_the_card_and_the_memory_of_their_host(world):
    decisions = plan(world, POLICY, NOW)
    draft = charged(world, decisions)
    for d in acting(decisions):
        if d.verb is Verb.SLEEP:
            for card in world.replicas[d.replica].cards:
                host = world.hosts[world.cards[card].host]
                assert sum(falling_asleep(r) for r in draft.on_card(card)) <= POLICY.max_sleepers_per_card
                assert asleep_count(draft.book(card)) <= max(
                    POLICY.max_sleepers_per_card, sum(falling_asleep(r) for r in draft.on_card(card))
                )
                assert host_room_mib(draft, host) >= 0


@MANY
@given(wild_worlds())
def test_online_is_never_evicted(world):
    for d in acting(plan(world, POLICY, NOW)):
        if d.reason is Reason.PRESSURE and d.verb is Verb.DRAIN:
            assert world.services[d.service].profile is not Profile.ONLINE


@MANY
@given(wild_worlds())
def test_whitelisted_are_never_reclaimed(world):
    """Neither for idleness nor for room nor for a budget; what was begun before is finished."""
    draft = Draft(world, POLICY, NOW)
    for d in acting(plan(world, POLICY, NOW)):
        if d.verb not in (Verb.DRAIN, Verb.STOP) or d.reason not in (Reason.IDLE, Reason.ROOM, Reason.BUDGET):
            continue
        replica = world.replicas[d.replica]
        if not modes.begun(d, replica) and replica.phase is not Phase.STARTING:
            assert not whitelisted(draft, replica, world.services[d.service]), d


@MANY
@given(wild_worlds())
def test_no_convenience_takes_a_service_from_two_hosts_to_one(world):
    """But a spent budget, which ends batch and lowfreq services altogether: they have no minimum left."""
    draft = Draft(world, POLICY, NOW)
    for d in acting(plan(world, POLICY, NOW)):
        ended = d.reason is Reason.BUDGET and world.services[d.service].profile is not Profile.ONLINE
        if d.verb is Verb.DRAIN and d.reason in CONVENIENCE and not ended:
            assert may_go(draft, world.replicas[d.replica]), d
        draft.do(d)


@MANY
@given(wild_worlds())
def test_no_convenience_cuts_a_call_and_nobody_elses_engine_is_touched(world):
    for d in acting(plan(world, POLICY, NOW)):
        replica = world.replicas.get(d.replica)
        if replica is None:
            continue
        assert not replica.external
        if d.verb in (Verb.SLEEP, Verb.STOP) and replica.phase is Phase.DRAINING:
            assert replica.quiet or (d.force and d.reason in (*MAY_CUT, Reason.OPERATOR, Reason.MAINTENANCE)), d


@MANY
@given(wild_worlds())
def test_no_pair_swaps_back_within_its_minimum_stay(world):
    for d in acting(plan(world, POLICY, NOW)):
        comes = d.numbers.get("room_for")
        for swap in world.swaps:
            if d.reason is Reason.ROOM and swap.came == d.service and swap.went == comes:
                assert NOW - swap.at >= POLICY.min_loaded_s, d


@MANY
@given(wild_worlds())
def test_each_unmet_wish_of_a_caller_has_one_typed_answer(world):
    decisions = plan(world, POLICY, NOW)
    # that an engine's KV is full is said of a copy that serves, beside what is said of a wish
    answers = [d for d in decisions if d.refuses_wish is not None and d.refuses_wish.code is not Code.KV_FULL]
    refused = Counter(d.service for d in answers)
    draft = charged(world, decisions)
    assert max(refused.values(), default=0) <= 1
    for service in world.services.values():
        if service.demand.held:
            assert draft.in_hand(service.name) or refused[service.name] == 1, service.name


@MANY
@given(wild_worlds())
def test_the_plan_does_not_know_the_modes(world):
    """observe, suggest and enforce are the recorder's business."""
    enforcing = replace(world, pools={n: replace(p, mode="enforce") for n, p in world.pools.items()})
    assert plan(world, POLICY, NOW) == plan(enforcing, POLICY, NOW)


@MANY
@given(wild_worlds())
def test_where_a_pool_observes_or_suggests_no_memory_is_taken_without_leave(world):
    for d in acting(plan(world, POLICY, NOW)):
        pools = {world.pools[p].mode for p in modes.pools_of(d, world)}
        if not modes.advice(d, world):
            assert "observe" not in pools
            assert "suggest" not in pools or not modes.takes(d, world)


@MANY
@given(wild_worlds())
def test_who_is_about_to_go_is_nobody_whom_the_rules_keep(world):
    draft = Draft(world, POLICY, NOW)
    for one in ahead(draft):
        assert one.noticed or not whitelisted(draft, one.replica, one.service)
        assert not one.replica.external or one.noticed
        assert one.noticed or one.at >= NOW
    assert all(level.used_mib >= 0 for level in levels(draft))


@MANY
@given(wild_worlds())
def test_the_order_of_mappings_does_not_matter(world):
    turned = replace(
        world,
        replicas=dict(reversed(world.replicas.items())),
        cards=dict(reversed(world.cards.items())),
        services=dict(reversed(world.services.items())),
    )
    assert plan(world, POLICY, NOW) == plan(turned, POLICY, NOW)


@MANY
@given(wild_worlds())
def test_a_frozen_world_only_refuses(world):
    assert acting(plan(replace(world, frozen=True), POLICY, NOW)) == []


# Convergence

TIERS = st.lists(st.sampled_from([Tier.COLD, Tier.WARM, Tier.HOT]), min_size=6, max_size=6)
MINIMA = st.lists(st.sampled_from([0, 0, 1, 2]), min_size=6, max_size=6)
SPENT = st.sampled_from([(), (Budget("t", 1000, 2000, 3000, "a"),), (Budget("t", 1000, 2000, 3000, warned=True),)])
EXPECTED = st.lists(st.sampled_from([0.0, 0.2, 0.4, 0.9]), min_size=6, max_size=6)


@settings(SAME, max_examples=25)
@given(st.lists(EVENTS, max_size=15), TIERS, MINIMA, SPENT, EXPECTED)
def test_with_constant_demand_forecasts_and_budgets_the_plan_becomes_empty(events, tiers, minima, spent, expected):
    farm = a_history_farm(tiers, minima)
    hour = farm.now - farm.now % 3600
    likely = dict(zip("abcdef", expected, strict=True))
    forecasts = {name: Forecast(hour, (p,) * 24, (True,) * 24, load_s=7.0) for name, p in likely.items() if p}
    farm.world = replace(farm.world, budgets=spent, forecasts=forecasts)
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
        assert steps < 900, farm.journal[-6:]
