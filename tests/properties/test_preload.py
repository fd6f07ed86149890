"""Rules of loading ahead over random worlds with random forecasts."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from scheduler.decision import CONVENIENCE, Reason, Verb
from scheduler.draft import Draft
from scheduler.forecast import HOUR_S, within
from scheduler.memory import allocatable_mib, held_mib
from scheduler.planner import plan
from scheduler.wishes import waited_for
from scheduler.world import Forecast, World
from tests.properties.test_plan import MANY, after, cards_loaded
from tests.properties.worlds import NAMES, worlds
from tests.scheduler.build import NOW, POLICY, acting


def any_forecast(dice: Random) -> Forecast:
    """Of the hours around now, some likely, with now and then a job within minutes."""
    chances = [0.0, 0.0, 0.2, 0.4, 0.6, 0.9]
    jobs = sorted(NOW + dice.choice([-100, -20, 30, 90, 200, 800]) for _ in range(dice.choice([0, 0, 1, 2])))
    return Forecast(
        NOW - dice.choice([0.0, 1000.0, HOUR_S - 60]),
        tuple(dice.choice(chances) for _ in range(3)),
        tuple(dice.random() < 0.5 for _ in range(3)),
        tuple((at, dice.choice([0.4, 0.6, 1.0])) for at in jobs),
        dice.choice([5.0, 60.0]),
        dice.random() < 0.8,
    )


def foreseen(world: World, seed: int) -> World:
    dice = Random(seed)
    resident = [(), (), ((NOW - 100, NOW + 100),), ((NOW + 60, NOW + 900),)]
    return replace(
        world,
        forecasts={name: any_forecast(dice) for name in NAMES},
        services={n: replace(s, resident=dice.choice(resident)) for n, s in world.services.items()},
    )


WORLDS = st.builds(foreseen, worlds(), st.integers(0, 2**32))


@MANY
@given(WORLDS)
def test_a_preload_never_overfills_a_card(world):
    decisions = plan(world, POLICY, NOW)
    draft = after(world, decisions)
    for card in cards_loaded(world, decisions):
        book = draft.book(card)
        assert sum(held_mib(s.replica, s.service, POLICY) for s in book.seats) <= allocatable_mib(book)


@MANY
@given(WORLDS)
def test_without_a_caller_nobody_goes_for_room(world):
    quiet = {n: replace(s, demand=replace(s.demand, held=0, expected_until=None)) for n, s in world.services.items()}
    calm = replace(world, services=quiet, replicas={i: replace(r, drain_at=None) for i, r in world.replicas.items()})
    for d in acting(plan(calm, POLICY, NOW)):
        began = calm.replicas[d.replica].reason if d.replica is not None else ""
        assert d.reason is not Reason.ROOM or began == Reason.ROOM


@MANY
@given(WORLDS)
def test_a_preload_adds_at_most_one_copy_where_there_is_none(world):
    before = Draft(world, POLICY, NOW)
    loads = [d for d in acting(plan(world, POLICY, NOW)) if d.reason is Reason.FORECAST]
    assert len({d.service for d in loads}) == len(loads)
    for d in loads:
        assert d.verb in (Verb.START, Verb.WAKE)
        assert not before.in_hand(d.service)


@MANY
@given(WORLDS)
def test_nobody_likely_to_be_called_soon_is_given_notice_for_idleness(world):
    for d in acting(plan(world, POLICY, NOW)):
        if d.reason is Reason.IDLE and d.verb is Verb.DRAIN and d.not_before is not None:
            called = world.services[d.service].demand.last_call_at
            likely = within(world.forecasts[d.service], POLICY, NOW, POLICY.preload_horizon_s, called)
            assert likely * 100 < POLICY.forecast_idle_pct


@MANY
@given(WORLDS)
def test_within_resident_hours_nobody_goes_for_our_convenience(world):
    for d in acting(plan(world, POLICY, NOW)):
        leaves = d.verb is Verb.DRAIN and d.reason in CONVENIENCE - {Reason.SURPLUS}
        assert not (leaves and any(a <= NOW < b for a, b in world.services[d.service].resident))


@MANY
@given(WORLDS)
def test_a_callers_wish_is_answered_as_if_nothing_were_expected(world):
    """What is loaded ahead comes after all callers: they get the same decisions in this plan."""
    keeps = replace(world, forecasts={}, services=world.services)
    with_it, without = plan(world, POLICY, NOW), plan(keeps, POLICY, NOW)
    for service in world.services.values():
        if not waited_for(service, NOW):
            continue
        granted = [d for d in acting(without) if d.service == service.name and d.verb in (Verb.START, Verb.WAKE)]
        if granted and not any(d.reason is Reason.ROOM for d in acting(without)):
            mine = [d for d in acting(with_it) if d.service == service.name and d.verb in (Verb.START, Verb.WAKE)]
            assert mine == granted
