"""One upstream connection: HTTP/1.1 responses framed by httptools, with backpressure and bounds."""

from __future__ import annotations

import asyncio
from typing import cast

import httptools

Headers = list[tuple[bytes, bytes]]


class RelayError(Exception):
    """An upstream call that did not come to its end."""


class Unreachable(RelayError):
    """No connection could be made: nothing was sent."""


class TooSlow(RelayError):
    """The upstream said nothing for as long as the caller allowed."""


class Broken(RelayError):
    """The upstream closed before its answer was complete."""


class Malformed(RelayError):
    """The upstream did not speak HTTP/1.1, or its head passed the bound."""


class Connection(asyncio.Protocol):
    """One request at a time. `head` resolves when the final head is in; body bytes wait in a bounded buffer."""

    def __init__(self, head_limit: int, buffer_limit: int) -> None:
        self.head_limit = head_limit  # bytes of head, trailers or chunk framing with no body byte between
        self.buffer_limit = buffer_limit  # bytes of body read ahead of the reader
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.lost = False
        self.used = False
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._drained: asyncio.Future[None] | None = None
        self._begin()

    def _begin(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.head: asyncio.Future[int] = self._loop.create_future()
        self.headers: Headers = []
        self.complete = self.reusable = self.answered = self.spoiled = False
        self.error: RelayError | None = None
        self._until_close = False
        self._in_body = False
        self._quiet = 0
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._paused = False
        self._reader: asyncio.Future[None] | None = None

    def send(self, head: bytes, body: bytes) -> None:
        if self.used:
            self._begin()
        self.used = True
        self.transport.writelines((head, body))

    async def read(self) -> bytes:
        """All body bytes at hand, b"" at the end. Raises `Broken`, `Malformed`."""
        while not self._buffer:
            if self.error is not None:
                raise self.error
            if self.complete:
                return b""
            self._reader = self._loop.create_future()
            await self._reader
        data = self._buffer[0] if len(self._buffer) == 1 else b"".join(self._buffer)
        self._buffer.clear()
        self._buffered = 0
        if self._paused:
            self._paused = False
            if not self.lost and not self.transport.is_closing():
                self.transport.resume_reading()
        return data

    def abort(self) -> None:
        if not self.lost:
            self.transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.answered = True
        if self.complete or not self.used:  # bytes nobody asked for: the next answer could be mistaken for this one
            self.spoiled = True
            self.abort()
            return
        self._quiet += len(data)
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self.complete:
                self.spoiled = True
            else:
                self._fail(Malformed(f"not HTTP/1.1: {error}"))
        if self._quiet > self.head_limit and not self.complete:
            self._fail(Malformed("head too large"))

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if self._until_close and self._in_body and exc is None and self.error is None:
            self.on_message_complete()
        elif not self.complete:
            self._fail(Broken("closed before the answer was complete"))

    # httptools

    def on_message_begin(self) -> None:
        if self.complete:
            self.spoiled = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self.complete:
            return
        status = self.parser.get_status_code()
        if 100 <= status < 200:
            if status == 101:
                self._fail(Malformed("upgrade was not asked for"))
            self.headers.clear()
            return
        names = {name for name, _ in self.headers}
        self._until_close = not (names & {b"content-length", b"transfer-encoding"} or status in (204, 304))
        self._in_body = True
        if not self.head.done():
            self.head.set_result(status)

    def on_body(self, data: bytes) -> None:
        if self.error is not None or self.complete:
            return
        self._quiet = 0
        self._buffer.append(data)
        self._buffered += len(data)
        if self._buffered > self.buffer_limit and not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        if not self._in_body or self.error is not None or self.complete:
            return  # the end of an interim (1xx) answer
        self.complete = True
        self.reusable = self.parser.should_keep_alive() and not self._until_close
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _fail(self, error: RelayError) -> None:
        if self.error is None:
            self.error = error
            if not self.head.done():
                self.head.set_exception(error)
                self.head.exception()  # seen, whether or not somebody still waits
            self._wake()
        self.abort()
