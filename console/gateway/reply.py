"""The answer to one caller: opened once, ended once, in its language and its shape."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from console.gateway.errors import Refused
from console.gateway.usage import DONE

Send = Callable[[dict[str, Any]], Awaitable[None]]
Pairs = Iterable[tuple[bytes, bytes]]


class Reply:
    """`extra` headers go with every answer. `opened` once the status is out; `ended` once nothing may follow."""

    def __init__(self, send: Send, english: bool = False) -> None:
        self._send = send
        self.english = english
        self.extra: list[tuple[bytes, bytes]] = []
        self.opened = self.ended = False

    async def open(self, status: int, headers: Pairs) -> None:
        self.opened = True
        await self._send({"type": "http.response.start", "status": status, "headers": [*headers, *self.extra]})

    async def open_stream(self) -> None:
        # X-Accel-Buffering: a proxy before us must not collect what shall be seen at once.
        await self.open(
            200,
            [
                (b"content-type", b"text/event-stream; charset=utf-8"),
                (b"cache-control", b"no-store"),
                (b"x-accel-buffering", b"no"),
            ],
        )

    async def write(self, data: bytes) -> None:
        """Waits while the caller reads slowly: that is the backpressure."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        self.ended = True
        await self._send({"type": "http.response.body", "body": data})

    async def whole(self, status: int, body: bytes, headers: Pairs) -> None:
        await self.open(status, [(b"content-length", b"%d" % len(body)), *headers])
        await self.end(body)

    async def json(self, status: int, content: object) -> None:
        await self.whole(status, msgspec.json.encode(content), [(b"content-type", b"application/json")])

    async def refuse(self, refused: Refused) -> None:
        """Before the status is out: a status. After: an error event and a clean end."""
        body = refused.body(self.english)
        if self.opened:
            await self.end(b"data: " + body + b"\n\n" + DONE)
        else:
            await self.whole(refused.status, body, [(b"content-type", b"application/json"), *refused.headers()])
