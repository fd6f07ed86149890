"""The list of scenes names what is there; a command without a farm says so."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from demo import scenes
from demo.scenes.play import SCENES, main

FOLDER = Path(scenes.__file__).parent


def test_each_file_of_a_story_is_in_the_list_once() -> None:
    files = sorted(path.stem for path in FOLDER.glob("s[0-9]*.py"))
    assert sorted(module for module, _ in SCENES.values()) == files
    assert all(module.startswith(story.lower()) for story, (module, _) in SCENES.items())


@pytest.mark.parametrize("story", SCENES)
def test_a_scene_plays_and_says_which_story_it_is(story: str) -> None:
    module = import_module(f"demo.scenes.{SCENES[story][0]}")
    assert callable(module.play)
    assert module.__doc__.startswith(f"{story}: ")


def test_without_a_name_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert [line[:3] for line in capsys.readouterr().out.splitlines()] == list(SCENES)


def test_an_unknown_story_and_a_farm_that_does_not_run_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["S99"]) == 2
    assert main(["s02", "--home", str(tmp_path)]) == 2
    assert "make demo" in capsys.readouterr().out
