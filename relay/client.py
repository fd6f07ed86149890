"""The pooled upstream client: one request, one answer, bytes as they arrive.

httpx costs ten times as much per streamed chunk; what the gateway needs of HTTP fits here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Self

from relay.address import Address
from relay.connection import Broken, Connection, Headers, Malformed, TooSlow, Unreachable


class Response:
    """Status and headers (names in lower case); the body is read or iterated once. Always close it."""

    def __init__(self, client: Client, address: Address, connection: Connection, status: int) -> None:
        self.status = status
        self.headers: Headers = connection.headers
        self._client, self._address, self._connection = client, address, connection
        self._open = True

    def header(self, name: bytes) -> bytes:
        return next((value for key, value in self.headers if key == name), b"")

    async def chunk(self, silence_s: float | None = None) -> bytes:
        """Body bytes at hand, b"" at the end. Raises `Broken`, `Malformed`, `TooSlow` after `silence_s` of nothing."""
        if silence_s is None:
            return await self._connection.read()
        try:
            async with asyncio.timeout(silence_s):
                return await self._connection.read()
        except TimeoutError:
            raise TooSlow(f"silent for {silence_s} s") from None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.chunk():
            yield data

    async def read(self, limit: int, silence_s: float | None = None) -> bytes:
        """The whole body. Raises what `chunk` raises, and `Malformed` when it is longer than `limit` bytes."""
        parts: list[bytes] = []
        size = 0
        while data := await self.chunk(silence_s):
            size += len(data)
            if size > limit:
                raise Malformed(f"body longer than {limit} bytes")
            parts.append(data)
        return b"".join(parts)

    def close(self) -> None:
        """Back to the pool when all was read, else the connection goes: an abort the upstream sees at once."""
        if self._open:
            self._open = False
            self._client.release(self._address, self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client:
    """Connections kept alive per address, newest used first.

    `idle_s` is shorter than the upstream's own patience, so that few requests meet a connection being closed;
    the one that does is sent again on a fresh connection, since not a byte of an answer had come.
    """

    def __init__(
        self,
        *,
        idle_per_address: int = 64,
        idle_s: float = 4.0,
        connect_s: float = 2.0,
        head_limit: int = 65536,
        buffer_limit: int = 65536,
    ) -> None:
        self.idle_per_address, self.idle_s, self.connect_s = idle_per_address, idle_s, connect_s
        self.head_limit, self.buffer_limit = head_limit, buffer_limit
        self._idle: dict[Address, deque[Connection]] = {}

    async def request(
        self,
        address: Address,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        *,
        first_byte_s: float | None = None,
    ) -> Response:
        """One answer's head. Raises `Unreachable`, `TooSlow` (no head in `first_byte_s`), `Broken`, `Malformed`.

        Cancelled or failed, the connection is closed. Values with line breaks are the caller's error: ValueError.
        """
        head = encode_head(address, method, target, headers, len(body))
        while True:
            connection = self._take(address)
            pooled = connection is not None
            connection = connection or await self._connect(address)
            try:
                connection.send(head, body)
                async with asyncio.timeout(first_byte_s):
                    status = await connection.head
            except TimeoutError:
                connection.abort()
                raise TooSlow(f"no answer within {first_byte_s} s") from None
            except Broken:
                if pooled and not connection.answered:
                    continue
                raise
            except BaseException:
                connection.abort()
                raise
            return Response(self, address, connection, status)

    def release(self, address: Address, connection: Connection) -> None:
        fresh = connection.complete and connection.reusable and not (connection.spoiled or connection.lost)
        if not fresh or connection.transport.is_closing() or connection.transport.get_write_buffer_size():
            connection.abort()
            return
        connection.idle_since = asyncio.get_running_loop().time()
        idle = self._idle.setdefault(address, deque())
        while idle and (len(idle) >= self.idle_per_address or self._stale(idle[0])):
            idle.popleft().abort()
        idle.append(connection)

    def close(self) -> None:
        """Drop every idle connection."""
        for idle in self._idle.values():
            for connection in idle:
                connection.abort()
        self._idle.clear()

    def _take(self, address: Address) -> Connection | None:
        idle = self._idle.get(address, ())
        while idle:
            connection = idle.pop()
            if not (self._stale(connection) or connection.spoiled):
                return connection
            connection.abort()
        return None

    def _stale(self, connection: Connection) -> bool:
        age_s = asyncio.get_running_loop().time() - connection.idle_since
        return connection.lost or connection.transport.is_closing() or age_s > self.idle_s

    async def _connect(self, address: Address) -> Connection:
        loop = asyncio.get_running_loop()

        def make() -> Connection:
            return Connection(self.head_limit, self.buffer_limit)

        try:
            async with asyncio.timeout(self.connect_s):
                if address.path:
                    _, connection = await loop.create_unix_connection(make, address.path)
                else:
                    _, connection = await loop.create_connection(make, address.host, address.port)
        except (OSError, TimeoutError) as error:
            raise Unreachable(f"{address.authority}: {error or 'no connection in time'}") from None
        return connection


def encode_head(
    address: Address, method: str, target: str, headers: Iterable[tuple[str, str]], body_bytes: int
) -> bytes:
    """The request's first lines. Raises ValueError when a value could smuggle a second line."""
    lines = [f"{method} {target} HTTP/1.1", f"host: {address.authority}", f"content-length: {body_bytes}"]
    lines += [f"{name}: {value}" for name, value in headers]
    if " " in target or any("\r" in line or "\n" in line or "\0" in line for line in lines):
        raise ValueError("line break or space where HTTP allows none")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
