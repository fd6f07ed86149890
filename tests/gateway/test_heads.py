"""Heads of requests are bounded in size and time, whatever comes in which pieces; all else is as the server has it."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn

from console import heads
from tests.gateway.farm import until

LIMIT_S = 30.0
GOOD = b"GET / HTTP/1.1\r\nhost: x\r\n"


async def application(scope, receive, send) -> None:
    if scope["type"] != "http":
        return
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(heads, "HEAD_S", 1.0)
    config = uvicorn.Config(application, port=0, http=heads.Bounded, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    listener = config.bind_socket()
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    until(lambda: server.started)
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(LIMIT_S)
    assert not thread.is_alive()


def talk(port: int, *pieces: bytes) -> bytes:
    """What comes back until the server closes. Nothing more is sent once it answers: that would reset the line."""
    with socket.create_connection(("127.0.0.1", port), LIMIT_S) as line:
        answer = b""
        for piece in pieces:
            if select.select([line], [], [], 0.01)[0]:
                break
            line.sendall(piece)
        while got := line.recv(65536):
            answer += got
        return answer


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param([GOOD + b"x: "] + [b"a" * 4096] * 200, id="one endless value"),
        pytest.param([GOOD] + [b"x: y\r\n" * 1000] * 200, id="endless headers"),
        pytest.param([b"GET /"] + [b"a" * 4096] * 200, id="an endless address"),
        pytest.param([GOOD] + [b"a" * 4096] * 200, id="an endless name"),
    ],
)
def test_a_head_without_end_is_refused(port: int, bomb: list[bytes]) -> None:
    assert talk(port, *bomb) == heads.TOO_LARGE


@pytest.mark.parametrize("pieces", [[], [b"G"], [GOOD], [GOOD, b"x: "]])
def test_who_does_not_go_on_is_closed(port: int, pieces: list[bytes]) -> None:
    assert talk(port, *pieces) == b""


def test_large_heads_within_the_bound_and_large_bodies_pass(port: int) -> None:
    body = b"b" * 500_000
    head = GOOD.replace(b"GET", b"POST") + b"x: " + b"a" * 60_000 + b"\r\nconnection: close\r\n"
    answer = talk(port, head, b"content-length: %d\r\n\r\n" % len(body), body[:7], body[7:])
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(body)


def test_each_request_of_a_connection_has_its_own_bound(port: int) -> None:
    one = GOOD + b"x: " + b"a" * 40_000 + b"\r\n"
    answer = talk(port, (one + b"\r\n") * 4 + one + b"connection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200") == 5


def test_a_long_answer_is_not_cut_by_the_heads_clock(port: int) -> None:
    """The body of the request comes later than any head may."""
    head = GOOD.replace(b"GET", b"POST") + b"connection: close\r\ncontent-length: 4\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), LIMIT_S) as line:
        line.sendall(head)
        line.settimeout(2 * heads.HEAD_S)
        with pytest.raises(TimeoutError):  # still open after twice the time
            line.recv(1)
        line.settimeout(LIMIT_S)
        line.sendall(b"late")
        assert line.recv(65536).startswith(b"HTTP/1.1 200")
