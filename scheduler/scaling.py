"""Scaling out: how many copies a service should have, by what waits and by its P99; never by utilisation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scheduler.decision import Numbers, Reason
from scheduler.draft import Draft
from scheduler.looks import Scaling
from scheduler.policy import Policy
from scheduler.signals import Copies, capacity, copies, load, target_ms
from scheduler.world import Service

SCALE_OUT = frozenset({Reason.QUEUE, Reason.P99})


@dataclass(frozen=True, slots=True)
class Raise:
    """`count` live copies are wished, perhaps more than are allowed: the rest is refused with its number."""

    count: int
    reason: Reason
    numbers: Numbers


def wanted(draft: Draft, service: Service) -> Raise | None:
    """The raise that is due, or stands since its starts are not all ready; None: nothing asks for more copies."""
    known = service.scaling
    if known is None:
        return None
    policy = draft.policy.of_service(service.name)
    standing, due = _standing(known, policy, draft.now), _signalled(known, policy, draft.now)
    if not standing and not due:
        return None
    now = at_first(draft, service)
    due = due and (now.ready, now.live) == (known.ready, known.live)
    if standing > now.ready and not (due and _grown(service, known, policy)):
        return Raise(standing, _reason(known), _numbers(draft, service, standing))
    if not due:
        return None
    count = desired(service, now.live, policy, draft.now)
    return Raise(count, _reason(known), {**_numbers(draft, service, count), "raised_from": now.live})


def at_first(draft: Draft, service: Service) -> Copies:
    """Its copies as they were when this plan began; those on lost hosts are none."""
    seen = (draft.world.replicas[r.id] for r in draft.of_service(service.name) if draft.known(r.id))
    return copies(r for r in seen if not draft.lost(r))


def desired(service: Service, live: int, policy: Policy, now: float) -> int:
    """Copies for what runs and waits, one more at least; back to where a scale-in came from, within reason."""
    needed = max(live + 1, carriers(load(service), service, policy, now))
    known = service.scaling or Scaling()
    remembered = known.came_from_at is not None and now - known.came_from_at <= policy.scale_memory_s
    if not remembered:
        return needed
    return max(needed, min(known.came_from, math.ceil(needed * policy.scale_memory_pct / 100)))


def carriers(calls: float, service: Service, policy: Policy, now: float) -> int:
    """Copies that carry so many calls, each with some of its capacity to spare."""
    each = capacity(service, policy, now) * policy.scale_load_pct / 100
    return math.ceil(round(calls / each, 6))  # 16 / 5.6 is not a hair more than it is


def _signalled(known: Scaling, policy: Policy, now: float) -> bool:
    """Enough looks in a row, the last of them of late and after the last raise."""
    at = known.signalled_at
    fresh = at is not None and now - at <= policy.scale_keep_s and at >= known.changed_at
    return fresh and (known.raised_at is None or at > known.raised_at)  # type: ignore[operator]


def _standing(known: Scaling, policy: Policy, now: float) -> int:
    """Copies of the last raise while it holds; 0: it does not."""
    if known.raised_at is None or (known.came_from_at or 0.0) > known.raised_at:
        return 0
    last = max(known.raised_at, known.over_at or 0.0)
    return known.raised_to if now - last <= policy.scale_keep_s else 0


def _grown(service: Service, known: Scaling, policy: Policy) -> bool:
    """Have the calls that wait grown by half since the raise?"""
    then = max(known.raised_waiting, policy.scale_queue_calls)
    return (service.waiting or 0) * 100 >= then * policy.scale_again_pct


def _reason(known: Scaling) -> Reason:
    return Reason.P99 if known.over_by == Reason.P99 else Reason.QUEUE


def _numbers(draft: Draft, service: Service, count: int) -> Numbers:
    """What the journal tells of a raise."""
    policy = draft.policy.of_service(service.name)
    numbers: Numbers = {
        "running": service.running or 0,
        "waiting": service.waiting or 0,
        "capacity": round(capacity(service, policy, draft.now), 1),
        "desired": count,
    }
    if service.p99_ms is not None:
        numbers |= {"p99_ms": service.p99_ms, "target_ms": target_ms(service, policy)}
    return numbers
