"""The client against a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from relay import Address, Broken, Client, Malformed, TooSlow, Unreachable
from tests.relay.upstream import Upstream, saying, upstream

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def ask(client: Client, up: Upstream, body: bytes = b"", **more) -> tuple[int, bytes]:
    response = await client.request(up.address, "POST", "/x", [("x-a", "b")], body, **more)
    with response:
        return response.status, await response.read(10_000_000, 10)


async def until(what: Callable[[], bool]) -> None:
    while not what():
        await asyncio.sleep(0.01)


def run(case) -> None:
    """On both event loops: tests elsewhere run on the one, gateways and doors on the other."""
    for runner in (asyncio.run, uvloop.run):
        runner(asyncio.wait_for(case(), 30))


def test_it_keeps_connections_and_frames_all_three_ways() -> None:
    async def case() -> None:
        answers = [OK, CHUNKED + b"3\r\nabc\r\n0\r\nx-t: 1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nto the end"]

        async def talk(up: Upstream, request: bytes, reader, writer) -> bool:
            n = len(up.requests) - 1
            writer.write(answers[n])
            return n < 2

        client = Client()
        async with upstream(talk) as up:
            assert [await ask(client, up) for _ in range(3)] == [(200, b"ok"), (200, b"abc"), (200, b"to the end")]
            assert up.connections == 1
            host = f"127.0.0.1:{up.address.port}".encode()
            assert up.requests[0] == (b"POST /x HTTP/1.1\r\nhost: " + host + b"\r\ncontent-length: 0\r\nx-a: b\r\n\r\n")
        client.close()

    run(case)


def test_it_speaks_over_unix_sockets(tmp_path: Path) -> None:
    async def case() -> None:
        client = Client()
        async with upstream(saying(OK), str(tmp_path / "s")) as up:
            assert await ask(client, up, b"body") == (200, b"ok")
            assert up.requests[0].endswith(b"\r\n\r\nbody")
        client.close()

    run(case)


def test_it_skips_interim_answers() -> None:
    async def case() -> None:
        client = Client()
        interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
        async with upstream(saying(interim + OK)) as up:
            response = await client.request(up.address, "GET", "/")
            with response:
                assert (response.status, response.headers) == (200, [(b"content-length", b"2")])
                assert await response.read(10) == b"ok"
        client.close()

    run(case)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", Broken),
        (b"HTTP/1.1 200 OK\r\ncontent-le", Broken),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort", Broken),
        (CHUNKED + b"5\r\nab", Broken),
        (CHUNKED + b"zz\r\n", Malformed),
        (CHUNKED + b"fffffffffffffffffff\r\n", Malformed),
        (b"SSH-2.0-x\r\n", Malformed),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", Malformed),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", Malformed),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", Malformed),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", Malformed),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000 + b"\r\n", Malformed),
        (b"HTTP/1.1 100 C\r\n\r\n" * 5_000, Malformed),
        (CHUNKED + b"1\r\na\r\n0\r\n" + b"x: y\r\n" * 200_000 + b"\r\n", Malformed),
    ],
)
def test_it_refuses_what_is_not_an_answer(answer: bytes, error: type[Exception]) -> None:
    async def case() -> None:
        client = Client()
        async with upstream(saying(answer, stays=False)) as up:
            with pytest.raises(error):
                await ask(client, up)
            assert up.connections == 1, "no second try of what was answered, or of a fresh connection"
        client.close()

    run(case)


def test_a_connection_closed_while_idle_costs_nothing() -> None:
    async def case() -> None:
        client = Client()
        async with upstream(saying(OK)) as up:
            for _ in range(3):
                assert await ask(client, up) == (200, b"ok")
                up.writers[-1].close()
                await asyncio.sleep(0.01)
            assert up.connections == 3
        client.close()

    run(case)


def test_a_request_that_meets_the_close_is_sent_again() -> None:
    async def case() -> None:
        async def talk(up: Upstream, request: bytes, reader, writer) -> bool:
            if len(up.requests) == 2:
                return False  # read, and closed without a word: the keep-alive race
            writer.write(OK)
            return True

        client = Client()
        async with upstream(talk) as up:
            assert await ask(client, up, b"1") == (200, b"ok")
            assert await ask(client, up, b"2") == (200, b"ok")
            assert [request[-1:] for request in up.requests] == [b"1", b"2", b"2"]
        client.close()

    run(case)


def test_unasked_bytes_spoil_a_connection() -> None:
    async def case() -> None:
        client = Client()
        async with upstream(saying(OK + OK)) as up:
            assert await ask(client, up) == (200, b"ok")
            await asyncio.sleep(0.01)
            assert await ask(client, up) == (200, b"ok")
            assert up.connections == 2
        client.close()

    run(case)


def test_idle_connections_grow_stale() -> None:
    async def case() -> None:
        client = Client(idle_s=0.05)
        async with upstream(saying(OK)) as up:
            await ask(client, up)
            await asyncio.sleep(0.1)
            await ask(client, up)
            assert up.connections == 2
        client.close()

    run(case)


def test_idle_connections_are_bounded() -> None:
    async def case() -> None:
        client = Client(idle_per_address=2)
        async with upstream(saying(OK)) as up:
            await asyncio.gather(*(ask(client, up) for _ in range(6)))
            assert up.connections == 6
            await until(lambda: up.hangups == 4)
        client.close()

    run(case)


def test_it_gives_up_in_time() -> None:
    async def case() -> None:
        async def mute(up: Upstream, request: bytes, reader, writer) -> bool:
            if b"half" in request:
                writer.write(CHUNKED + b"1\r\na\r\n")
            await reader.read(1)
            raise ConnectionResetError

        client = Client()
        async with upstream(mute) as up:
            with pytest.raises(TooSlow):
                await client.request(up.address, "GET", "/", first_byte_s=0.05)
            response = await client.request(up.address, "GET", "/half")
            with response:
                assert await response.chunk(1) == b"a"
                with pytest.raises(TooSlow):
                    await response.chunk(0.05)
            await until(lambda: up.hangups == 2)
        client.close()

    run(case)


def test_nobody_there(tmp_path: Path) -> None:
    async def case() -> None:
        async with upstream(saying(OK)) as up:
            pass
        for address in (up.address, Address(path=str(tmp_path / "none"))):
            with pytest.raises(Unreachable):
                await Client().request(address, "GET", "/")

    run(case)


def test_a_cancelled_request_hangs_up() -> None:
    async def case() -> None:
        async def mute(up: Upstream, request: bytes, reader, writer) -> bool:
            await reader.read(1)
            raise ConnectionResetError

        client = Client()
        async with upstream(mute) as up:
            task = asyncio.create_task(client.request(up.address, "GET", "/"))
            while not up.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: up.hangups == 1)
        client.close()

    run(case)


def test_a_slow_reader_stops_the_writer() -> None:
    async def case() -> None:
        written = 0

        async def flood(up: Upstream, request: bytes, reader, writer) -> bool:
            nonlocal written
            writer.write(CHUNKED)
            for _ in range(400):
                writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                await writer.drain()
                written += 65536
            writer.write(b"0\r\n\r\n")
            return True

        client = Client()
        async with upstream(flood) as up:
            response = await client.request(up.address, "GET", "/")
            with response:
                await asyncio.sleep(0.2)
                assert written < 16 * 2**20
                assert len(await response.read(2**26)) == 400 * 65536
        client.close()

    run(case)


def test_it_will_not_smuggle() -> None:
    async def case() -> None:
        for method, target, header in [("GET", "/a b", "c"), ("GET", "/\r\nx: y", "c"), ("GET", "/", "c\r\nx: y")]:
            with pytest.raises(ValueError, match="line break"):
                await Client().request(Address("127.0.0.1", 1), method, target, [("a", header)])

    run(case)


def test_addresses() -> None:
    assert Address.of("http://10.0.0.1:7101") == Address("10.0.0.1", 7101)
    assert Address.of("unix:/run/x.sock") == Address(path="/run/x.sock")
    assert Address.of("http://[::1]:80").authority == "[::1]:80"
    for url in ("https://x", "ftp://x", "10.0.0.1:80", ""):
        with pytest.raises(ValueError, match="not an http"):
            Address.of(url)
