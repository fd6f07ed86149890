"""SIGTERM at each point of a life, with and without a shutdown time-out."""

from __future__ import annotations

import signal
from contextlib import ExitStack

import httpx
import pytest

from tests.simulator.harness import RESERVED_MIB, TOTAL_MIB, SimHost, until

EMPTY_MIB = TOTAL_MIB - RESERVED_MIB


def test_an_idle_engine_ends_in_about_two_seconds(host: SimHost) -> None:
    engine = host.start().ready()
    engine.terminate()
    assert engine.exit_code() == 0
    until(lambda: host.free_mib() == EMPTY_MIB, "memory back")
    assert "[shutdown] API server: stopping engine client mode=abort timeout=0s" in engine.log


def test_without_a_time_out_callers_hang_and_the_process_waits_for_them(host: SimHost) -> None:
    engine = host.start().ready()
    probe = engine.new_client()
    with ExitStack() as stack:
        lines = engine.stream(stack)
        next(lines)
        probe.get("/health")
        engine.terminate()
        until(lambda: probe.get("/health").status_code == 503, "health bad while the socket is still open")
        until(lambda: host.free_mib() == EMPTY_MIB, "memory back although the process lives")
        until(lambda: not engine.connects(), "socket closed")
        assert "Waiting for connections to close." in until(lambda: _with(engine.log, "Waiting for"), "lingering")
        assert engine.process.poll() is None
        engine.terminate()  # a second signal changes nothing
        assert engine.process.poll() is None
    assert engine.exit_code() == 0


def _with(text: str, part: str) -> str:
    return text if part in text else ""


def test_a_time_out_drains_what_runs_and_what_waits(host: SimHost) -> None:
    engine = host.start("--shutdown-timeout", "30", "--max-num-seqs", "1").ready()
    with ExitStack() as stack:
        with host.slow():
            lines = [engine.stream(stack, tokens=50) for _ in range(2)]
            next(lines[0])
            engine.terminate()
            refused = until(lambda: _refused(engine.new_client()), "new requests refused")
            assert refused.status_code == 500
            assert refused.json()["error"]["message"] == "cannot schedule new futures after shutdown"
            assert engine.get("/health").status_code == 200
        ends = [list(line) for line in lines]
    assert all('"finish_reason":"length"' in end[-2] and end[-1] == "[DONE]" for end in ends)
    assert engine.exit_code() == 0


def _refused(client: httpx.Client) -> httpx.Response | None:
    body = {"messages": [{"role": "user", "content": "在吗"}], "max_tokens": 1}
    answer = client.post("/v1/chat/completions", json=body)
    return answer if answer.status_code != 200 else None


def test_when_the_time_out_runs_out_callers_hang(host: SimHost) -> None:
    engine = host.start("--shutdown-timeout", "1").ready()
    with ExitStack() as stack:
        next(engine.stream(stack, tokens=3000))
        engine.terminate()
        until(lambda: "force killing remaining processes" in engine.log, "killed at the bound")
        until(lambda: not engine.connects(), "socket closed")
        assert engine.process.poll() is None
    assert engine.exit_code() == 0


def test_the_first_signal_while_loading_is_lost_and_the_second_ends_it() -> None:
    host = SimHost(bandwidth_mib_s=2000.0)
    try:
        engine = host.start()
        until(lambda: "Starting to load model" in engine.log, "loading")
        engine.terminate()
        until(lambda: engine.log.count("Loading safetensors") >= 4, "going on")
        assert engine.process.poll() is None
        engine.terminate()
        assert engine.exit_code() == 130
        until(lambda: host.free_mib() == EMPTY_MIB, "memory back")
    finally:
        host.close()


def test_one_lost_signal_does_not_end_it_later() -> None:
    host = SimHost(bandwidth_mib_s=20_000.0)
    try:
        engine = host.start()
        until(lambda: "Starting to load model" in engine.log, "loading")
        engine.terminate()
        assert engine.ready().chat().status_code == 200
        engine.terminate()
        assert engine.exit_code() == 0
    finally:
        host.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGABRT])
def test_a_killed_engine_gives_its_memory_back(host: SimHost, how: signal.Signals) -> None:
    engine = host.start().ready()
    engine.process.send_signal(how)
    assert engine.exit_code() == -how
    until(lambda: host.free_mib() == EMPTY_MIB, "memory back")
