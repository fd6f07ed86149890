"""Each fault that concerns an engine, switched on from outside."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack

import pytest

from tests.simulator.harness import HELLO, RESERVED_MIB, TOTAL_MIB, Engine, SimHost, until
from workers.simulator.faults import clear_faults, list_faults, set_fault

EMPTY_MIB = TOTAL_MIB - RESERVED_MIB
DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."


def load_s(engine: Engine) -> float:
    line = next(one for one in engine.ready().log.splitlines() if "Loading weights took" in one)
    return float(line.split()[-2])


def test_a_load_can_be_delayed_by_seconds_or_a_factor(host: SimHost) -> None:
    set_fault(host.directory, "load_delay", "replica:1", seconds=1.5)
    set_fault(host.directory, "load_delay", "replica:2", factor=15)
    assert load_s(host.start(replica="1")) >= 1.5
    assert load_s(host.start(replica="2", cards="GPU-1")) >= 1.0
    assert load_s(host.start(replica="3", cards="GPU-1")) < 1.0


def test_a_delay_that_ends_lets_the_load_go_on(host: SimHost) -> None:
    set_fault(host.directory, "load_delay", seconds=600)
    engine = host.start()
    until(lambda: "0% Completed" in engine.log, "loading slowly")
    clear_faults(host.directory)
    engine.ready()


@pytest.mark.parametrize("at_pct", [0, 40, 100])
def test_a_start_can_crash_at_a_percentage(at_pct: int) -> None:
    host = SimHost(bandwidth_mib_s=15_000.0)
    try:
        set_fault(host.directory, "load_crash", "service:tiny", at_pct=at_pct, text="SafetensorError: invalid header")
        engine = host.start()
        assert engine.exit_code() == 1
        assert "SafetensorError: invalid header" in engine.log
        assert ("25% Completed" in engine.log) == (at_pct > 0)
        assert ("100% Completed" in engine.log) == (at_pct == 100)
        until(lambda: host.free_mib() == EMPTY_MIB, "memory back")
    finally:
        host.close()


def test_a_crash_meant_once_lets_the_next_start_through(host: SimHost) -> None:
    set_fault(host.directory, "load_crash", at_pct=0, once=True)
    assert host.start().exit_code() == 1
    assert list_faults(host.directory) == []
    host.start().ready()


def test_a_crash_before_the_first_byte(host: SimHost) -> None:
    engine = host.start().ready()
    set_fault(host.directory, "crash", "replica:7", after_tokens=0)
    answer = engine.chat()
    assert (answer.status_code, answer.json()["error"]["message"]) == (500, DEAD)
    assert engine.get("/health").status_code == 503
    assert engine.exit_code() == 0  # as the real one: the code does not tell a crash from a stop


def test_a_crash_after_tokens_reaches_streams_as_an_event(host: SimHost) -> None:
    engine = host.start().ready()
    set_fault(host.directory, "crash", after_tokens=5)
    with ExitStack() as stack:
        lines = list(engine.stream(stack))
    assert len([one for one in lines if '"finish_reason":null' in one]) == 1 + 5
    assert json.loads(lines[-2]) == {
        "error": {"message": DEAD, "type": "InternalServerError", "param": None, "code": 500}
    }
    assert lines[-1] == "[DONE]"
    assert engine.exit_code() == 0
    until(lambda: host.free_mib() == EMPTY_MIB, "memory back")


def test_a_crash_can_take_the_whole_process(host: SimHost) -> None:
    engine = host.start().ready()
    set_fault(host.directory, "crash", after_tokens=3, how="kill", once=True)
    with ExitStack() as stack, pytest.raises(Exception, match="(peer closed|Connection reset|disconnected)"):
        list(engine.stream(stack))
    assert engine.exit_code() == -9
    assert list_faults(host.directory) == []


def test_a_hung_engine_accepts_is_healthy_and_never_answers_until_it_recovers(host: SimHost) -> None:
    engine = host.start().ready()
    with ExitStack() as stack:
        lines = engine.stream(stack, tokens=30)
        next(lines)
        set_fault(host.directory, "hang", "service:tiny")
        until(lambda: engine.info()["running"] == 1 and _still(engine), "no token comes")
        assert engine.get("/health").status_code == 200
        second = engine.stream(stack, tokens=3)
        assert engine.metric("vllm:num_requests_waiting") == 1.0
        clear_faults(host.directory)
        assert list(lines)[-1] == list(second)[-1] == "[DONE]"


def _still(engine: Engine) -> bool:
    before = engine.metric("vllm:generation_tokens_total")
    time.sleep(0.1)
    return engine.metric("vllm:generation_tokens_total") == before


def test_a_slow_engine(host: SimHost) -> None:
    engine = host.start().ready()
    quick = engine.chat(max_tokens=20, ignore_eos=True).elapsed
    set_fault(host.directory, "slow", factor=5)
    until(lambda: engine.chat(max_tokens=20, ignore_eos=True).elapsed > 2 * quick, "slower")


def test_memory_grows_with_every_hundred_calls(host: SimHost) -> None:
    engine = host.start().ready()
    before = host.free_mib()
    set_fault(host.directory, "growth", "service:tiny", mib=250)
    for _ in range(200):
        engine.chat(max_tokens=1)
    assert before - host.free_mib() == 500
    engine.post("/sleep")
    engine.post("/wake_up")
    assert before - host.free_mib() == 500


def test_growth_into_a_full_card_kills_it(host: SimHost) -> None:
    engine = host.start().ready()
    set_fault(host.directory, "growth", mib=90_000)
    for _ in range(100):
        engine.chat(max_tokens=1)
    assert engine.exit_code() == 0
    assert "CUDA out of memory" in engine.log


def test_ports_health_models_and_completions_can_become_good_one_by_one(host: SimHost) -> None:
    set_fault(host.directory, "readiness", listen_s=0.5, health_s=2.5, models_s=4.5, serve_s=6.5)
    engine = host.start()
    seen: list[tuple[int, bool, int]] = []
    until(engine.connects, "listening")
    until(lambda: seen.append(_signs(engine)) or seen[-1] == (200, True, 200), "all good")
    order = [seen.index(next(one for one in seen if good(one))) for good in (_healthy, _listed, _serving)]
    assert order == sorted(order)
    assert seen[0][0] == 503
    assert (200, False, 503) in seen
    assert (200, True, 503) in seen


def _signs(engine: Engine) -> tuple[int, bool, int]:
    models = engine.get("/v1/models")
    listed = models.status_code == 200 and bool(models.json()["data"])
    answer = engine.post("/v1/chat/completions", {"messages": HELLO, "max_tokens": 1})
    return engine.get("/health").status_code, listed, answer.status_code


def _healthy(signs: tuple[int, bool, int]) -> bool:
    return signs[0] == 200


def _listed(signs: tuple[int, bool, int]) -> bool:
    return signs[1]


def _serving(signs: tuple[int, bool, int]) -> bool:
    return signs[2] == 200


def test_memory_left_behind_grows_round_by_round(host: SimHost) -> None:
    set_fault(host.directory, "leave", "service:tiny", mib=300)
    for number in (1, 2):
        engine = host.start().ready()
        engine.process.kill()
        engine.exit_code()
        until(lambda n=number: host.free_mib() == EMPTY_MIB - 300 * n, "what stays behind")
