"""One try at one replica, through its host's door. Nothing is passed to the caller before the try is sure to count."""

from __future__ import annotations

import time

from console.gateway.call import Call
from console.gateway.core import Gateway
from console.gateway.errors import drained, stalled
from console.gateway.latency import TTFT
from console.gateway.limits import MIB
from console.gateway.reply import Reply
from console.gateway.routes import Replica
from console.gateway.usage import EVENT_LIMIT, EngineError, Event, Stream, data_of, read_event
from relay import Broken, Malformed, RelayError, Response, TooSlow, Unreachable

DOOR_CODES = ("unknown_replica", "engine_unreachable")
#: What a dying or leaving engine says with its 500; any other 500 is its answer to this very call.
LEAVING = (b"shutdown", b"EngineCore", b"EngineDead")


async def attempt(gateway: Gateway, call: Call, reply: Reply, replica: Replica) -> bool:
    """True when the caller has its answer; False when another replica, or the hold, may still give one.

    Raises `Refused` for an end the caller must be told of.
    """
    door = gateway.door_of(replica)
    service = gateway.routes.blob.services.get(call.service)
    if door is None or service is None:
        return False
    address, token = door
    headers = [
        ("authorization", f"Bearer {token}"),
        ("content-type", "application/json"),
        ("x-request-id", call.id),
    ]
    body = call.body.upstream(service.engine_model)
    call.asked = True
    try:
        response = await gateway.client.request(
            address, "POST", f"/r/{replica.id}{call.path}", headers, body, first_byte_s=gateway.limits.first_byte_s
        )
    except Unreachable:
        call.asked = False
        gateway.breaker.failed(replica.id, time.monotonic())
        return False
    except RelayError as error:
        return _broken_early(gateway, call, replica, error)
    with response:
        if response.status not in (401, 404, 502):  # those may be the door's own
            gateway.probes.answered(replica.host)
        if response.status != 200:
            return await _not_ok(gateway, call, reply, replica, response)
        if response.header(b"content-type").startswith(b"text/event-stream"):
            answered = await _stream(gateway, call, reply, replica, response, service.p99_metric)
        else:
            answered = await _plain(gateway, call, reply, replica, response)
        if answered and call.outcome == "ok" and service.p99_metric != TTFT:
            _measure(gateway, call, replica, service.p99_metric)
        return answered


def _measure(gateway: Gateway, call: Call, replica: Replica, metric: str) -> None:
    """The figure its service is measured by: the first token when it comes, the others at the end."""
    ms = call.measured_ms(metric)
    if ms is not None:
        gateway.latency.call(replica.id, metric, ms)


def _broken_early(gateway: Gateway, call: Call, replica: Replica, error: RelayError) -> bool:
    """No byte was passed on: another replica may answer, but a call that breaks engines must not visit them all."""
    now = time.monotonic()
    if isinstance(error, TooSlow):
        gateway.breaker.stalled(replica.id, now)
        raise stalled()
    gateway.breaker.failed(replica.id, now)
    call.engine_failures += 1
    if call.engine_failures >= gateway.limits.engine_tries:
        raise drained()
    return False


async def _not_ok(gateway: Gateway, call: Call, reply: Reply, replica: Replica, response: Response) -> bool:
    try:
        body = await response.read(MIB, gateway.limits.stall_s)
    except RelayError as error:
        return _broken_early(gateway, call, replica, error)
    content_type = response.header(b"content-type") or b"application/json"
    return await _failed(gateway, call, reply, replica, response.status, body, content_type)


async def _failed(
    gateway: Gateway, call: Call, reply: Reply, replica: Replica, status: int, body: bytes, content_type: bytes
) -> bool:
    """An error instead of an answer: the door's, a leaving engine's (both: elsewhere), or one for the caller."""
    event = read_event(body)
    error = event.error if event else None
    code = error.code if isinstance(error, EngineError) else None
    if status == 401 or (status in (404, 502) and code in DOOR_CODES):
        call.asked = False
        gateway.breaker.failed(replica.id, time.monotonic())
        return False
    if status >= 500 and _elsewhere(gateway, call, replica, status, body):
        return False
    call.ended("failed", status, "engine_error")
    if reply.opened:
        await reply.end(b"data: " + (body if event else b'{"error":{}}') + b"\n\ndata: [DONE]\n\n")
    else:
        await reply.whole(status, body, [(b"content-type", content_type), *_held_header(call)])
    return True


def _elsewhere(gateway: Gateway, call: Call, replica: Replica, status: int, body: bytes) -> bool:
    """Whether a 5xx says more of the replica than of the call."""
    busy = status == 503 and not any(word in body for word in LEAVING)
    if not busy:
        gateway.breaker.failed(replica.id, time.monotonic())
    call.engine_failures += 1
    if call.engine_failures >= gateway.limits.engine_tries:
        return False
    if busy and replica.id in gateway.routes.ids:
        service = gateway.routes.blob.services.get(call.service)
        return service is not None and gateway.pick(service, call, but=(replica.id,)) is not None
    return replica.id not in gateway.routes.ids or any(word in body for word in LEAVING)


async def _plain(gateway: Gateway, call: Call, reply: Reply, replica: Replica, response: Response) -> bool:
    """Read whole first: a replica that breaks half-way has answered nothing yet."""
    try:
        body = await response.read(gateway.limits.answer_mib * MIB, gateway.limits.stall_s)
    except RelayError as error:
        return _broken_early(gateway, call, replica, error)
    call.first_byte = time.monotonic()
    event = read_event(body) or Event()
    call.counted = event.usage
    gateway.breaker.served(replica.id)
    call.ended("ok", 200)
    if reply.opened:  # the caller was promised a stream
        await reply.end(b"data: " + body + b"\n\ndata: [DONE]\n\n")
    else:
        content_type = response.header(b"content-type") or b"application/json"
        await reply.whole(200, body, [(b"content-type", content_type), *_held_header(call)])
    return True


async def _stream(
    gateway: Gateway, call: Call, reply: Reply, replica: Replica, response: Response, metric: str
) -> bool:
    try:
        head = await _first_event(response, gateway.limits.first_byte_s)
    except RelayError as error:
        return _broken_early(gateway, call, replica, error)
    if (failure := _error_in(head)) is not None:
        status, body = failure
        return await _failed(gateway, call, reply, replica, status, body, b"application/json")
    stream = Stream(call.body.usage_asked)
    call.first_byte = time.monotonic()
    if metric == TTFT:
        _measure(gateway, call, replica, metric)
    if not reply.opened:
        await reply.open_stream()
    try:
        data = head
        while data:
            if passed := stream.feed(data):
                await reply.write(passed)
            asked = time.monotonic()  # a slow reader is no slow engine: only the wait for it counts
            data = await response.chunk(gateway.limits.stall_s)
            if data:
                gateway.latency.gap(replica.id, (time.monotonic() - asked) * 1000)
    except TooSlow:
        gateway.breaker.stalled(replica.id, time.monotonic())
        raise stalled() from None
    except (Broken, Malformed):
        gateway.breaker.failed(replica.id, time.monotonic())
        raise drained() from None
    finally:
        call.counted, call.chunks = stream.counted, stream.chunks
    return await _end_stream(gateway, call, reply, replica, stream)


async def _end_stream(gateway: Gateway, call: Call, reply: Reply, replica: Replica, stream: Stream) -> bool:
    if not stream.done:
        gateway.breaker.failed(replica.id, time.monotonic())
        raise drained()
    if stream.error is None:
        gateway.breaker.served(replica.id)
        call.ended("ok", 200)
    else:
        gateway.breaker.failed(replica.id, time.monotonic())
        call.ended("failed", 200, "engine_error")
    await reply.end(b": gongka hold_ms=%d\n\n" % call.hold_ms if call.hold_s else b"")
    return True


async def _first_event(response: Response, silence_s: float) -> bytes:
    """All bytes up to at least the end of the first event that is not a comment. Raises `Broken` if none comes."""
    head = b""
    while data := await response.chunk(silence_s):
        head += data
        whole = head.replace(b"\r\n", b"\n").rpartition(b"\n\n")[0]
        if len(head) > EVENT_LIMIT or any(data_of(event) for event in whole.split(b"\n\n")):
            return head
    raise Broken("ended before its first event")


def _error_in(head: bytes) -> tuple[int, bytes] | None:
    """(status, JSON) when the first event is an error: the engine's 200 was premature."""
    if b'"error"' not in head:
        return None
    events = head.replace(b"\r\n", b"\n").split(b"\n\n")
    first = next((data for event in events if (data := data_of(event))), b"")
    event = read_event(first)
    if event is None or event.error is None:
        return None
    code = event.error.code if isinstance(event.error, EngineError) else None
    return (code if isinstance(code, int) and 400 <= code < 600 else 500), first


def _held_header(call: Call) -> list[tuple[bytes, bytes]]:
    return [(b"x-gongka-hold-ms", b"%d" % call.hold_ms)]
