"""The door's side towards an engine: one connection a call.

A connect on a unix socket costs less than keeping track of idle ones, and a caller who hangs up closes exactly its
own call.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

import httptools


class Waiting(Protocol):
    """The caller's side, as the engine's side needs it."""

    transport: asyncio.Transport

    def engine_connected(self) -> None: ...

    def engine_unreachable(self) -> None: ...

    def engine_done(self, keep: bool) -> None: ...

    def engine_broke(self) -> None: ...


class EngineSide(asyncio.Protocol):
    """One call's connection to an engine's socket. Reply bytes pass unread but for where the reply ends."""

    def __init__(self, caller: Waiting, head: bytes) -> None:
        self.caller: Waiting | None = caller
        self.connected = False
        self._head = head
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._began = self._whole = self._to_close = False

    def connect(self, socket: str, connect_s: float) -> None:
        self._task = asyncio.get_running_loop().create_task(self._connect(socket, connect_s))

    async def _connect(self, socket: str, connect_s: float) -> None:
        try:
            async with asyncio.timeout(connect_s):
                await asyncio.get_running_loop().create_unix_connection(lambda: self, socket)
        except (OSError, TimeoutError):
            if self.caller is not None:
                self.caller.engine_unreachable()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = self._transport = cast(asyncio.Transport, transport)  # uvloop's own, no subclass
        if self.caller is None:  # hung up while the connection was being made
            transport.abort()
            return
        self.connected = True
        transport.write(self._head)
        self.caller.engine_connected()

    def write(self, body: bytes) -> None:
        if self._transport is not None:
            self._transport.write(body)

    def data_received(self, data: bytes) -> None:
        caller = self.caller
        if caller is None:
            return
        self._began = True
        caller.transport.write(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._leave()
            caller.engine_broke()
            return
        if self._whole:
            self._leave()
            caller.engine_done(keep=not self._to_close)

    def on_headers_complete(self) -> None:
        self._to_close = not self._parser.should_keep_alive()

    def on_message_complete(self) -> None:
        self._whole = self._parser.get_status_code() >= 200

    def connection_lost(self, error: Exception | None) -> None:
        caller, self.caller = self.caller, None
        if caller is None:
            return
        if not self._began:
            caller.engine_unreachable()
        elif self._to_close and error is None and not self._whole:
            caller.engine_done(keep=False)  # a reply that lasts until the connection closes
        else:
            caller.engine_broke()

    def pause_writing(self) -> None:
        if self.caller is not None:
            self.caller.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.caller is not None:
            self.caller.transport.resume_reading()

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def abandon(self) -> None:
        """The caller hung up: the engine sees it at once and frees the call."""
        self.caller = None
        if self._transport is not None:
            self._transport.abort()

    def _leave(self) -> None:
        self.caller = None
        if self._transport is not None:
            self._transport.close()
