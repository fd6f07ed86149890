"""How the check judges what it saw: each claim fails when its figure is missing or too large."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from demo.check import Result, held_as_told
from demo.check_board import Board
from demo.check_calls import Single, Stream, note, single_replicas
from demo.ready import missing_of, wait

LINE = ": gongka loading stage=weights eta_s=12.5 position=1"


def seen(*lines: tuple[float, str]) -> Stream:
    stream = Stream()
    for at_s, line in lines:
        note(stream, line, at_s)
    return stream


def test_a_stream_is_read_line_by_line() -> None:
    stream = seen(
        (0.1, ": gongka loading stage=queued"),
        (2.1, LINE),
        (4.1, ": gongka loading stage=weights eta_s=2"),
        (13.0, 'data: {"choices": [{"delta": {"content": "好"}}]}'),
        (13.2, "data: [DONE]"),
    )
    assert (stream.first_progress_s, stream.first_eta_s, stream.answer_s) == (0.1, 14.6, 13.0)
    assert len(stream.lines) == 3
    assert stream.done


def test_an_error_event_is_no_answer() -> None:
    stream = seen((0.1, LINE), (5.0, 'data: {"error": {"code": "no_capacity"}}'), (5.0, "data: [DONE]"))
    assert stream.answer_s is None
    assert not held_as_told(stream)


@pytest.mark.parametrize(
    ("answer_s", "holds"), [(12.6, True), (15.5, True), (15.7, False), (9.7, True), (9.5, False), (7.9, False)]
)
def test_a_hold_is_as_long_as_told_and_long_enough_to_show(answer_s: float, holds: bool) -> None:
    assert held_as_told(Stream(first_eta_s=12.6, answer_s=answer_s)) is holds


def test_a_short_load_does_not_count_however_well_told() -> None:
    assert not held_as_told(Stream(first_eta_s=5.0, answer_s=5.0))


def test_figures_over_their_limit_or_missing_are_failures() -> None:
    result = Result()
    result.put("ready_s", 12.3456)
    result.put("warm_ms", 20.5)
    result.put("board_update_s", None)
    result.put("leftover_processes", 0)
    result.put("stop_s", 99)  # told, not limited
    assert json.loads(result.line()) == {
        "ready_s": 12.346,
        "warm_ms": 20.5,
        "board_update_s": None,
        "leftover_processes": 0,
        "stop_s": 99,
        "failed": ["warm_ms", "board_update_s"],
    }


def board_message(*services: int) -> dict[str, object]:
    rows = [[100 + service, service, "starting", 0, None] for service in services]
    return {"t": "board", "cards": {"1": {"r": rows}}}


def test_the_board_counts_from_the_call_to_the_first_sight(closed_socket: object) -> None:
    board = Board(closed_socket)  # type: ignore[arg-type]
    board.take(board_message(1), 100.0)
    board.take(board_message(1, 2), 101.5)
    board.take(board_message(1, 2), 109.0)
    assert board.update_s(2, since=101.0, limit_s=0) == 0.5
    assert board.update_s(1, since=101.0, limit_s=0) is None  # it stood there before the call
    assert board.update_s(3, since=101.0, limit_s=0) is None


@pytest.fixture
def closed_socket() -> object:
    return object()


def test_what_is_missing_is_named() -> None:
    routes = {"hosts": {"gpu-01": {}}, "services": {"a": {"state": "ready"}, "b": {"state": "loading"}}}
    assert missing_of(routes, ["gpu-01"], ["a"]) == []
    assert missing_of(routes, ["gpu-01", "gpu-02"], ["a", "b", "c"]) == ["host gpu-02", "service b", "service c"]
    assert missing_of({}, [], []) == ["control"]


def test_waiting_tends_the_farm_and_ends_at_its_limit() -> None:
    answers = [["web"], ["web"], []]
    tended: list[int] = []
    assert wait(lambda: answers.pop(0), lambda: tended.append(1), 30.0) == []
    assert len(tended) == 2
    assert wait(lambda: ["web"], lambda: None, 0.0) == ["web"]


def test_warm_calls_go_to_a_service_with_one_known_replica(tmp_path: Path) -> None:
    hosts = tmp_path
    (hosts / "gpu-01").mkdir()
    (hosts / "gpu-01" / "door.json").write_text('{"7": "/run/7.sock"}')
    common = {"state": "ready", "task": "chat", "engine_model": "m", "tenant": "t"}
    one: dict[str, Any] = {**common, "replicas": [{"id": 7, "host": "gpu-01"}]}
    routes = {
        "services": {
            "one": one,
            "two": one | {"replicas": [{"id": 8, "host": "gpu-01"}, {"id": 9, "host": "gpu-01"}]},
            "cold": one | {"state": "cold", "replicas": []},
            "embedding": one | {"task": "embedding"},
        }
    }
    assert list(single_replicas(routes, hosts)) == [Single("one", "t", "m", Path("/run/7.sock"))]
