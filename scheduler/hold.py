"""What held callers are told: the state of their service, how long it takes, or why not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduler.decision import Decision, Refusal, Verb
from scheduler.estimate import Eta, Loads, eta
from scheduler.hosts import host_of, silent
from scheduler.policy import Policy
from scheduler.world import Phase, Replica, Service, Want, World

READY, ASLEEP, COLD, LOADING = "ready", "asleep", "cold", "loading"


@dataclass(frozen=True, slots=True)
class Outlook:
    """`state` is ready, loading, asleep or cold. `eta_s`, `low_s` in seconds from now; `low_s` None while rough.

    `refusal` only when it does not pass by itself: callers get it at once. `plain_now`: a plain caller that comes now
    need not be held, for the load surely outlasts its cap; streams are told their progress and may wait longer.
    """

    state: str
    stage: str = ""
    eta_s: float | None = None
    low_s: float | None = None
    refusal: Refusal | None = None
    plain_now: bool = False


def hold_cap_s(policy: Policy, service: Service) -> float:
    """How long a plain call of the service is held: its own cap, else by the size of its weights."""
    policy = policy.of_service(service.name)
    if service.hold_cap_s is not None:
        return min(service.hold_cap_s, policy.hold_own_max_s)
    large = service.weights_mib >= policy.hold_large_mib
    return policy.hold_large_s if large else policy.hold_small_s


def tell_plain_now(cap_left_s: float, low_s: float | None) -> bool:
    """Is it certain already that a plain caller with this much of its cap left would wait in vain?"""
    return low_s is not None and low_s > cap_left_s


def outlook(
    world: World,
    policy: Policy,
    service: Service,
    decisions: Sequence[Decision],
    now: float,
    copies: Sequence[Replica] | None = None,
    loads: Loads | None = None,
) -> Outlook:
    """What callers of the service are told after this plan. `copies`: its replicas, where they are at hand; `loads`:
    `estimate.loads_by_host` of the world, likewise."""
    replicas = [r for r in world.replicas.values() if r.service == service.name] if copies is None else copies
    if any(serves(world, policy, r, now) for r in replicas):
        return Outlook(READY)
    ours = [d for d in decisions if d.service == service.name]
    refusal = next((d.tells_callers for d in ours if d.tells_callers is not None), None)
    coming = eta(world, policy, service, now, ours, replicas, loads)
    if refusal is not None and not refusal.passing and not _loads(replicas):
        return Outlook(_rest(replicas), refusal=refusal, plain_now=True)
    if coming is not None or refusal is not None or _began(ours):
        return _loading(coming, hold_cap_s(policy, service))
    return Outlook(_rest(replicas))


def rest_of(world: World, service: str) -> str | None:
    """Asleep or cold: what is true while nothing is done for it; None when a copy is ready or on its way."""
    replicas = [r for r in world.replicas.values() if r.service == service]
    there = any(r.phase is Phase.READY and r.want is Want.READY for r in replicas) or _loads(replicas)
    return None if there else _rest(replicas)


def serves(world: World, policy: Policy, replica: Replica, now: float) -> bool:
    """May callers be sent to it? While its agent is silent, only if a gateway says that its engines answer."""
    if replica.phase is not Phase.READY or replica.want is not Want.READY:
        return False
    host = host_of(world, replica)
    return not silent(host, policy, now) or (host is not None and host.serving)


def _loads(replicas: Iterable[Replica]) -> bool:
    return any(r.phase is Phase.STARTING and r.want is Want.READY for r in replicas)


def _began(decisions: Iterable[Decision]) -> bool:
    return any(d.refusal is None and d.verb in (Verb.START, Verb.WAKE) for d in decisions)


def _rest(replicas: Iterable[Replica]) -> str:
    return ASLEEP if any(r.phase is Phase.ASLEEP for r in replicas) else COLD


def _loading(coming: Eta | None, cap_s: float) -> Outlook:
    if coming is None:
        return Outlook(LOADING)
    plain_now = tell_plain_now(cap_s, coming.low_s)
    return Outlook(LOADING, coming.stage, coming.eta_s, coming.low_s, plain_now=plain_now)
