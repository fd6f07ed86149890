"""One connection's parser, fed without a socket: whatever the segments, the same answer or a clear error."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from relay import RelayError
from relay.connection import Connection

HEADS = [
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\nX: " + b"y" * 300 + b"\r\n\r\n",
]


class Transport(asyncio.Transport):
    """Keeps what was written; reading can be paused."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.aborted = self.paused = False

    def writelines(self, parts) -> None:
        self.written += b"".join(parts)

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.aborted

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


async def feed(segments: list[bytes], closes: bool) -> tuple[int, bytes]:
    """(status, body) as a reader gets them. Raises what the reader gets."""
    connection, transport = Connection(4096, 1000), Transport()
    connection.connection_made(transport)
    connection.send(b"", b"")

    async def read() -> tuple[int, bytes]:
        status, body = await connection.head, b""
        while data := await connection.read():
            body += data
        return status, body

    reader = asyncio.create_task(read())
    for segment in segments:
        for _ in range(5):
            await asyncio.sleep(0)
        assert not transport.paused, "a reader that keeps up is never paused"
        if transport.aborted:
            break
        connection.data_received(segment)
        assert connection._buffered <= 1000 + len(segment)
    if closes or transport.aborted:
        connection.connection_lost(None)
    return await asyncio.wait_for(reader, 10)


def chunked(pieces: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@given(st.sampled_from(HEADS), st.lists(st.binary(min_size=1, max_size=50), max_size=6), st.data())
@settings(deadline=None, max_examples=60)
def test_segments_do_not_matter(head: bytes, pieces: list[bytes], data: st.DataObject) -> None:
    message = head + chunked(pieces)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(message)), max_size=12)))
    segments = [message[a:b] for a, b in zip([0, *cuts], [*cuts, len(message)], strict=True) if a < b]
    status = 200 if b"200 OK" in head else 503
    assert asyncio.run(feed(segments, closes=False)) == (status, b"".join(pieces))


def test_every_single_split() -> None:
    async def case() -> None:
        message = HEADS[0] + chunked([b"data: x\n\n", b"y"])
        for cut in range(1, len(message)):
            assert await feed([message[:cut], message[cut:]], closes=False) == (200, b"data: x\n\ny")
        assert await feed([bytes([byte]) for byte in message], closes=False) == (200, b"data: x\n\ny")

    asyncio.run(case())


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_an_early_end_is_never_a_whole_answer(data: st.DataObject) -> None:
    message = HEADS[0] + chunked([b"abc", b"defg"])
    cut = data.draw(st.integers(0, len(message) - 1))
    try:
        asyncio.run(feed([message[:cut]], closes=True))
    except RelayError:
        return
    raise AssertionError("taken for whole")


@given(st.lists(st.binary(max_size=200), max_size=8), st.booleans())
@settings(deadline=None, max_examples=100)
def test_noise_ends_in_an_error(noise: list[bytes], good_start: bool) -> None:
    try:
        status, body = asyncio.run(feed([HEADS[0], *noise] if good_start else noise, closes=True))
    except RelayError:
        return
    assert status == 200
    assert len(body) <= sum(map(len, noise))


@given(st.binary(max_size=3000))
@settings(deadline=None, max_examples=30)
def test_read_to_close(body: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nx: y\r\n\r\n"
    assert asyncio.run(feed([head, body], closes=True)) == (200, body)
