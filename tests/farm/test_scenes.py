"""Scenes on a whole farm: each ends as its story says, and what it changed is put back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from demo.scenes.play import SCENES
from tests.farm.harness import ROOT, Farm

pytestmark = pytest.mark.farm


def scene(farm: Farm, story: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "demo.scenes", story, "--home", str(farm.home)]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


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
    playing = scene(farm, story)
    said, _ = playing.communicate(timeout=500)
    assert playing.returncode == 0, said
    assert SCENES[story][1] in said
    assert in_force(farm) == before
    assert faults(farm) == []


@pytest.mark.timeout(300)
def test_a_scene_that_is_interrupted_puts_back_what_it_changed(farm: Farm) -> None:
    before = in_force(farm)
    playing = scene(farm, "S05")
    deadline = time.monotonic() + 120
    while in_force(farm) == before and time.monotonic() < deadline:
        time.sleep(0.2)
    assert in_force(farm) != before
    os.kill(playing.pid, signal.SIGINT)
    said, _ = playing.communicate(timeout=150)
    assert playing.returncode == 0, said
    assert in_force(farm) == before
