"""The planner's benchmark: rows come one by one, and the dearer a sample the fewer of them, but never none."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from benchmarks import frame, planner


def rows_of(said: list[str]) -> Iterator[frame.Row]:
    """Each row notes what was printed before the next was asked for."""
    for i in range(3):
        said.append(f"asked {i}")
        yield frame.at_most(f"row {i}", float(i), "ms", 1)


def test_a_row_is_printed_before_the_next_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("builtins.print", lambda line, **_: said.append(line.split("  ")[0]))
    found = frame.shown(rows_of(said))
    assert said == ["asked 0", "row 0", "asked 1", "row 1", "asked 2", "row 2"]
    assert [row.met for row in found] == [True, True, False]


def test_rows_that_were_printed_are_not_printed_again(capsys: pytest.CaptureFixture[str]) -> None:
    asked = frame.arguments("planner", "", ["--strict"])
    found = frame.shown(rows_of([]))
    assert frame.finish("planner", found, ["a note"], asked, printed=True) == 1
    out = capsys.readouterr().out
    assert out.count("row 2") == 1
    assert "MISSED" in out
    assert "· a note" in out


def test_what_is_quick_is_sampled_often() -> None:
    assert planner.sampled(lambda: 1, 7, 60.0) == [1] * 7


def test_what_is_dear_is_sampled_at_least_some_times() -> None:
    spent = iter(range(100))
    assert planner.sampled(lambda: next(spent), 100, 0.0) == list(range(planner.AT_LEAST))


def test_samples_end_with_their_time() -> None:
    began = time.monotonic()
    count = len(planner.sampled(lambda: time.thread_time(), 10**9, 0.05))
    assert planner.AT_LEAST <= count < 10**9
    assert time.monotonic() - began >= 0.05


def test_a_row_says_how_many_samples_it_rests_on() -> None:
    row = planner.p99_row("plan", [1.0, 2.0, 90.0], 50)
    assert (row.ours, row.met, row.peers) == (90.0, False, {"p50": 2.0, "samples": 3})
    tick = planner.tick_row("whole tick", {"state": "steady", "ticks": [[10.0, 20.0], [12.0, 400.0]]})
    assert (tick.measure, tick.ours) == ("whole tick, steady", 12.0)
    assert tick.peers == {"p50": 12.0, "wall p99": 400.0, "samples": 2}
