"""The preview's benchmark: what a site records of the stories' traffic comes back as the same calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import preview
from benchmarks.stories_farm import calls, habits


@pytest.fixture(scope="module")
def day():
    return preview.recorded(1, 1)


def test_what_is_brought_back_has_every_call_of_each_service(day) -> None:
    scene, bunched = day
    real = list(calls(habits(1), 1, 1))
    for name in scene.days:
        assert sum(c.calls for c in scene.calls if c.service == name) == sum(c.service == name for c in real)
    assert len(scene.calls) < len(real), "the busiest hours are bunched"
    assert 0 < bunched < len(real)


def test_and_they_take_as_long(day) -> None:
    scene, _ = day
    real = sum(c.prefill_s + c.decode_s for c in calls(habits(1), 1, 1))
    assert sum(c.prefill_s + c.decode_s for c in scene.calls) == pytest.approx(real, rel=0.001)


def test_no_bunch_lasts_longer_than_a_minute_nor_is_longer_than_it_must(day) -> None:
    scene, _ = day
    assert all(c.prefill_s + c.decode_s <= 60.0 + 1e-6 for c in scene.calls if c.calls > 1)


def test_a_short_run_says_how_long_it_took(tmp_path: Path) -> None:
    assert preview.main(["--quick", "--json", str(tmp_path / "out.json")]) == 0
    said = json.loads((tmp_path / "out.json").read_text())
    assert [row["unit"] for row in said["rows"]] == ["s"]
    assert "bunched" in said["notes"][0]
