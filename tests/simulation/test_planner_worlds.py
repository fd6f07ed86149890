"""The worlds of the planner's benchmark are what their names say, and the same for the same seed."""

import pytest

from benchmarks.planner_worlds import NOW, STORM, WORLDS, Size, full, mass_idle, steady, storm
from scheduler.decision import Reason, Verb
from scheduler.memory import room_mib
from scheduler.planner import plan
from scheduler.policy import DEFAULT
from scheduler.world import Phase
from tests.scheduler.build import a_draft, acting

SIZE = Size(48, 160, 144)


@pytest.mark.parametrize("name", WORLDS)
def test_the_same_seed_makes_the_same_world(name):
    assert WORLDS[name](SIZE, 3) == WORLDS[name](SIZE, 3)
    assert WORLDS[name](SIZE, 3) != WORLDS[name](SIZE, 4)


def test_a_steady_farm_has_nothing_to_do():
    assert plan(steady(SIZE, 1), DEFAULT, NOW) == []


def test_no_card_is_over_full():
    world = steady(SIZE, 1)
    draft = a_draft(*world.cards.values(), *world.services.values(), *world.replicas.values(), now=NOW)
    assert all(room_mib(draft.book(card)) >= -DEFAULT.default_residue_mib * 4 for card in world.cards)


def test_a_storm_answers_everybody_once():
    world = storm(SIZE, 1)
    held = {s.name for s in world.services.values() if s.demand.held}
    decisions = plan(world, DEFAULT, NOW)
    assert 20 < len(held) <= STORM
    answered = [d.service for d in decisions if d.reason is Reason.HOLD]
    assert sorted(answered) == sorted(held)


def test_nobody_may_go_yet_on_a_full_farm():
    decisions = acting(plan(full(SIZE, 1), DEFAULT, NOW))
    taken = [d for d in decisions if d.reason is Reason.ROOM and d.verb is Verb.DRAIN]
    assert taken == []


def test_on_a_mass_of_idle_copies_many_are_asked_to_go():
    world = mass_idle(SIZE, 1)
    ready = sum(r.phase is Phase.READY for r in world.replicas.values())
    notices = [d for d in plan(world, DEFAULT, NOW) if d.reason is Reason.IDLE]
    assert len(notices) > ready / 3
