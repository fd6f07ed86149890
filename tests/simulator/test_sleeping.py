"""Sleep and wake: what callers see, what the card shows, and how each can fail."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import httpx
import pytest

from tests.simulator.harness import HELLO, RESERVED_MIB, TOTAL_MIB, Engine, SimHost, until
from workers.simulator.faults import clear_faults, set_fault

EMPTY_MIB = TOTAL_MIB - RESERVED_MIB
AWAKE_MIB = 15_000 + 600 + 4096
RESIDUE_MIB = 1300


@pytest.fixture
def engine(host: SimHost) -> Engine:
    return host.start().ready()


def in_background(call: object, *arguments: object) -> tuple[threading.Thread, list[httpx.Response]]:
    answers: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: answers.append(call(*arguments)))  # type: ignore[operator]
    thread.start()
    return thread, answers


def asleep(engine: Engine) -> bool:
    sleeping: bool = engine.get("/is_sleeping").json()["is_sleeping"]
    return sleeping


def test_sleep_gives_memory_back_to_a_residue_and_wake_takes_it_again(host: SimHost, engine: Engine) -> None:
    assert EMPTY_MIB - host.free_mib() == AWAKE_MIB
    assert engine.post("/sleep?level=1").json() == {"status": "sleeping", "level": 1}
    assert EMPTY_MIB - host.free_mib() == RESIDUE_MIB
    assert asleep(engine)
    assert engine.get("/health").status_code == 200
    assert engine.metric("vllm:engine_sleep_state", 'sleep_state="weights_offloaded"') == 1.0
    assert "Sleep mode freed 17.96 GiB memory, 1.27 GiB memory is still in use." in engine.log
    assert engine.post("/wake_up").json() == {"status": "awake", "tags": None}
    assert EMPTY_MIB - host.free_mib() == AWAKE_MIB
    assert not asleep(engine)
    assert engine.chat().status_code == 200
    assert engine.metric("vllm:sleep_mode_operation_duration_seconds_count", 'operation="wake"') == 1.0


def test_waking_takes_the_copy_from_host_memory() -> None:
    host = SimHost(host_to_card_mib_s=30_000.0)
    try:
        engine = host.start(weights_mib=30_000, share="0.5").ready()
        engine.post("/sleep")
        took = engine.post("/wake_up").elapsed.total_seconds()
        assert 1.2 <= took < 6.0
    finally:
        host.close()


def test_requests_while_asleep_are_held_silently_and_answered_after_waking(engine: Engine) -> None:
    engine.post("/sleep")
    thread, answers = in_background(engine.new_client().post, "/v1/chat/completions")
    thread.join()
    assert answers[0].status_code == 400  # even a sleeper reads what it is asked
    body = {"messages": HELLO, "max_tokens": 3}
    client = engine.new_client()
    thread, answers = in_background(lambda: client.post("/v1/chat/completions", json=body))
    until(lambda: engine.info()["held"] == 1, "held")
    assert engine.metric("vllm:num_requests_waiting") == 0.0
    assert engine.metric("vllm:num_requests_running") == 0.0
    assert not answers
    engine.post("/wake_up")
    thread.join()
    assert answers[0].status_code == 200


def test_abort_ends_those_in_flight_with_what_they_have(engine: Engine) -> None:
    with ExitStack() as stack:
        lines = engine.stream(stack)
        next(lines)
        thread, answers = in_background(engine.new_client().post, "/sleep?level=1&mode=abort")
        rest = list(lines)
        thread.join()
    assert '"finish_reason":"abort"' in rest[-2]
    assert rest[-1] == "[DONE]"
    assert answers[0].status_code == 200
    assert engine.metric("vllm:request_success_total", 'finished_reason="abort"') == 1.0


def test_wait_finishes_those_in_flight_first(engine: Engine) -> None:
    with ExitStack() as stack:
        lines = engine.stream(stack, tokens=60)
        next(lines)
        thread, answers = in_background(engine.new_client().post, "/sleep?mode=wait")
        rest = list(lines)
        thread.join()
    assert '"finish_reason":"length"' in rest[-2]
    assert answers[0].json()["status"] == "sleeping"


def test_keep_freezes_streams_until_waking(engine: Engine) -> None:
    with ExitStack() as stack:
        lines = engine.stream(stack, tokens=60)
        next(lines)
        assert engine.post("/sleep?mode=keep").status_code == 200
        made = engine.metric("vllm:generation_tokens_total")
        assert made < 60
        assert engine.metric("vllm:generation_tokens_total") == made
        engine.post("/wake_up")
        assert list(lines)[-1] == "[DONE]"
    assert engine.metric("vllm:generation_tokens_total") == 60.0


def test_waking_without_room_fails_and_works_when_there_is(host: SimHost, engine: Engine) -> None:
    engine.post("/sleep")
    set_fault(host.directory, "foreign_memory", "card:GPU-0", mib=70_000)
    answer = engine.post("/wake_up")
    assert answer.status_code == 500
    assert "out of memory" in answer.json()["error"]["message"]
    assert asleep(engine)
    assert engine.info()["held_mib"] == RESIDUE_MIB
    clear_faults(host.directory)
    assert engine.post("/wake_up").status_code == 200


def test_a_neighbour_that_grows_in_that_moment_makes_sleep_fail() -> None:
    host = SimHost(host_to_card_mib_s=10_000.0)
    try:
        engine = host.start(weights_mib=15_000).ready()
        thread, answers = in_background(engine.new_client().post, "/sleep")
        until(lambda: engine.info()["paused"], "copying")
        set_fault(host.directory, "foreign_memory", "card:GPU-0", mib=50_000)
        thread.join()
        assert answers[0].status_code == 500
        assert "Memory usage increased after sleeping." in answers[0].text
        assert engine.info()["held_mib"] == RESIDUE_MIB
        clear_faults(host.directory)
        assert engine.post("/wake_up").status_code == 200
    finally:
        host.close()


def test_tags_wake_in_parts(host: SimHost, engine: Engine) -> None:
    assert engine.post("/sleep?level=2").json()["level"] == 2
    assert engine.metric("vllm:engine_sleep_state", 'sleep_state="discard_all"') == 1.0
    assert engine.post("/wake_up?tags=weights").json() == {"status": "sleeping", "tags": ["weights"]}
    assert EMPTY_MIB - host.free_mib() == RESIDUE_MIB + 15_000
    assert asleep(engine)
    assert engine.post("/wake_up?tags=kv_cache").json() == {"status": "awake", "tags": ["kv_cache"]}
    assert EMPTY_MIB - host.free_mib() == AWAKE_MIB


def test_level_0_only_stops_scheduling(host: SimHost, engine: Engine) -> None:
    assert engine.post("/sleep?level=0").json() == {"status": "sleeping", "level": 0}
    assert EMPTY_MIB - host.free_mib() == AWAKE_MIB
    assert asleep(engine)
    assert engine.post("/wake_up").json()["status"] == "awake"
    assert engine.chat().status_code == 200


def test_pause_and_resume(engine: Engine) -> None:
    assert engine.post("/pause?mode=keep").json() == {"status": "paused"}
    assert engine.get("/is_paused").json() == {"is_paused": True}
    assert asleep(engine)
    assert engine.post("/resume").json() == {"status": "resumed"}
    assert engine.chat().status_code == 200


def test_calls_that_cannot_be(host: SimHost, engine: Engine) -> None:
    wrong = engine.post("/sleep?level=3")
    assert wrong.status_code == 400
    assert wrong.json()["error"] == {
        "message": "1 validation error:\n  {'type': 'less_than_equal', 'loc': 'query.level', 'msg': "
        "'Input should be less than or equal to 2', 'input': '3', 'ctx': {'le': 2}}",
        "type": "Bad Request",
        "param": "query.level",
        "code": 400,
    }
    assert engine.post("/sleep?mode=later").status_code == 400
    assert engine.post("/wake_up").json()["status"] == "awake"  # of an engine that is awake: nothing happens


def test_without_its_flag_an_engine_cannot_sleep() -> None:
    host = SimHost()
    try:
        engine = host.start()
        engine.close()
        arguments = [
            *("--model", "m", "--served-model-name", "tiny", "--kv-cache-memory-bytes", "4G"),
            *("--gpu-memory-utilization", "0.3"),
        ]
        variables = {"GONGKA_SIM_DIR": str(host.directory), "GONGKA_SIM_CARDS": "GPU-1", "VLLM_SERVER_DEV_MODE": "1"}
        bare = Engine(host.directory, 9, arguments, variables | {"GONGKA_SIM_WEIGHTS_MIB": "1000"})
        host.engines.append(bare)
        answer = bare.ready().post("/sleep")
        assert answer.status_code == 500
        assert "--enable-sleep-mode" in answer.json()["error"]["message"]
    finally:
        host.close()
