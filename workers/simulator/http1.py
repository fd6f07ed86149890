"""A small HTTP/1.1 server on asyncio.Protocol and httptools: keep-alive, chunked streams, one write a token.

The server header and the handling of idle connections at shutdown are uvicorn's, which vLLM is served by.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qsl

import httptools

MAX_BODY_BYTES = 64 * 1024 * 1024
LAST_CHUNK = b"0\r\n\r\n"


class Request:
    """One request, whole. `headers` has lower-case names."""

    __slots__ = ("method", "path", "query", "headers", "body")

    def __init__(self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body


class Reply:
    """The answer to one request: either `send` once, or `start`, `write` as often as needed, `end`."""

    __slots__ = ("_connection", "_request", "on_hang_up", "started", "ended", "status")

    def __init__(self, connection: Connection, request: Request) -> None:
        self._connection = connection
        self._request = request
        self.on_hang_up: Callable[[], None] | None = None
        self.started = False
        self.ended = False
        self.status = 0

    def send(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        """The whole answer at once; an empty body has no content type, as FastAPI's empty answers have none."""
        if self.ended:
            return
        self.status = status
        kind = f"content-type: {content_type}\r\n" if body else ""
        head = self._head(status, f"content-length: {len(body)}\r\n{kind}")
        self._connection.write(head if self._request.method == "HEAD" else head + body)
        self._finish()

    def start(self, content_type: str = "text/event-stream; charset=utf-8") -> None:
        self.started = True
        self.status = 200
        self._connection.write(self._head(200, f"content-type: {content_type}\r\ntransfer-encoding: chunked\r\n"))

    def write(self, data: bytes) -> None:
        self._connection.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        if not self.ended:
            self._connection.write(LAST_CHUNK)
            self._finish()

    def _head(self, status: int, more: str) -> bytes:
        server = self._connection.server
        phrase = HTTPStatus(status).phrase
        closing = "connection: close\r\n" if server.closing or not self._connection.keep_alive else ""
        return (
            f"HTTP/1.1 {status} {phrase}\r\ndate: {formatdate(usegmt=True)}\r\nserver: uvicorn\r\n"
            f"{server.extra_headers}{closing}{more}\r\n"
        ).encode("latin-1")

    def _finish(self) -> None:
        self.ended = True
        self._connection.server.on_answered(self._request, self.status)
        self._connection.next_request()


class Server:
    """All connections of one engine and the function that answers."""

    def __init__(self, handle: Callable[[Request, Reply], None], extra_headers: str = "") -> None:
        """`extra_headers`: header lines, each ended by CRLF, that every answer carries."""
        self.handle = handle
        self.extra_headers = extra_headers
        self.connections: set[Connection] = set()
        self.closing = False
        self.on_answered: Callable[[Request, int], None] = lambda request, status: None

    def connection(self) -> Connection:
        """The protocol factory for `loop.create_unix_server`."""
        return Connection(self)

    @property
    def in_flight(self) -> int:
        return sum(connection.reply is not None for connection in self.connections)

    def close_idle(self) -> None:
        """From now on connections without a request are closed, at once and after their last answer."""
        self.closing = True
        for connection in list(self.connections):
            if connection.reply is None:
                connection.close()


class Connection(asyncio.Protocol):
    """One client. Requests that arrive while one is being answered wait their turn (pipelining)."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.reply: Reply | None = None
        self.keep_alive = True
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[tuple[Request, bool]] = deque()
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not asyncio's classes, only shaped like them.
        self._transport = cast(asyncio.Transport, transport)
        self.server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)
        self._transport = None
        reply, self.reply = self.reply, None
        self._queue.clear()
        if reply and reply.on_hang_up:
            reply.on_hang_up()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.close()
        except httptools.HttpParserError:
            self.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            self.close()

    def on_message_begin(self) -> None:
        self._url, self._headers, self._body, self._size = b"", {}, [], 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._headers.get("expect", "").lower() == "100-continue":
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > MAX_BODY_BYTES:
            self.close()
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        url = httptools.parse_url(self._url)
        query = dict(parse_qsl((url.query or b"").decode("latin-1")))
        method = self._parser.get_method().decode("latin-1")
        request = Request(method, url.path.decode("latin-1"), query, self._headers, b"".join(self._body))
        self._queue.append((request, self._parser.should_keep_alive()))
        if self.reply is None:
            self.next_request()

    def next_request(self) -> None:
        """Called when the one before is answered."""
        self.reply = None
        if not self.keep_alive or (self.server.closing and not self._queue):
            self.close()
        elif self._queue:
            request, self.keep_alive = self._queue.popleft()
            self.reply = Reply(self, request)
            self.server.handle(request, self.reply)

    def write(self, data: bytes) -> None:
        if self._transport:
            self._transport.write(data)

    def close(self) -> None:
        if self._transport:
            self._transport.close()
