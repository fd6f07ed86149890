"""A spent budget cuts nobody, takes no minimum of an online service, and touches no other."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scheduler.budget import covers, tightened
from scheduler.decision import Reason, Verb
from scheduler.draft import Draft
from scheduler.planner import plan
from scheduler.world import Budget, Profile
from tests.properties.test_plan import HISTORIES, MANY, SOME, a_history_farm, after, happen
from tests.properties.worlds import worlds
from tests.scheduler.build import NOW, POLICY, acting

SPENT = Budget("t", 1000, 1500)
BUDGETS = st.sampled_from([(SPENT,), (SPENT, Budget("u", 0, 0)), (Budget("t", 1000, 1000, service="a"),)])


@MANY
@given(worlds(), BUDGETS)
def test_only_what_is_spent_is_asked_to_go_and_online_keeps_its_minimum(world, budgets):
    world = replace(world, budgets=budgets)
    before, draft = Draft(world, POLICY, NOW), after(world, decisions := plan(world, POLICY, NOW))
    for d in acting(decisions):
        if d.reason is Reason.BUDGET and d.not_before is not None:
            service = world.services[d.service]
            assert any(covers(b, service) for b in budgets)
            assert service.whitelisted_until is None or service.whitelisted_until <= NOW
            assert d.not_before >= NOW + POLICY.grace_s
    for service in world.services.values():
        if service.profile is Profile.ONLINE or not any(covers(b, service) for b in budgets):
            assert len(draft.staying(service.name)) >= min(len(before.staying(service.name)), service.min_replicas)


@MANY
@given(worlds(), BUDGETS)
def test_nothing_is_cut_and_nothing_forced_for_money(world, budgets):
    for d in acting(plan(replace(world, budgets=budgets), POLICY, NOW)):
        if d.reason is Reason.BUDGET:
            assert not d.force
            assert d.verb is not Verb.STOP or world.replicas[d.replica].quiet


@MANY
@given(worlds())
def test_budgets_that_are_not_spent_change_nothing(world):
    rich = replace(world, budgets=(Budget("t", 1000, 999, 9999), Budget("u", 10, 0, service="a")))
    assert plan(rich, POLICY, NOW) == plan(world, POLICY, NOW)


@SOME
@HISTORIES
def test_with_constant_demand_a_spent_budget_comes_to_rest(events, tiers, minima):
    farm = a_history_farm(tiers, minima)
    farm.world = replace(farm.world, budgets=(SPENT,))
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
        assert steps < 900, farm.journal[-5:]
    for service in farm.world.services.values():
        assert len(farm.ready(service.name)) <= tightened(service).max_replicas
