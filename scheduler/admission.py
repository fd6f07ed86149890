"""How many calls a service may have in hand, so that whoever is let in is served in time: the rest is told at once.

The gateways shave a spike by the autoscaler's own measure, what a copy carries, while its copies come.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from scheduler.decision import Decision
from scheduler.estimate import Loads, eta, remaining
from scheduler.hold import hold_cap_s, serves
from scheduler.policy import Policy
from scheduler.signals import capacity
from scheduler.world import Phase, Profile, Replica, Service, Want, World

DIGITS = 2  # of a number told: routes are not written anew for the third


@dataclass(frozen=True, slots=True)
class Admission:
    """`calls` may run and wait at all gateways together; who comes beyond is told to return after `retry_after_s`."""

    calls: int
    retry_after_s: float


def admission(
    world: World,
    policy: Policy,
    service: Service,
    copies: Iterable[Replica],
    now: float,
    decisions: Iterable[Decision] = (),
    loads: Loads | None = None,
) -> Admission | None:
    """What the service can serve within its hold; None: no limit (it does not scale, none is ready, or nobody knows).

    A copy carries `capacity` calls of `generation_s` each: after a hold of `cap_s` it has begun cap_s / generation_s
    times as many more. One on its way does so from its estimated arrival on. At least what the engines run at once
    and the queue that lets the autoscaler see the spike. `decisions`: of this plan, about this service;
    `loads`: `estimate.loads_by_host` of the world, where they are at hand.
    """
    policy = policy.of_service(service.name)
    copies = list(copies)
    ready = sum(serves(world, policy, r, now) for r in copies)
    if service.max_replicas < 2 or service.profile is Profile.BATCH or not ready or not service.generation_s:
        return None
    cap_s, each = hold_cap_s(policy, service), capacity(service, policy, now)
    coming = [r for r in copies if r.phase is Phase.STARTING and r.want is Want.READY]
    rests = [max(0.0, cap_s - remaining(world, policy, r, now, loads).eta_s) for r in coming]
    turns = ready * (1 + cap_s / service.generation_s) + sum(rests) / service.generation_s
    seen = ready * service.max_num_seqs + policy.scale_queue_calls + 1
    more = eta(world, policy, service, now, decisions, copies, loads)  # else there is room when an answer has ended
    retry_s = service.generation_s if more is None else more.eta_s
    return Admission(max(_round(each * turns), seen), math.ceil(max(policy.eta_floor_s, retry_s)))


def _round(calls: float) -> int:
    """Down to its first digits."""
    step = int("1" + "0" * max(0, len(str(int(calls))) - DIGITS))
    return int(calls) // step * step
