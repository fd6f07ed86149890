"""Memo, files, turns, metrics text, door rules, samples."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from workers.host import door_rules, files
from workers.host import memo as states
from workers.host.door_rules import FORBIDDEN, UNKNOWN_REPLICA, Passage, Rules
from workers.host.engine import Gauges, read_gauges
from workers.host.limits import DEFAULT
from workers.host.memo import Memo
from workers.host.settings import Settings
from workers.host.telemetry import Telemetry
from workers.host.turns import Turns


def test_a_memo_survives(tmp_path: Path) -> None:
    memo = Memo(attempt=4, state=states.ASLEEP, cards=["a", "b"], wake_at=1.5, fault="x", fatal=True)
    states.save(tmp_path / "7", memo)
    assert states.load(tmp_path / "7") == memo
    assert [one.name for one in (tmp_path / "7").iterdir()] == ["memo.json"]


@pytest.mark.parametrize("content", [b"", b"{", b'{"attempt": "x"}', b"[]"])
def test_a_torn_memo_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "memo.json").write_bytes(content)
    assert states.load(tmp_path) == Memo()


def test_a_log_is_cut_back_while_it_is_written(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"a" * 1000 + b"end")
        assert files.cut_back(log, 100, 10)
        writer.write(b"next")
    assert log.read_bytes() == b"next"
    assert (tmp_path / "log.1").read_text() == "aaaaaaaend"
    assert not files.cut_back(log, 100, 10)
    assert not files.cut_back(tmp_path / "none", 100, 10)


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    handle = files.lock(tmp_path / "lock", 0)
    with pytest.raises(BlockingIOError):
        files.lock(tmp_path / "lock", 0)
    os.close(handle)
    os.close(files.lock(tmp_path / "lock", 0))


def test_turns_are_all_or_nothing() -> None:
    turns = Turns()
    assert turns.take(1, ["a"])
    assert turns.take(1, ["a"])
    assert not turns.take(2, ["a", "b"])
    assert turns.take(3, ["b"])
    assert turns.busy(2, ["a"])
    assert not turns.busy(1, ["a"])
    turns.free(1)
    assert turns.take(2, ["a"])


def test_it_reads_only_the_gauges_it_needs() -> None:
    text = (
        "# HELP vllm:num_requests_running x\n"
        'vllm:num_requests_running{engine="0",model_name="m"} 3.0\n'
        'vllm:num_requests_running{engine="1",model_name="m"} 1.0\n'
        'vllm:num_requests_waiting{engine="0",model_name="m"} 2.0\n'
        'vllm:num_requests_waiting_by_reason{reason="capacity"} 9.0\n'
        'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.125\n'
        'vllm:prompt_tokens_total{engine="0",model_name="m"} 100.0\n'
        'vllm:generation_tokens_total{engine="0",model_name="m"} 11.0\n'
    )
    assert read_gauges(text) == Gauges(running=4, waiting=2, kv_used_pct=12.5, tokens=111)
    assert read_gauges("") == Gauges(None, None, None)


@pytest.fixture
def rules(tmp_path: Path) -> Rules:
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "door.json").write_text(json.dumps({"12": "/s/12"}))
    return Rules(tmp_path / "token", tmp_path / "door.json")


def test_the_token_is_the_whole_token(rules: Rules) -> None:
    assert rules.knows(b"Bearer secret")
    for wrong in (b"", b"secret", b"Bearer ", b"Bearer secre", b"Bearer secrets", b"Basic secret"):
        assert not rules.knows(wrong)


def test_without_a_token_nobody_passes(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("")
    rules = Rules(tmp_path / "token", tmp_path / "door.json")
    assert not rules.knows(b"Bearer ")
    assert not Rules(tmp_path / "none", tmp_path / "door.json").knows(b"Bearer x")


@pytest.mark.parametrize("path", sorted(door_rules.ALLOWED))
def test_inference_passes(rules: Rules, path: tuple[bytes, bytes]) -> None:
    method, rest = path
    assert rules.passage(method, b"/r/12" + rest) == Passage(12, rest, "/s/12", method == b"POST")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        (b"POST", b"/r/12/sleep"),
        (b"POST", b"/r/12/wake_up"),
        (b"GET", b"/r/12/is_sleeping"),
        (b"GET", b"/r/12/metrics"),
        (b"POST", b"/r/12/invocations"),
        (b"POST", b"/r/12/v1/load_lora_adapter"),
        (b"POST", b"/r/12/collective_rpc"),
        (b"GET", b"/r/12/v1/chat/completions"),
        (b"POST", b"/r/12/health"),
        (b"POST", b"/r/12/v1/chat/completions/"),
        (b"POST", b"/r/12/v1//chat/completions"),
        (b"POST", b"/r/12/v1/../sleep"),
        (b"POST", b"/r/12/v1/chat/completions/../../../sleep"),
        (b"POST", b"/r/12/%73leep"),
        (b"POST", b"/r/-1/v1/completions"),
        (b"POST", b"/r/12v1/completions"),
        (b"POST", b"/v1/completions"),
        (b"POST", b"http://x/r/12/v1/completions"),
    ],
)
def test_nothing_else_does(rules: Rules, method: bytes, path: bytes) -> None:
    assert rules.passage(method, path) == FORBIDDEN


def test_the_map_is_followed(rules: Rules, tmp_path: Path) -> None:
    assert rules.passage(b"GET", b"/r/13/health") == UNKNOWN_REPLICA
    files.replace(tmp_path / "door.json", b'{"13": "/s/13"}')
    assert isinstance(rules.passage(b"GET", b"/r/13/health"), Passage)
    assert rules.passage(b"GET", b"/r/12/health") == UNKNOWN_REPLICA
    (tmp_path / "door.json").unlink()
    assert rules.passage(b"GET", b"/r/13/health") == UNKNOWN_REPLICA


CARD = {"uuid": "c", "index": 0, "name": "n", "total_mib": 100, "reserved_mib": 1}


def line(processes: list[dict[str, object]]) -> bytes:
    return json.dumps({"at": 5.0, "cards": [CARD | {"free_mib": 7, "processes": processes}]}).encode()


def test_measured_memory_is_the_sum_over_its_processes(tmp_path: Path) -> None:
    telemetry = Telemetry(Settings("f", "h", tmp_path, "127.0.0.1", 1, tmp_path), DEFAULT)
    assert telemetry.measured_mib({1}) is None
    telemetry.take(line([{"pid": 1, "used_mib": 30}, {"pid": 2, "used_mib": 40}, {"pid": 3, "used_mib": None}]))
    assert telemetry.measured_mib({1, 2}) == 70
    assert telemetry.measured_mib({1, 3}) is None
    assert telemetry.measured_mib({9}) is None
    assert telemetry.at == 5.0


def test_what_cannot_be_measured_is_unknown(tmp_path: Path) -> None:
    telemetry = Telemetry(Settings("f", "h", tmp_path, "127.0.0.1", 1, tmp_path), DEFAULT)
    assert telemetry.totals_mib() is None
    telemetry.take(line([{"pid": 1, "used_mib": 30}]))
    telemetry.take(b'{"at": 6.0, "fault": "NVML: Driver Not Loaded"}')
    card = telemetry.cards()[0]
    assert (card.free_mib, card.processes, card.note) == (None, [], "NVML: Driver Not Loaded")
    assert telemetry.at is None
    assert telemetry.measured_mib({1}) is None
    assert telemetry.totals_mib() == {"c": 100}
    telemetry.take(b"garbage")
    assert telemetry.at is None
