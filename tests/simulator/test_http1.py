"""The HTTP server by itself: framing, keep-alive, hang-ups, and bytes that are no HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from workers.simulator.http1 import Reply, Request, Server

CLOSE = b"connection: close\r\n"


class Talk:
    """One client connection to a server whose handler is given."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def say(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> tuple[bytes, bytes]:
        """Head and body of one answer with a content length."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().splitlines() if line.startswith(b"content-length:"))
        return head, await self.reader.readexactly(length)


def echo(request: Request, reply: Reply) -> None:
    reply.send(200, f"{request.method} {request.path} {request.query} {len(request.body)}".encode(), "text/plain")


def talk(
    folder: Path,
    handle: Callable[[Request, Reply], None],
    story: Callable[[Server, Talk], Awaitable[None]],
) -> None:
    async def run() -> None:
        server = Server(handle, "x-sim-replica: 7\r\n")
        path = str(folder / "s")
        listener = await asyncio.get_running_loop().create_unix_server(server.connection, path)
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            await asyncio.wait_for(story(server, Talk(reader, writer)), 20)
        finally:
            writer.close()
            listener.close()
            await asyncio.sleep(0)

    asyncio.run(run())


def test_an_answer_has_its_length_and_the_engines_headers(tmp_path: Path) -> None:
    async def story(server: Server, client: Talk) -> None:
        client.say(b"POST /a?x=1&y=%20 HTTP/1.1\r\nhost: e\r\ncontent-length: 3\r\n\r\nabc")
        head, body = await client.answer()
        assert head.startswith(b"HTTP/1.1 200 OK\r\ndate: ")
        assert b"server: uvicorn\r\nx-sim-replica: 7\r\n" in head
        assert body == b"POST /a {'x': '1', 'y': ' '} 3"
        assert server.in_flight == 0

    talk(tmp_path, echo, story)


def test_a_connection_is_kept_until_the_client_says_close(tmp_path: Path) -> None:
    async def story(server: Server, client: Talk) -> None:
        for _ in range(3):
            client.say(b"GET /a HTTP/1.1\r\nhost: e\r\n\r\n")
            assert CLOSE not in (await client.answer())[0]
        client.say(b"GET /a HTTP/1.1\r\nhost: e\r\nconnection: close\r\n\r\n")
        assert CLOSE in (await client.answer())[0]
        assert await client.reader.read() == b""

    talk(tmp_path, echo, story)


def test_bodies_in_pieces_and_in_chunks(tmp_path: Path) -> None:
    async def story(server: Server, client: Talk) -> None:
        for part in (b"POST /a HTTP/1.1\r\nho", b"st: e\r\ncontent-length: 6\r\n\r\nab", b"cdef"):
            client.say(part)
            await asyncio.sleep(0.01)
        assert (await client.answer())[1].endswith(b" 6")
        client.say(b"POST /a HTTP/1.1\r\nhost: e\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert (await client.answer())[1].endswith(b" 5")

    talk(tmp_path, echo, story)


def test_expect_is_continued(tmp_path: Path) -> None:
    async def story(server: Server, client: Talk) -> None:
        client.say(b"POST /a HTTP/1.1\r\nhost: e\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.say(b"ab")
        assert (await client.answer())[1].endswith(b" 2")

    talk(tmp_path, echo, story)


def test_head_has_no_body(tmp_path: Path) -> None:
    async def story(server: Server, client: Talk) -> None:
        client.say(b"HEAD /a HTTP/1.1\r\nhost: e\r\nconnection: close\r\n\r\n")
        assert (await client.reader.read()).endswith(b"\r\n\r\n")

    talk(tmp_path, echo, story)


@pytest.mark.parametrize("noise", [b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET /a HTTP/1.1\r\nno colon\r\n\r\n"])
def test_what_is_no_http_is_refused_and_closed(tmp_path: Path, noise: bytes) -> None:
    async def story(server: Server, client: Talk) -> None:
        client.say(noise)
        assert (await client.reader.read()).startswith(b"HTTP/1.1 400 Bad Request")

    talk(tmp_path, echo, story)


def test_a_stream_is_chunked_and_ended_once(tmp_path: Path) -> None:
    def handle(request: Request, reply: Reply) -> None:
        reply.start()
        reply.write(b"data: a\n\n")
        reply.end()
        reply.end()
        reply.send(200, b"too late")

    async def story(server: Server, client: Talk) -> None:
        client.say(b"GET /a HTTP/1.1\r\nhost: e\r\nconnection: close\r\n\r\n")
        head, _, body = (await client.reader.read()).partition(b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head
        assert body == b"9\r\ndata: a\n\n\r\n0\r\n\r\n"

    talk(tmp_path, handle, story)


def test_a_hang_up_is_told_at_once_and_writing_on_does_no_harm(tmp_path: Path) -> None:
    gone = asyncio.Event()
    replies: list[Reply] = []

    def handle(request: Request, reply: Reply) -> None:
        reply.start()
        reply.on_hang_up = gone.set
        replies.append(reply)

    async def story(server: Server, client: Talk) -> None:
        client.say(b"GET /a HTTP/1.1\r\nhost: e\r\n\r\n")
        await client.reader.readuntil(b"\r\n\r\n")
        assert server.in_flight == 1
        client.writer.close()
        await gone.wait()
        assert (server.in_flight, server.connections) == (0, set())
        replies[0].write(b"into the void")
        replies[0].end()

    talk(tmp_path, handle, story)


def test_closing_ends_idle_connections_and_busy_ones_after_their_answer(tmp_path: Path) -> None:
    replies: list[Reply] = []

    async def story(server: Server, client: Talk) -> None:
        idle_reader, idle_writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        client.say(b"GET /a HTTP/1.1\r\nhost: e\r\n\r\n")
        while not replies or len(server.connections) < 2:
            await asyncio.sleep(0.005)
        server.close_idle()
        assert await idle_reader.read() == b""
        idle_writer.close()
        replies[0].send(200, b"last")
        head, body = await client.answer()
        assert CLOSE in head
        assert body == b"last"
        assert await client.reader.read() == b""

    talk(tmp_path, lambda request, reply: replies.append(reply), story)
