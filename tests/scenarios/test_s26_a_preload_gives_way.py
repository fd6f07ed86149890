"""S26: a preload begins beside a busy service, whose answers come more unevenly: the preload gives way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.decision import Code, Reason, Verb
from scheduler.policy import Policy
from scheduler.world import Act, Order, Phase, Throttled
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, a_card, a_replica, a_service, a_world

POLICY = Policy(order_lapses_s=86400)


def a_farm(load_s: float = 15.0, force: bool = False, cards: int = 1, gb: int = 20) -> Farm:
    """A busy service on the first card; an operator wants the report's model loaded ahead."""
    order = Order(1, Act.PRELOAD, "report", NOW + 86400, force=force)
    world = a_world(
        *(a_card(f"c{i + 1}", f"h{i + 1}") for i in range(cards)),
        a_service("desk", min_replicas=1),
        a_service("report", weights=gb * 1000, kv=4000),
        a_replica(1, "desk", in_flight=4),
        orders=(order,),
    )
    farm = Farm(world, policy=POLICY)
    farm.load_s["report"] = load_s
    farm.calls[1] = 4
    return farm


def step(farm: Farm, rise_pct: float) -> None:
    """A second; while something loads on the desk's card its answers come by so much more unevenly."""
    loading = any(r.phase is Phase.STARTING and "c1" in r.cards for r in farm.world.replicas.values())
    farm.change(1, disturbance_pct=rise_pct if loading else 1.0)
    stopped = [(at, d) for at, d in farm.journal if d.reason is Reason.THROTTLE]
    farm.world = replace(farm.world, throttled=tuple(_memory(at, d) for at, d in stopped))
    farm.step()


def _memory(at, decision):
    return Throttled(decision.service, str(decision.numbers["card"]), at)


def throttles(farm: Farm) -> list[float]:
    return [at - NOW for at, d in farm.journal if d.reason is Reason.THROTTLE]


def suffered(farm: Farm) -> bool:
    return (farm.world.replicas[1].disturbance_pct or 0.0) >= POLICY.throttle_rise_pct


@pytest.mark.parametrize(("rise_pct", "load_s", "gb"), [(20.0, 15.0, 20), (35.0, 60.0, 20), (300.0, 105.0, 50)])
def test_it_stops_and_the_busy_service_recovers(rise_pct, load_s, gb):
    farm = a_farm(load_s, gb=gb)
    hurt = 0
    for _ in range(120):
        step(farm, rise_pct)
        hurt += suffered(farm)
    assert len(throttles(farm)) == 1
    assert throttles(farm)[0] <= POLICY.throttle_after_s + 2
    assert hurt <= POLICY.throttle_after_s + 8, "ten seconds to be sure, and the stop itself"
    assert not suffered(farm)
    assert Code.THROTTLED in farm.refusals("report"), "and it is said why it waits"
    assert farm.ready("desk")


def test_it_waits_for_a_lower_window_and_is_loaded_then():
    farm = a_farm(load_s=20.0)
    while farm.now < NOW + 290:
        step(farm, 40.0)
    assert not farm.ready("report")
    while farm.now < NOW + 900:
        step(farm, 5.0)  # the evening: nobody is disturbed by a load any more
    assert farm.ready("report")
    assert len(throttles(farm)) == 1


def test_it_does_not_begin_and_end_in_turn():
    farm = a_farm(load_s=20.0)
    while farm.now < NOW + 1800:
        step(farm, 40.0)
    assert len(throttles(farm)) <= 1800 / POLICY.throttle_pause_s + 1
    share = len(throttles(farm)) * (POLICY.throttle_after_s + 2) / 1800
    assert share <= 0.05, "of the time at most"


def test_another_card_takes_it_at_once():
    """Where a card is free whose neighbours nobody disturbs, it goes there."""
    farm = a_farm(load_s=20.0, cards=2)
    for _ in range(60):
        step(farm, 40.0)
    assert farm.ready("report")
    assert farm.ready("report")[0].cards == ("c2",)


@pytest.mark.parametrize("rise_pct", [5.0, 19.9])
def test_what_hardly_disturbs_goes_on(rise_pct):
    farm = a_farm(load_s=20.0)
    for _ in range(40):
        step(farm, rise_pct)
    assert throttles(farm) == []
    assert farm.ready("report")


@pytest.mark.parametrize("rise_pct", [40.0, 400.0])
def test_a_caller_that_waits_is_worth_the_disturbance(rise_pct):
    farm = a_farm(load_s=20.0)
    farm.call("report")
    for _ in range(40):
        step(farm, rise_pct)
    assert throttles(farm) == []
    assert "report" in farm.answered


def test_a_caller_that_comes_while_it_waits_ends_the_waiting():
    farm = a_farm(load_s=20.0)
    for _ in range(40):
        step(farm, 40.0)
    assert not farm.ready("report")
    farm.call("report")
    for _ in range(40):
        step(farm, 40.0)
    assert "report" in farm.answered
    starts = farm.did("report", Verb.START)
    assert [d.reason for d in starts] == [Reason.OPERATOR, Reason.HOLD]


def test_an_operator_may_insist():
    farm = a_farm(load_s=20.0, force=True)
    for _ in range(40):
        step(farm, 40.0)
    assert throttles(farm) == []
    assert farm.ready("report")
