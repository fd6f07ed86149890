"""The door as a process: who passes, whole streams, hang-ups, odd requests, its death."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from contextlib import closing

import httpx
import pytest

from tests.host.harness import SPEC, TOKEN, HostHarness, Stream, until

CHAT = "/v1/chat/completions"
ENDLESS = {"model": SPEC.served_name, "prompt": "x", "max_tokens": 100_000, "stream": True, "ignore_eos": True}
FORBIDDEN = [("POST", "/sleep"), ("POST", "/wake_up"), ("GET", "/metrics"), ("POST", "/v1/load_lora_adapter")]


@pytest.fixture
def served(host: HostHarness) -> HostHarness:
    """A host of its own, for a test that breaks something."""
    host.serve()
    return host


def raw(host: HostHarness, request: bytes, until_closed: bool = False) -> bytes:
    """Sends bytes as they are; returns the answer's first bytes, or all of them."""
    with closing(socket.create_connection(("127.0.0.1", host.door_port), timeout=30)) as line:
        line.sendall(request)
        answer = line.recv(65536)
        while until_closed and (more := line.recv(65536)):
            answer += more
        return answer


def head(path: str, length: int = 0, token: str = TOKEN, method: str = "POST", more: str = "") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: door", f"authorization: Bearer {token}", f"content-length: {length}"]
    return ("\r\n".join(lines) + f"\r\n{more}\r\n").encode()


def test_it_refuses_before_any_engine_byte(standing: HostHarness) -> None:
    with httpx.Client(base_url=standing.door, headers=standing.bearer, trust_env=False, timeout=30) as client:
        wrong = {"Authorization": "Bearer nope"}
        assert client.post(f"/r/1{CHAT}", json={}, headers=wrong).status_code == 401
        assert client.get("/counts", headers=wrong).status_code == 401
        unknown = client.post(f"/r/999{CHAT}", json={})
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_replica")
        for method, path in FORBIDDEN:
            refused = client.request(method, f"/r/1{path}")
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden_path"), path
        assert client.get("/r/1/health").status_code == 200
        assert client.get("/r/1/v1/models").json()["data"][0]["id"] == SPEC.served_name
    assert standing.counts() == {}


def test_an_engine_that_is_gone_is_502(served: HostHarness) -> None:
    served.kill_agent()  # so that nobody tidies the map
    for process in served.processes(1):
        process.kill()
        process.wait(10)
    answer = served.call(1)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "engine_unreachable")
    assert served.counts() == {}


def test_one_connection_carries_many_calls(standing: HostHarness) -> None:
    body = {"model": SPEC.served_name, "messages": [{"role": "user", "content": "你好"}], "max_tokens": 2}
    with httpx.Client(base_url=standing.door, headers=standing.bearer, trust_env=False, timeout=30) as client:
        ports = set()
        for _ in range(5):
            answer = client.post(f"/r/1{CHAT}", json=body)
            assert answer.status_code == 200
            ports.add(answer.extensions["network_stream"].get_extra_info("client_addr")[1])
            assert client.post(f"/r/2{CHAT}", json=body).status_code == 404
    assert len(ports) == 1


def test_the_engine_never_sees_the_token(standing: HostHarness) -> None:
    engine = standing.engine_folder(1) / "sock"
    moved = engine.with_name("moved")
    seen = b""
    with closing(socket.socket(socket.AF_UNIX)) as trap:
        engine.rename(moved)
        trap.bind(str(engine))
        trap.listen()
        with closing(socket.create_connection(("127.0.0.1", standing.door_port), timeout=30)) as line:
            line.sendall(head(f"/r/1{CHAT}", 2, more="x-request-id: abc\r\ncookie: c=1\r\n") + b"{}")
            got, _ = until(lambda: trap.accept())
            while not seen.endswith(b"{}"):
                seen += got.recv(65536)
            got.close()
        engine.unlink()
        moved.rename(engine)
    assert TOKEN.encode() not in seen
    assert b"x-request-id: abc\r\n" in seen
    assert seen.startswith(f"POST {CHAT} HTTP/1.1\r\n".encode())


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"NONSENSE\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"400"),
        (b"POST /r/1/v1/completions HTTP/1.1\r\nhost: d\r\ntransfer-encoding: chunked\r\n\r\n", b"411"),
        (b"POST /r/1/v1/completions HTTP/1.1\r\nhost: d\r\ncontent-length: 99999999999\r\n\r\n", b"413"),
        (b"GET /counts HTTP/1.1\r\nx: " + b"y" * 70_000, b"431"),
        (b"POST /x HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab", b"400"),
    ],
)
def test_odd_requests_are_answered_and_closed(standing: HostHarness, request_bytes: bytes, status: bytes) -> None:
    answer = raw(standing, request_bytes, until_closed=True)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"connection: close" in answer


def test_a_request_in_single_bytes_is_one_request(standing: HostHarness) -> None:
    body = json.dumps({"model": SPEC.served_name, "prompt": "你好", "max_tokens": 1}).encode()
    whole = head("/r/1/v1/completions", len(body), more="content-type: application/json\r\n") + body
    with closing(socket.create_connection(("127.0.0.1", standing.door_port), timeout=30)) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for position in range(len(whole)):
            line.sendall(whole[position : position + 1])
        assert line.recv(65536).startswith(b"HTTP/1.1 200")


def test_pipelining_ends_the_connection(standing: HostHarness) -> None:
    one = head("/r/1/health", method="GET")
    assert b"HTTP/1.1 200" not in raw(standing, one + one, until_closed=True)


def test_a_hang_up_frees_the_engine(standing: HostHarness) -> None:
    body = json.dumps(
        {"model": SPEC.served_name, "prompt": "你好", "max_tokens": 100_000, "stream": True, "ignore_eos": True}
    ).encode()
    with closing(socket.create_connection(("127.0.0.1", standing.door_port), timeout=30)) as line:
        line.sendall(head("/r/1/v1/completions", len(body), more="content-type: application/json\r\n") + body)
        assert line.recv(100)
        assert standing.counts() == {"1": 1}
        until(lambda: (one := standing.see(1)) and one.running == 1, "the engine runs it")
        until(lambda: standing.see(1).door_in_flight == 1, "and the report counts it")  # type: ignore[union-attr]
    until(lambda: standing.counts() == {}, "the door counts zero")
    until(lambda: standing.see(1).running == 0, "the engine has freed it")  # type: ignore[union-attr]
    until(lambda: standing.see(1).door_in_flight == 0, "the report too")  # type: ignore[union-attr]


def test_a_killed_engine_breaks_its_streams_and_no_count_stays(served: HostHarness) -> None:
    streams = [Stream(served, 1, max_tokens=100_000) for _ in range(5)]
    until(lambda: all(len(one.lines) > 2 for one in streams), "all flow")
    for process in served.processes(1):
        process.kill()
    for one in streams:
        one.finish()
        assert one.error is not None, "a broken answer must not look like a whole one"
    assert served.counts() == {}


def test_200_streams_at_once_end_whole(standing: HostHarness) -> None:
    async def one(client: httpx.AsyncClient) -> bool:
        body = {"model": SPEC.served_name, "prompt": "你好", "max_tokens": 20, "stream": True}
        async with client.stream("POST", "/r/1/v1/completions", json=body) as answer:
            lines = [line async for line in answer.aiter_lines() if line]
        return answer.status_code == 200 and lines[-1] == "data: [DONE]"

    async def all_of_them() -> list[bool]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            base_url=standing.door, headers=standing.bearer, timeout=120, limits=limits, trust_env=False
        ) as client:
            return list(await asyncio.gather(*(one(client) for _ in range(200))))

    assert all(asyncio.run(all_of_them()))
    assert standing.counts() == {}


def test_a_slow_reader_slows_its_own_engine_only(standing: HostHarness) -> None:
    """The door holds no more than its buffers of what a reader does not take."""
    door = standing.processes(door=True)[0]
    body = json.dumps(
        {"model": SPEC.served_name, "prompt": "x", "max_tokens": 100_000, "stream": True, "ignore_eos": True}
    ).encode()
    with closing(socket.socket()) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", standing.door_port))
        line.sendall(head("/r/1/v1/completions", len(body), more="content-type: application/json\r\n") + body)
        assert line.recv(10)
        assert standing.call(1).status_code == 200
        assert door.memory_info().rss < 80 * 1024 * 1024
    until(lambda: standing.counts() == {}, "the door counts zero")


def test_a_killed_door_is_back_within_two_seconds(served: HostHarness) -> None:
    old = served.processes(door=True)[0]
    os.kill(old.pid, signal.SIGKILL)
    began = time.monotonic()

    def answers() -> bool:
        try:
            return served.call(1).status_code == 200
        except httpx.HTTPError:
            return False

    until(answers, "another door answers")
    took_s = time.monotonic() - began
    assert [one.pid for one in served.processes(door=True)] != [old.pid]
    assert took_s < 2.0 or os.getloadavg()[0] > 2 * (os.cpu_count() or 1), f"{took_s:.1f} s"
    until(lambda: served.control.report().door_ok, "and the report says so")  # type: ignore[union-attr]
