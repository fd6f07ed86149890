"""How large a request's body may be: Django puts it on the disk whole before anybody is asked who sent it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

MOST_BYTES = 64 * 2**20  # five files of 10 MiB and a form
TOO_LARGE = "请求超过 64 MiB，没有收。 / The request is over 64 MiB and was not taken.\n".encode()

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def bounded(app: App, most_bytes: int = MOST_BYTES) -> App:
    """Answers 413 to a body that says it is too long, and to one that only turns out to be: there reading ends."""

    async def within(scope: Scope, receive: Receive, send: Send) -> None:
        if _told(scope) > most_bytes:
            return await _refuse(send)
        one = _Counted(receive, send, most_bytes)
        await app(scope, one.receive, one.send)
        if one.seen > most_bytes and not one.answered:
            await _refuse(send)
        return None

    return within


class _Counted:
    """One request's messages both ways: to the application a body that grows too long looks like a caller who left."""

    def __init__(self, receive: Receive, send: Send, most_bytes: int) -> None:
        self._receive, self._send, self._most_bytes = receive, send, most_bytes
        self.seen, self.answered = 0, False

    async def receive(self) -> Message:
        message = await self._receive()
        self.seen += len(message.get("body", b""))
        return message if self.seen <= self._most_bytes else {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.answered = True
        await self._send(message)


def _told(scope: Scope) -> int:
    """What the head says; 0: nothing, as for a body in chunks."""
    told = dict(scope["headers"]).get(b"content-length", b"0")
    return int(told) if told.isdigit() else 0


async def _refuse(send: Send) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": TOO_LARGE})
