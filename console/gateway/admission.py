"""From a call to a replica that takes it: at once where one is ready, else held, told, and refused in time."""

from __future__ import annotations

import time

from console.gateway.call import Call
from console.gateway.core import Gateway
from console.gateway.errors import Refused, model_loading, model_not_found, no_turn, over_capacity, unreachable
from console.gateway.holds import Waiter
from console.gateway.progress import Progress
from console.gateway.reply import Reply
from console.gateway.routes import Replica, Service
from console.gateway.turns import Bound, share

#: Refusals of the planner that say "not so much, or not now", and not that something is wrong.
TOO_MUCH = frozenset({"quota_exceeded", "batch_limited"})


async def admit(gateway: Gateway, call: Call, reply: Reply) -> Replica:
    """A replica, chosen with no await between the choice and the return. Raises `Refused`."""
    service = service_of(gateway, call)
    if service.notice:
        gateway.registration.nudge(call.service)
    if call.replica is None and call.hold_until is None:  # not one that was let in and looks for another replica
        _shave(gateway, call, service)
    found = gateway.pick(service, call)
    return found if isinstance(found, Replica) else await _hold(gateway, call, reply, found)


def _shave(gateway: Gateway, call: Call, service: Service) -> None:
    """Calls in hand here are at most this gateway's share of what the service can serve in time. Raises `Refused`."""
    if service.room is None or not service.replicas:
        return
    in_hand = sum(gateway.counts.of(r.id) for r in service.replicas) + gateway.holds.of(call.service)
    if in_hand >= share(service.room, gateway.routes.blob.gateways):
        raise over_capacity(service.label or call.service, gateway.routes.left_s(service.room_retry_s))


def service_of(gateway: Gateway, call: Call) -> Service:
    """As the routes have it now: it may have gone, or been closed to this key, while the call waited.

    Who may call a service may be answered by its long lane.
    """
    services = gateway.routes.blob.services
    called, service = services.get(call.called or call.service), services.get(call.service)
    if service is None or called is None or not called.heard_by(call.key.tenant):
        raise model_not_found(call.called or call.service)
    return service


async def _hold(gateway: Gateway, call: Call, reply: Reply, bound: Bound | None) -> Replica:
    """Wait for a replica: the registration says so, control is nudged, one load serves all who wait.

    `bound`: what it waits for at a ready one; then nobody need load anything.
    """
    size = len(call.body.raw)
    waiter = gateway.holds.enter(call.service, call.key.tenant, call.body.stream, size, queued=bound or "")
    progress = Progress(call, reply, gateway.limits)
    began = time.monotonic()
    believed_at = began + gateway.limits.believe_s
    seen = gateway.routes.blob
    try:
        if call.hold_until is None:
            call.hold_until = began + _cap_s(service_of(gateway, call), call)
        while True:
            service = service_of(gateway, call)
            found = gateway.pick(service, call)
            if isinstance(found, Replica):
                return found
            gateway.holds.queue(waiter, found or "")
            doubtful = gateway.routes.blob is seen and time.monotonic() < believed_at
            if not doubtful:
                _tell_refusal(service)
            _tell_too_long(gateway, call, service, found)
            wait_s = call.hold_until - time.monotonic()
            if call.body.stream and not (doubtful and service.refusal):
                stage = "turn" if found is not None else "retrying" if service.replicas else service.stage
                left_s = gateway.routes.left_s(service.eta_s)
                await progress.tell(service, stage or "queued", left_s, gateway.holds.position(waiter))
                wait_s = min(wait_s, progress.next_s())
            await _wait(gateway, call, waiter, service, min(wait_s, gateway.limits.believe_s if doubtful else wait_s))
    finally:
        call.hold_s += time.monotonic() - began
        gateway.holds.leave(waiter)


async def _wait(gateway: Gateway, call: Call, waiter: Waiter, service: Service, limit_s: float) -> None:
    """Replicas that just failed this call get another chance after a pause: a door restarts in a second."""
    if waiter.queued:
        limit_s = min(limit_s, gateway.limits.turn_s)
    elif service.replicas:
        limit_s = min(limit_s, gateway.limits.again_s)
    await waiter.wait(limit_s)
    call.tried.clear()


def _cap_s(service: Service, call: Call) -> float:
    cap_s = service.hold_stream_s if call.body.stream else service.hold_cap_s
    return cap_s if call.max_wait_s is None else min(cap_s, call.max_wait_s)


def _tell_refusal(service: Service) -> None:
    """The planner's last word on the wish, at once."""
    if (refusal := service.refusal) is not None:
        status = 429 if refusal.code in TOO_MUCH else 503
        raise Refused(status, refusal.code, refusal.zh, refusal.en, retry_after_s=refusal.retry_after_s)


def _tell_too_long(gateway: Gateway, call: Call, service: Service, bound: Bound | None) -> None:
    """At the cap; before it, as soon as even the lower bound passes it (a stream that is told may wait regardless,
    unless its own patience is shorter than the service's)."""
    left_s = (call.hold_until or 0.0) - time.monotonic()
    low_s, eta_s = gateway.routes.left_s(service.low_s), gateway.routes.left_s(service.eta_s)
    if left_s > 0 and (low_s is None or low_s <= left_s or reads_progress(call)):
        return
    if bound is not None:
        raise no_turn(service.label or call.service, bound, gateway.why_batch(service), gateway.limits.retry_after_s)
    if service.replicas:
        raise unreachable(service.label or call.service)
    retry_after_s = gateway.limits.retry_after_s if eta_s is None else max(1.0, eta_s)
    gateway.holds.promise(call.service, retry_after_s)
    raise model_loading(service.label or call.service, eta_s, retry_after_s)


def reads_progress(call: Call) -> bool:
    return call.body.stream and call.max_wait_s is None
