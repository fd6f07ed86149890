"""Who runs, who waits, who is refused; and that a caller who leaves frees his place."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import ExitStack

import httpx

from tests.simulator.harness import HELLO, Engine, SimHost, until
from workers.simulator.shapes import BUSY


def counts(engine: Engine) -> tuple[int, int]:
    info = engine.info()
    return info["running"], info["waiting"]


def test_the_rest_waits_in_order_and_is_seen_waiting(host: SimHost) -> None:
    engine = host.start("--max-num-seqs", "2").ready()
    with ExitStack() as stack:
        with host.slow():
            lines = [engine.stream(stack, tokens=60 + number) for number in range(4)]
            until(lambda: counts(engine) == (2, 2), "two run, two wait")
            assert engine.metric("vllm:num_requests_waiting") == 2.0
            assert engine.metric("vllm:num_requests_waiting_by_reason", 'reason="capacity"') == 2.0
            assert engine.metric("vllm:kv_cache_usage_perc") > 0.0
        ends = [list(line)[-1] for line in lines]
    assert ends == ["[DONE]"] * 4
    assert counts(engine) == (0, 0)
    assert engine.metric("vllm:kv_cache_usage_perc") == 0.0


def test_a_full_queue_refuses_at_once(host: SimHost) -> None:
    engine = host.start("--max-num-seqs", "1", "--max-num-queued-reqs", "2").ready()
    with ExitStack() as stack:
        for _ in range(2):
            engine.stream(stack)
        until(lambda: counts(engine) == (1, 1), "full")
        until(lambda: engine.chat(stream=True).status_code == 503, "the burst is over")
        for stream in (False, True):
            answer = engine.chat(stream=stream)
            assert answer.status_code == 503
            assert answer.json()["error"] == {
                "message": BUSY,
                "type": "Service Unavailable",
                "param": None,
                "code": 503,
            }
        assert engine.metric("vllm:admission_rejections_total", 'reason="max_num_queued_reqs"') >= 3.0
        assert engine.get("/health").status_code == 200


def test_in_a_burst_a_stream_may_learn_it_after_its_200(host: SimHost) -> None:
    engine = host.start("--max-num-seqs", "1", "--max-num-queued-reqs", "1").ready()
    body = json.dumps({"model": "tiny", "messages": HELLO, "max_tokens": 400, "stream": True}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: e\r\ncontent-type: application/json\r\n"
    raw = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    busy, seen = b'data: {"error": {"message": "The engine is currently busy', b""
    for _ in range(20):  # who of a burst is how far when the queue fills is chance
        seen = b"".join(_burst(engine, raw, 12))
        assert b"HTTP/1.1 200 OK" in seen
        if busy in seen:
            break
    assert busy in seen
    assert b'"code": 503}}\n\ndata: [DONE]\n\n' in seen


def _burst(engine: Engine, raw: bytes, count: int) -> list[bytes]:
    """First bytes that `count` clients get who write at the same moment."""
    clients = [socket.socket(socket.AF_UNIX) for _ in range(count)]
    for client in clients:
        client.connect(str(engine.socket))
    for client in clients:
        client.sendall(raw)
    answers = []
    for client in clients:
        client.settimeout(20)
        data = client.recv(4096)
        while b"\r\n\r\n" not in data or (b"200 OK" in data and b"data:" not in data):
            data += client.recv(4096)
        answers.append(data)
        client.close()
    return answers


def test_kv_tokens_bound_who_runs(host: SimHost) -> None:
    # 256 MiB hold 4096 tokens: one long prompt leaves no room for a second.
    engine = host.start(kv="256M").ready()
    long = [{"role": "user", "content": "长" * 2500}]
    with ExitStack() as stack:
        for _ in range(2):
            engine.stream(stack, tokens=300, messages=long)
        until(lambda: counts(engine) == (1, 1), "the second waits for memory though a place is free")
        assert engine.metric("vllm:kv_cache_usage_perc") > 0.6


def test_growing_answers_preempt_the_newest_and_all_end_whole(host: SimHost) -> None:
    engine = host.start(kv="256M").ready()
    messages = [{"role": "user", "content": "长" * 1990}]
    with ExitStack() as stack:
        with host.slow():
            lines = [engine.stream(stack, tokens=120, messages=messages) for _ in range(2)]
            until(lambda: sum(counts(engine)) == 2, "both are there")
        ends = [list(line) for line in lines]
    assert all(len(end) == 122 and end[-1] == "[DONE]" for end in ends)  # role, 120 tokens, [DONE]
    assert engine.metric("vllm:num_preemptions_total") >= 1.0


def test_a_caller_who_leaves_frees_his_place_and_is_not_counted(host: SimHost) -> None:
    engine = host.start("--max-num-seqs", "1").ready()
    with ExitStack() as stack:
        next(engine.stream(stack))
        engine.stream(stack)
        until(lambda: counts(engine) == (1, 1), "one runs, one waits")
    until(lambda: counts(engine) == (0, 0), "both gone", timeout_s=2.0)
    assert engine.metric("vllm:request_success_total", 'finished_reason="abort"') == 0.0
    assert engine.metric("vllm:kv_cache_usage_perc") == 0.0


def test_a_plain_caller_who_leaves_frees_his_place_too(host: SimHost) -> None:
    engine = host.start().ready()
    client = engine.new_client()
    body = {"messages": HELLO, "max_tokens": 3000, "ignore_eos": True}
    caller = threading.Thread(target=_call_and_lose, args=(client, body))
    caller.start()
    until(lambda: counts(engine) == (1, 0), "running")
    # The caller's own limit runs out and it hangs up.
    until(lambda: counts(engine) == (0, 0), "gone")
    caller.join()


def _call_and_lose(client: httpx.Client, body: dict[str, object]) -> None:
    try:
        client.post("/v1/chat/completions", json=body, timeout=0.7)
    except httpx.ReadTimeout:
        return
    raise AssertionError("the answer came too soon")


def test_pipelined_requests_are_answered_in_turn(host: SimHost) -> None:
    engine = host.start().ready()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(engine.socket))
        client.sendall(
            b"GET /version HTTP/1.1\r\nhost: e\r\n\r\nGET /nope HTTP/1.1\r\nhost: e\r\nconnection: close\r\n\r\n"
        )
        client.settimeout(20)
        data = b""
        while part := client.recv(4096):
            data += part
    assert data.index(b"200 OK") < data.index(b"404 Not Found")
