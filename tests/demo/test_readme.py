"""Nothing in the READMEs that does not work: paths exist, make targets exist, the worked example runs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
READMES = ("README.md", "README.zh-CN.md")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def snippets(name: str) -> list[str]:
    return [textwrap.dedent(code) for code in re.findall(r"```python\n(.*?)```", text(name), re.DOTALL)]


@pytest.mark.parametrize("name", READMES)
def test_every_folder_and_file_named_is_there(name: str) -> None:
    named = re.findall(r"`((?:[\w-]+/)+[\w.-]*|[\w-]+\.(?:yml|md|py))`", text(name))
    for path in named:
        inside = [ROOT / path, *(ROOT / folder / path for folder in ("console", "scheduler", "tests"))]
        assert path.startswith("var/") or any(p.exists() for p in inside), path


@pytest.mark.parametrize("name", READMES)
def test_every_make_target_named_is_there(name: str) -> None:
    targets = set(re.findall(r"make ([a-z][a-z-]+)", text(name)))
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert targets - {"one"} <= known


@pytest.mark.parametrize("name", READMES)
def test_every_option_named_is_there(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "demo.run", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for option in re.findall(r"(--(?:port|speed|home)[\w-]*)", text(name)):
        assert option in done.stdout


def test_both_languages_show_the_same_example() -> None:
    assert snippets(READMES[0]) == snippets(READMES[1])


def test_the_worked_example_works(tmp_path: Path) -> None:
    for folder in ("scheduler", "tests/scheduler"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests" / "__init__.py").write_text("")
    number, score, line = snippets("README.md")
    insert(tmp_path / "scheduler" / "policy.py", r"^    score_local: .*\n", textwrap.indent(number, "    "), after=True)
    insert(tmp_path / "scheduler" / "scores.py", r"^#: Field of the policy", score + "\n\n", after=False)
    insert(
        tmp_path / "scheduler" / "scores.py", r'^    "score_local": local,\n', textwrap.indent(line, "    "), after=True
    )
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:django", "-p", "no:cacheprovider"]
    (tmp_path / "test_it.py").write_text(
        "from scheduler.policy import Policy\nfrom scheduler.scores import SCORES\n\n\n"
        "def test_it():\n    assert 'score_quiet' in SCORES\n    assert Policy().score_quiet == 1.0\n"
    )
    selection = ["test_it.py", "tests/scheduler/test_placement.py"]
    done = subprocess.run([*argv, *selection], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def insert(path: Path, anchor: str, code: str, *, after: bool) -> None:
    whole = path.read_text(encoding="utf-8")
    found = re.search(anchor, whole, re.MULTILINE)
    assert found, f"{anchor} is not in {path.name}"
    at = found.end() if after else found.start()
    path.write_text(whole[:at] + code + whole[at:], encoding="utf-8")
