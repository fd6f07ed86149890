"""Orders of people over random worlds: every plan stays legal, and the same one twice."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from scheduler.decision import Reason, Verb
from scheduler.draft import Draft
from scheduler.lifecycle import legal
from scheduler.planner import plan
from scheduler.world import Act, Order, Phase, Want
from tests.properties.test_plan import MANY
from tests.properties.worlds import worlds
from tests.scheduler.build import NOW, POLICY


def with_orders(world, seed: int):
    """The world with a few buttons pressed in it."""
    dice = Random(seed)
    given_orders = []
    for number in range(dice.randint(1, 4)):
        replica = dice.choice([None, *world.replicas]) if world.replicas else None
        name = world.replicas[replica].service if replica is not None else dice.choice(list(world.services))
        act = dice.choice([Act.PRELOAD, Act.STOP] if replica is None else list(Act))
        until = NOW + dice.choice([-1, 60, 600])
        order = Order(number, act, name, until, replica, dice.randint(1, 3), dice.random() < 0.5)
        given_orders.append(order)
    return replace(world, orders=tuple(given_orders))


@MANY
@given(worlds(), st.integers(0, 2**32))
def test_with_orders_every_plan_stays_legal_and_cuts_only_by_force(world, seed):
    world = with_orders(world, seed)
    decisions = plan(world, POLICY, NOW)
    draft = Draft(world, POLICY, NOW)
    ids = {o.id: o for o in world.orders}
    for d in decisions:
        if d.order is not None:
            assert ids[d.order].service == d.service
        if d.refusal is not None:
            continue
        old = world.replicas.get(d.replica) if d.replica is not None else None
        assert legal(d, old)
        assert draft.do(d)
        if d.reason is Reason.OPERATOR and d.verb is Verb.STOP and old.phase is Phase.DRAINING:
            forced = any(o.force and o.service == d.service for o in world.orders)
            assert old.quiet or old.want is not Want.DRAINED or (d.force and forced)


@MANY
@given(worlds(), st.integers(0, 2**32))
def test_the_same_orders_make_the_same_plan(world, seed):
    world = with_orders(world, seed)
    assert plan(world, POLICY, NOW) == plan(replace(world, orders=world.orders[::-1]), POLICY, NOW)
