"""The stories' benchmark: the same traffic for the same seed; a farm without sharing looks like the field's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from benchmarks import stories
from benchmarks.stories_farm import BEGAN, HOUR_S, calls, growths, habits, weekly, world
from benchmarks.stories_peers import everything_resident, resident
from scheduler.simulation import Measures, Trace, simulate


def test_the_same_seed_makes_the_same_calls_in_order() -> None:
    once, again = (list(islice(calls(habits(2), 2, 2), 20_000)) for _ in range(2))
    assert once == again
    assert once == sorted(once, key=lambda c: c.at)
    assert once != list(islice(calls(habits(3), 2, 3), 20_000))
    assert growths(habits(2), 5, 2) == growths(habits(2), 5, 2)


def test_with_everything_resident_memory_is_full_and_chips_are_idle() -> None:
    found = habits(1)
    farm = resident(world([h.service for h in found]), {h.service.name: weekly(h) for h in found})
    trace = Trace([c for c in calls(found, 1, 1) if c.at < BEGAN + 11 * HOUR_S], [])
    m = simulate(
        farm, stories.UNWATCHED, trace, BEGAN + 11 * HOUR_S, began=BEGAN, planner=everything_resident
    )  # fmt: skip
    assert m.models_a_card == 1.0
    assert m.resident_share is not None
    assert m.resident_share >= 0.85
    assert m.utilisation is not None
    assert 0.05 <= m.utilisation <= 0.22
    assert m.wakes == 0


def test_a_short_run_has_every_row_and_says_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stories.main(["--quick", "--days", "1", "--json", str(tmp_path / "out.json")]) == 0
    said = json.loads((tmp_path / "out.json").read_text())
    assert "seed 1, interference x 1: after" in capsys.readouterr().out
    named = {row["measure"] for row in said["rows"]}
    assert {line.measure for line in (*stories.LINES, *stories.INTERFERENCE)} <= named
    assert all(row["met"] is not None or any(row["measure"] in note for note in said["notes"]) for row in said["rows"])


def test_each_run_is_told_as_soon_as_it_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[int] = []

    def runs() -> Iterator[stories.Run]:
        for seed in (1, 2):
            said.append(len(capsys.readouterr().out.splitlines()))
            yield stories.Run(seed, 1.0, Measures(), Measures())

    assert [run.seed for run in stories.told(runs())] == [1, 2]
    assert said == [0, 1 + len(stories.LINES) + len(stories.INTERFERENCE)]
