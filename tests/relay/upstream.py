"""An upstream that writes what a test says, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from relay import Address

Talk = Callable[["Upstream", bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]


@dataclass
class Upstream:
    """`talk` answers one request and says whether the connection stays."""

    talk: Talk
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    hangups: int = 0
    address: Address = field(default_factory=Address)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next((int(x[15:]) for x in head.split(b"\r\n") if x.startswith(b"content-length:")), 0)
                self.requests.append(head + await reader.readexactly(length))
                if not await self.talk(self, self.requests[-1], reader, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.hangups += 1
        finally:
            writer.close()


@asynccontextmanager
async def upstream(talk: Talk, path: str = "") -> AsyncIterator[Upstream]:
    up = Upstream(talk)
    if path:
        server = await asyncio.start_unix_server(up.serve, path)
        up.address = Address(path=path)
    else:
        server = await asyncio.start_server(up.serve, "127.0.0.1", 0)
        up.address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        yield up
    finally:
        server.close()
        for writer in up.writers:
            writer.close()
        await asyncio.sleep(0)


def saying(*parts: bytes, stays: bool = True) -> Talk:
    """Writes `parts`, each in a segment of its own."""

    async def talk(up: Upstream, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        return stays

    return talk
