"""The host's door: callers' bytes from the host's address to the engines' sockets, and nothing else.

A process and a session of its own, so that an agent upgrade cuts no stream. Of a request only the head is read; of
a reply only where it ends. Connections from gateways are kept alive.
"""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import signal
import sys
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import cast

import httptools

from workers.host import door_rules as rules
from workers.host import settings
from workers.host.door_engine import EngineSide
from workers.host.door_rules import Passage, Refusal

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DoorLimits:
    backlog: int = 2048  # asyncio's 100 costs 200 callers at once a second of SYN retry
    head_bytes: int = 64 * 1024  # of a request's line and headers
    body_bytes: int = 64 * 1024 * 1024  # of a request's body; the gateway's own limit is lower
    held_bytes: int = 256 * 1024  # of a body, kept while the engine's connection is being made
    head_s: float = 10.0  # a head that has begun must be whole by then
    body_s: float = 60.0  # between two pieces of a body
    idle_s: float = 120.0  # a kept connection without a call; longer than a gateway's own, so it closes first
    connect_s: float = 5.0  # to the engine's socket


class Door:
    """What all connections of this door share."""

    def __init__(self, the_rules: rules.Rules, limits: DoorLimits) -> None:
        self.rules, self.limits = the_rules, limits
        self.boot = uuid.uuid4().hex
        self.in_flight: Counter[int] = Counter()

    def counts(self) -> bytes:
        live = {str(replica): count for replica, count in self.in_flight.items() if count}
        return json.dumps({"boot": self.boot, "in_flight": live}).encode()


class Caller(asyncio.Protocol):
    """A connection from a gateway; one call at a time on it."""

    transport: asyncio.Transport

    def __init__(self, door: Door) -> None:
        self.door = door
        self.engine: EngineSide | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._open = True
        self._reset()

    def _reset(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._has_head = self._has_body = False
        self._passage: Passage | None = None
        self._own: tuple[int, bytes] | None = None  # the door's own answer, given when the request is in
        self._held: list[bytes] = []
        self._held_bytes = self._body_bytes = 0
        self._counted = False
        self._keep = True

    # Bytes from the gateway

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own, no subclass
        self._wait(self.door.limits.idle_s, None)

    def data_received(self, data: bytes) -> None:
        if self._has_body:  # a second request before the first was answered
            self.transport.abort()
            return
        if not self._has_head:
            if self._head_bytes == 0:
                self._wait(self.door.limits.head_s, rules.SLOW)
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse_now(rules.NOT_HTTP)
            return
        if not self._has_head and self._head_bytes > self.door.limits.head_bytes:
            self._refuse_now(rules.HEAD_TOO_LARGE)

    def eof_received(self) -> bool:
        return False  # half-closed is hung up: nobody is there to read the answer

    def connection_lost(self, error: Exception | None) -> None:
        self._open = False
        self._cancel_timer()
        if self.engine is not None:
            self.engine.abandon()
        self._release()

    def pause_writing(self) -> None:
        if self.engine is not None:
            self.engine.pause()

    def resume_writing(self) -> None:
        if self.engine is not None:
            self.engine.resume()

    # The parser's events

    def on_url(self, url: bytes) -> None:
        if self._has_head:
            raise httptools.HttpParserError("pipelined")
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._has_head = True
        self._keep = self._parser.should_keep_alive()
        self._wait(self.door.limits.body_s, rules.SLOW)
        headers = dict(self._headers)
        length = headers.get(b"content-length", b"0")
        if b"transfer-encoding" in headers or not length.isdigit():
            self._refuse_now(rules.NEEDS_LENGTH)
        elif int(length) > self.door.limits.body_bytes:
            self._refuse_now(rules.TOO_LARGE)
        elif not self.door.rules.knows(headers.get(b"authorization", b"")):
            self._own = (rules.WRONG_TOKEN.status, rules.WRONG_TOKEN.body)
        else:
            self._admit(headers)

    def on_body(self, body: bytes) -> None:
        self._wait(self.door.limits.body_s, rules.SLOW)
        if self._own is not None or self._passage is None:
            return
        if self.engine is not None and self.engine.connected:
            self.engine.write(body)
            return
        self._held.append(body)
        self._held_bytes += len(body)
        if self._held_bytes > self.door.limits.held_bytes:
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        self._has_body = True
        self._cancel_timer()
        self._answer_own()

    # One call

    def _admit(self, headers: dict[bytes, bytes]) -> None:
        method = self._parser.get_method()
        if (method, self._url) == (b"GET", b"/counts"):
            self._own = (200, self.door.counts())
            return
        passage = self.door.rules.passage(method, self._url)
        if isinstance(passage, Refusal):
            self._own = (passage.status, passage.body)
            return
        self._passage = passage
        if passage.counts:
            self._counted = True
            self.door.in_flight[passage.replica] += 1
        if headers.get(b"expect", b"").lower() == b"100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        lines = [b"%s %s HTTP/1.1\r\nhost: engine" % (method, passage.path)]
        lines += [b"%s: %s" % pair for pair in self._headers if pair[0] not in rules.NOT_FORWARDED]
        self.engine = EngineSide(self, b"\r\n".join(lines) + b"\r\n\r\n")
        self.engine.connect(passage.socket, self.door.limits.connect_s)

    def engine_connected(self) -> None:
        assert self.engine is not None
        for piece in self._held:
            self.engine.write(piece)
        self._held.clear()
        self.transport.resume_reading()

    def engine_unreachable(self) -> None:
        """Before any byte of an answer: the gateway may try another replica."""
        self.engine = None
        self._held.clear()
        self._release()
        self._own = (rules.UNREACHABLE.status, rules.UNREACHABLE.body)
        self.transport.resume_reading()
        self._answer_own()

    def engine_done(self, keep: bool) -> None:
        """The whole answer has been passed on."""
        self.engine = None
        self._release()
        if self._open and keep and self._keep and self._has_body:
            self._reset()
            self._wait(self.door.limits.idle_s, None)
        else:
            self.transport.close()

    def engine_broke(self) -> None:
        """The engine ended in the middle of an answer: the gateway must see a broken one, never a short whole one."""
        self.engine = None
        self._release()
        self.transport.abort()

    def _release(self) -> None:
        if self._counted and self._passage is not None:
            self._counted = False
            self.door.in_flight[self._passage.replica] -= 1
            if self.door.in_flight[self._passage.replica] <= 0:
                del self.door.in_flight[self._passage.replica]

    # The door's own answers and clocks

    def _answer_own(self) -> None:
        if self._own is None or not self._has_body or not self._open:
            return
        status, body = self._own
        keep = self._keep
        self.transport.write(rules.response(status, body, keep))
        if keep:
            self._reset()
            self._wait(self.door.limits.idle_s, None)
        else:
            self.transport.close()

    def _refuse_now(self, refusal: Refusal) -> None:
        """What is left of the request is not worth reading."""
        if self._open and not self.transport.is_closing():
            if self.engine is None:
                self.transport.write(rules.response(refusal.status, refusal.body, keep=False))
            self.transport.close()

    def _wait(self, seconds: float, refusal: Refusal | None) -> None:
        self._cancel_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._too_late, refusal)

    def _too_late(self, refusal: Refusal | None) -> None:
        if refusal is None:
            self.transport.close()
        else:
            self._refuse_now(refusal)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def serve(what: settings.Settings, limits: DoorLimits) -> None:
    """Until SIGTERM or SIGINT. Raises OSError when the address is taken."""
    loop = asyncio.get_running_loop()
    door = Door(rules.Rules(what.token_file, what.door_map), limits)
    server = await loop.create_server(
        lambda: Caller(door), what.door_address, what.door_port, backlog=limits.backlog, reuse_address=True
    )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    log.warning("door of %s at %s:%s", what.host, what.door_address, what.door_port)
    await stop.wait()
    server.close()


def main() -> int:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # two descriptors a call
    try:
        import uvloop

        uvloop.run(serve(settings.read(), DoorLimits()))
    except settings.Misconfigured as error:
        log.error("%s", error)
        return 2
    except OSError as error:
        log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
