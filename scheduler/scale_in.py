"""Scaling in: after a long quiet time, in one step to the copies that carry what is left."""

from __future__ import annotations

from scheduler import two_hosts
from scheduler.decision import Decision, Numbers, Reason, Verb
from scheduler.draft import Draft
from scheduler.kept import whitelisted
from scheduler.looks import Scaling
from scheduler.policy import Policy
from scheduler.pools import lent_to
from scheduler.scaling import at_first, carriers
from scheduler.signals import MINUTE_S, capacity, load, slow
from scheduler.victims import used
from scheduler.wishes import needs
from scheduler.world import Replica, Service


def scale_in(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: services whose load was low for long go down to what it needs."""
    scaled = [s for s in draft.services.values() if s.scaling is not None and _too_many(s, policy, now)]
    for service in sorted(scaled, key=lambda s: s.name):
        known, own = service.scaling, policy.of_service(service.name)
        if known is None or not _settled(draft, service, known):
            continue
        calls = _peak(service, known, own, now)
        if calls is not None and carriers(calls, service, own, now) < known.ready:
            _down(draft, service, draft.staying(service.name), calls)


def _too_many(service: Service, policy: Policy, now: float) -> bool:
    """Has it more copies than the load of now needs? Most have not, and nothing else is looked at."""
    known = service.scaling
    if known is None or known.ready <= max(1, service.min_replicas):
        return False
    return carriers(load(service), service, policy.of_service(service.name), now) < known.ready


def _settled(draft: Draft, service: Service, known: Scaling) -> bool:
    """Its copies have not changed for long, none is on its way, and it is not slow now. Unknown is not quiet."""
    policy = draft.policy.of_service(service.name)
    if service.running is None or service.waiting is None or service.waiting > policy.scale_in_waiting:
        return False
    if known.live != known.ready or draft.now - known.changed_at < policy.scale_in_s or slow(service, policy):
        return False
    seen = at_first(draft, service)
    return (seen.ready, seen.live) == (known.ready, known.live)


def _peak(service: Service, known: Scaling, policy: Policy, now: float) -> float | None:
    """The highest 1-min mean of calls in the time that counts; None: not all of it was looked at, or not quiet."""
    this = int(now) // MINUTE_S
    first = this - max(1, policy.scale_in_s // MINUTE_S)
    peak, whole = 0.0, 0
    for minute in reversed(known.minutes):
        if minute.number < first:
            break
        if minute.unknown or minute.most_waiting > policy.scale_in_waiting:
            return None
        whole += minute.number < this
        peak = max(peak, (minute.running + minute.waiting) / minute.looks)
    return peak if whole >= this - first else None


def _down(draft: Draft, service: Service, staying: list[Replica], calls: float) -> None:
    """To the number that carries the calls, or that something else asks for; those used least go first."""
    policy = draft.policy.of_service(service.name)
    least = max((count for count, _ in needs(draft, service)), default=0)
    count = max(1, service.min_replicas, least, carriers(calls, service, policy, draft.now))
    numbers: Numbers = {
        "came_from": len(staying),
        "desired": count,
        "running": service.running or 0,
        "waiting": service.waiting or 0,
        "load": round(calls, 1),
        "capacity": round(capacity(service, policy, draft.now), 1),
        "calm_s": policy.scale_in_s,
    }
    left = len(staying)
    for replica in sorted((r for r in staying if _may_go(draft, r, service)), key=lambda r: _order(draft, r)):
        if left <= count:
            return
        if two_hosts.may_go(draft, replica):
            left -= draft.do(Decision(Verb.DRAIN, service.name, Reason.SURPLUS, replica.id, numbers=numbers))


def _may_go(draft: Draft, replica: Replica, service: Service) -> bool:
    """Not where calls cannot be counted, and not one that is left alone or kept by a person."""
    if replica.in_flight is None or replica.external or draft.silent(replica):
        return False
    if replica.left_alone_until is not None and replica.left_alone_until > draft.now:
        return False
    return not whitelisted(draft, replica, service)


def _order(draft: Draft, replica: Replica) -> tuple[bool, bool, int, float, int]:
    """First those with nothing in flight, and of them those on lent cards; a long stream is left to its end."""
    calls = replica.in_flight or 0
    return calls > 0, not lent_to(draft, replica), calls, used(draft, replica), replica.id
