"""A small simulated farm on one line: services, calls, machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scheduler.planner import plan
from scheduler.policy import DEFAULT, Policy
from scheduler.simulation import Call, Growth, Machine, Measures, Trace, simulate
from scheduler.simulation.farm import _play, _settle_in, _timer
from scheduler.simulation.state import Farm
from scheduler.world import Service
from tests.scheduler.build import a_card, a_host, a_service, a_world

#: A Monday, midnight in Shanghai.
BEGAN = 20_829 * 86400.0 - 8 * 3600
HOUR = 3600.0
DAY = 24 * HOUR
QUICK = replace(DEFAULT, half_empty_pct=0, cold_sleep_pct=0)
MACHINE = Machine()
#: Never called: whoever is the only service of its pool is always kept.
OTHER = a_service("other")


def a_call(at: float, service: str = "s", *, stream: bool = False, prefill: float = 0.2, decode: float = 4.0) -> Call:
    """`at`: seconds since the beginning."""
    return Call(BEGAN + at, service, stream, prefill, decode)


def a_growth(at: float, service: str = "s", mib: int = 1000, for_s: float = 60.0) -> Growth:
    return Growth(BEGAN + at, service, mib, for_s)


def cards(count: int = 2, **more: Any):
    return [a_card(f"c{i}", f"h{i}", **more) for i in range(count)]


def played(
    *things: Any,
    calls: list[Call] = (),
    growths: list[Growth] = (),
    hours: float = 1.0,
    policy: Policy = QUICK,
    machine: Machine = MACHINE,
    **more: Any,
) -> Measures:
    """What was measured of a farm of these things (two cards on two hosts, one service `s`, unless given)."""
    known = list(things)
    if not any(isinstance(t, Service) for t in known):
        known.append(a_service())
    world = a_world(*cards(), *(a_host(f"h{i}", bandwidth_mib_s=2000) for i in range(2)), OTHER, *known)
    trace = Trace(sorted(calls), sorted(growths))
    return simulate(world, policy, trace, BEGAN + hours * HOUR, began=BEGAN, machine=machine, **more)


def a_farm(*things: Any, policy: Policy = QUICK, machine: Machine = MACHINE) -> Farm:
    """The same, to be looked into: `run` plays it on."""
    world = a_world(*cards(), *(a_host(f"h{i}", bandwidth_mib_s=2000) for i in range(2)), OTHER, *things)
    farm = Farm(world, policy, machine, plan, BEGAN, BEGAN)
    _settle_in(farm)
    farm.at(BEGAN, lambda: _timer(farm))
    return farm


def run(farm: Farm, until: float, calls: list[Call] = ()) -> Farm:
    """Plays on until so many seconds after the beginning."""
    _play(farm, iter(sorted(calls)), BEGAN + until)
    return farm
