"""Scenes on a whole farm: each ends as its story says, and what it changed is put back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from demo.scenes.play import SCENES
from tests.farm.harness import ROOT, Farm, wait_for

pytestmark = pytest.mark.farm


@contextmanager
def scene(farm: Farm, story: str) -> Iterator[subprocess.Popen[str]]:
    """Being played; when the test fails it does not go on into the next one."""
    words = [sys.executable, "-m", "demo.scenes", story, "--home", str(farm.home)]
    playing = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield playing
    finally:
        if playing.poll() is None:
            playing.kill()
            playing.communicate()


def in_force(farm: Farm) -> list[tuple[object, ...]]:
    return farm.rows("select layer, subject, name, value from policies_policyvalue order by 1, 2, 3")


def faults(farm: Farm) -> list[object]:
    found: list[object] = []
    for path in farm.home.glob("hosts/*/sim/faults.json"):
        found += json.loads(path.read_text())
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("story", ["S08", "S04", "S02"])
def test_a_scene_goes_as_its_story_says_and_leaves_nothing_behind(farm: Farm, story: str) -> None:
    before = in_force(farm)
    with scene(farm, story) as playing:
        said, _ = playing.communicate(timeout=500)
    assert playing.returncode == 0, said
    assert SCENES[story][1] in said
    assert in_force(farm) == before
    assert faults(farm) == []


@pytest.mark.timeout(300)
def test_a_scene_that_is_interrupted_puts_back_what_it_changed(farm: Farm) -> None:
    before = in_force(farm)
    with scene(farm, "S05") as playing:
        wait_for("it has changed something", lambda: in_force(farm) != before, 120)
        playing.send_signal(signal.SIGINT)
        said, _ = playing.communicate(timeout=150)
    assert playing.returncode == 0, said
    assert in_force(farm) == before
