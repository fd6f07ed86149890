"""The plugin that turns a skipped test into a failed run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SKIPPED = "import pytest\n@pytest.mark.skip(reason='later')\ndef test_it_waits():\n    pass\n"
MODULE = "import pytest\npytest.skip('not here', allow_module_level=True)\n"
PASSES = "def test_it_passes():\n    pass\n"


@pytest.mark.parametrize(("code", "status"), [(SKIPPED, 1), (MODULE, 1), (PASSES, 0)])
@pytest.mark.parametrize("more", [[], ["-n", "1"]])
def test_it_fails_a_run_with_skips(tmp_path: Path, code: str, status: int, more: list[str]) -> None:
    (tmp_path / "test_it.py").write_text(code)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    argv = [sys.executable, "-m", "pytest", "-p", "tests.no_skips", "-p", "no:django", "-p", "no:cacheprovider", *more]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(
        [*argv, "--rootdir", str(tmp_path), "-c", str(tmp_path / "pytest.ini"), str(tmp_path)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout
    assert ("skipped, so not passed" in done.stdout) is (status == 1)
