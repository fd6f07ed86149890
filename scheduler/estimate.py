"""How long a load takes, how sure we are, and when a caller of a cold service is served."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler.decision import Code, Decision, Verb
from scheduler.hosts import host_of
from scheduler.memory import HUNDRED
from scheduler.policy import Policy
from scheduler.storage import line, reading_s
from scheduler.world import LoadTimes, Phase, Replica, Service, Want, World

#: Replicas that start, by host.
Loads = Mapping[str, Sequence[Replica]]
#: Words of `Eta.stage`, in the order a caller may live through them.
QUEUED, ROOM, WEIGHTS, WARMUP, WAKING = "queued", "room", "weights", "warmup", "waking"
#: What a host says of a start, in the words callers are told.
STAGE_OF_HOST = {"queued": QUEUED, "process": WEIGHTS, "weights": WEIGHTS, "warmup": WARMUP}


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds of one load or wake. `low_s` is its lower bound; None while it is rough (never measured here)."""

    seconds: float
    low_s: float | None
    rough: bool


@dataclass(frozen=True, slots=True)
class Eta:
    """Seconds from now until a caller is served; `low_s` None while the estimate is rough."""

    eta_s: float
    low_s: float | None
    stage: str
    rough: bool


def learned(policy: Policy, times: LoadTimes) -> Estimate | None:
    """Mean of the last real ones, younger ones counting more; lower bound some mean absolute deviations below.

    None when there are none.
    """
    last = times.seconds[-policy.load_times_kept :]
    if not last:
        return None
    weights = [(policy.load_recency_pct / HUNDRED) ** age for age in range(len(last) - 1, -1, -1)]
    # from the last one on: equal ones stay exact
    off = sum(w * (s - last[-1]) for w, s in zip(weights, last, strict=True))
    mean = last[-1] + off / sum(weights)
    deviation = sum(abs(s - mean) for s in last) / len(last)
    return Estimate(mean, max(0.0, mean - policy.load_deviations * deviation), rough=False)


def load_estimate(world: World, policy: Policy, service: Service, host: str) -> Estimate:
    """A start of the service on the host, alone: learned there, else by its size from other loads there."""
    known = learned(policy, world.load_times.get((service.name, host), LoadTimes()))
    if known:
        return known
    return Estimate(line(world, policy, service, host).seconds(service.weights_mib), None, rough=True)


def load_now(
    world: World,
    policy: Policy,
    service: Service,
    host: str,
    itself: Replica | None = None,
    loads: Loads | None = None,
) -> Estimate:
    """The same beside the loads under way (all but `itself`); the lower bound is that of a load alone.

    `loads`: `loads_by_host` of the world, where they are at hand.
    """
    alone = load_estimate(world, policy, service, host)
    there = (loads_by_host(world) if loads is None else loads).get(host, ())
    return replace(alone, seconds=alone.seconds + _shared_s(world, policy, service, host, itself, there))


def loads_by_host(world: World) -> Loads:
    """The replicas that start, by the host that reads their weights: asked for by each who waits for one of them."""
    found: dict[str, list[Replica]] = defaultdict(list)
    for replica in world.replicas.values():
        if replica.phase is Phase.STARTING and (host := host_of(world, replica)) is not None:
            found[host.name].append(replica)
    return found


def _shared_s(
    world: World, policy: Policy, service: Service, host: str, itself: Replica | None, loads: Iterable[Replica]
) -> float:
    """What concurrent reads add under equal shares: each other one as much as the shorter of the two has to read.

    `loads`: of this host.
    """
    own_s = reading_s(world, policy, service, host)
    rest_s = 0.0
    for other in loads:
        if other.waking or (itself is not None and other.id == itself.id):
            continue
        known = world.services.get(other.service)
        if known is not None and other.stage not in (QUEUED, WARMUP):
            rest_s += min(own_s, reading_s(world, policy, known, host) * (1.0 - (other.progress or 0.0)))
    return rest_s


def wake_estimate(world: World, policy: Policy, service: Service, host: str) -> Estimate:
    """A wake of the service on the host: learned there, else the policy's."""
    return learned(policy, world.wake_times.get((service.name, host), LoadTimes())) or Estimate(
        policy.wake_s, None, rough=True
    )


def drain_bound_s(policy: Policy, service: Service | None) -> float:
    """How long a drain should take at most: mean answer x factor + lower bound, clamped. The upper when unknown."""
    if service is None or service.generation_s is None:
        return policy.drain_max_s
    policy = policy.of_service(service.name)
    bound = service.generation_s * policy.drain_factor + policy.drain_min_s
    return min(max(bound, policy.drain_min_s), policy.drain_max_s)


def pressure_bound_s(policy: Policy, service: Service | None) -> float:
    """The same for a victim of pressure: a call cut short is better than an engine killed."""
    return min(drain_bound_s(policy, service), policy.pressure_drain_s)


def remaining(world: World, policy: Policy, replica: Replica, now: float, loads: Loads | None = None) -> Eta:
    """The rest of a start or wake that is under way. `loads` as in `load_now`."""
    host = host_of(world, replica)
    service = world.services.get(replica.service)
    if service is None or host is None:
        return Eta(policy.eta_floor_s, None, WEIGHTS, rough=True)
    if replica.waking:
        whole = wake_estimate(world, policy, service, host.name)
    else:
        whole = load_now(world, policy, service, host.name, replica, loads)
    elapsed = max(0.0, now - max(replica.since, replica.want_since))
    made = max(elapsed, (replica.progress or 0.0) * whole.seconds)
    eta_s = max(policy.eta_floor_s, whole.seconds - made)
    low_s = None if whole.low_s is None else max(0.0, whole.low_s - made)
    return Eta(eta_s, low_s, _stage(policy, replica, eta_s), whole.rough)


def _stage(policy: Policy, replica: Replica, eta_s: float) -> str:
    if replica.waking:
        return WAKING
    by_time = WARMUP if eta_s <= policy.load_warm_up_s else WEIGHTS
    return STAGE_OF_HOST.get(replica.stage, by_time)


def eta(
    world: World,
    policy: Policy,
    service: Service,
    now: float,
    decisions: Iterable[Decision] = (),
    copies: Iterable[Replica] | None = None,
    loads: Loads | None = None,
) -> Eta | None:
    """When callers of a service that is not ready are served, after this plan; None: nothing is coming.

    `copies`: the service's replicas, where they are at hand; `loads` as in `load_now`.

    `decisions` is the plan of this tick: what it starts counts whole, what it makes wait counts with what is ahead.
    """
    found = [
        remaining(world, policy, r, now, loads)
        for r in _loading(world.replicas.values() if copies is None else copies, service)
    ]
    for decision in decisions:
        if decision.service == service.name and (decision.refusal is None or decision.order is None):
            coming = _coming(world, policy, service, decision, loads)
            found += [coming] if coming else []
    return min(found, key=lambda e: e.eta_s) if found else None


def _loading(among: Iterable[Replica], service: Service) -> list[Replica]:
    ours = (r for r in among if r.service == service.name)
    return [r for r in ours if r.phase is Phase.STARTING and r.want is Want.READY]


def _coming(world: World, policy: Policy, service: Service, decision: Decision, loads: Loads | None) -> Eta | None:
    """What one decision of this plan lets the service's callers expect."""
    replica = world.replicas.get(decision.replica) if decision.replica is not None else None
    if decision.refusal is not None:
        return _after_waiting(world, policy, service, decision)
    if decision.verb is Verb.WAKE and replica is not None and replica.phase is Phase.ASLEEP:
        host = host_of(world, replica)
        whole = wake_estimate(world, policy, service, host.name if host else "")
        return Eta(whole.seconds, whole.low_s, WAKING, whole.rough)
    if decision.verb is Verb.START and decision.cards:
        whole = load_now(world, policy, service, world.cards[decision.cards[0]].host, loads=loads)
        return Eta(whole.seconds, whole.low_s, WEIGHTS, whole.rough)
    return None


def _after_waiting(world: World, policy: Policy, service: Service, decision: Decision) -> Eta | None:
    """A passing refusal says how long until the load can begin (`wait_s`, `wait_low_s`) and on which host."""
    refusal = decision.refusal
    if refusal is None or not refusal.passing or "wait_s" not in refusal.numbers:
        return None
    wait_s = float(refusal.numbers["wait_s"])
    wait_low_s = float(refusal.numbers.get("wait_low_s", wait_s))
    host = str(refusal.numbers.get("host", ""))
    whole = (wake_estimate if decision.verb is Verb.WAKE else load_estimate)(world, policy, service, host)
    low_s = None if whole.low_s is None else wait_low_s + whole.low_s
    stage = ROOM if refusal.code is Code.NOT_NOW else QUEUED
    return Eta(wait_s + whole.seconds, low_s, stage, whole.rough)
