"""`make test` with stand-ins for what it calls: all parts in one lane or two, a failure of each told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
#: The farm's part ends only once the rest has begun; the part that is named in FAILS ends badly.
STAND_IN = """#!/bin/sh
case "$*" in
  *compileall*) part=other ;;
  *"-m farm"*) part=farm; echo "farm begins"; until [ -e "$MARKS/rest" ]; do sleep 0.02; done; echo "farm ends" ;;
  *"not farm"*) part=rest; echo "rest begins"; touch "$MARKS/rest"; echo "rest ends" ;;
  *tests/scheduler*) part=core; echo "core ends" ;;
  *on_postgres*) part=postgres; echo "postgres ends" ;;
  *) part=other ;;
esac
[ "$part" != "$FAILS" ]
"""


def make_test(folder: Path, lanes: int, fails: str = "") -> subprocess.CompletedProcess[str]:
    for name in ("python", "ruff", "mypy", "lint-imports"):
        (folder / name).write_text(STAND_IN)
        (folder / name).chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "test", f"LANES={lanes}", f"BIN={folder}", f"PYTHON={folder / 'python'}"],
        cwd=ROOT,
        env=env | {"MARKS": str(folder), "FAILS": fails},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("lanes", [1, 2])
def test_every_part_runs_and_is_printed_whole(tmp_path: Path, lanes: int) -> None:
    done = make_test(tmp_path, lanes)
    assert done.returncode == 0, done.stdout + done.stderr
    words = [line for line in done.stdout.splitlines() if line.startswith(("core ", "farm ", "postgres ", "rest "))]
    assert sorted(words) == ["core ends", "farm begins", "farm ends", "postgres ends", "rest begins", "rest ends"]
    for part in ("farm", "rest"):
        assert words.index(f"{part} ends") == words.index(f"{part} begins") + 1


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("part", ["farm", "rest", "core", "postgres"])
def test_a_part_that_fails_fails_it_all(tmp_path: Path, part: str, lanes: int) -> None:
    (tmp_path / "rest").touch()
    done = make_test(tmp_path, lanes, fails=part)
    assert done.returncode != 0
    assert f"test-{part}" in done.stderr
