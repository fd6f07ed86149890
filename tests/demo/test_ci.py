"""`.ci/run` with a small Makefile in place of ours: what it says, how it ends, and that it ends what it started."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PASSES = "@echo '===== 12 passed in 1.20s ====='"
FAILS = "@echo '1 failed, 11 passed in 1.20s'; exit 1"


def project(path: Path, test: str, check: str) -> Path:
    (path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", path / ".ci" / "run")
    (path / "Makefile").write_text(f"test:\n\t{test}\ndemo-check:\n\t{check}\n")
    return path / ".ci" / "run"


@pytest.mark.parametrize(
    ("test", "check", "status"), [(PASSES, "@true", 0), (FAILS, "@true", 1), (PASSES, "@exit 1", 1)]
)
def test_it_fails_when_one_of_them_fails(tmp_path: Path, test: str, check: str, status: int) -> None:
    done = subprocess.run([project(tmp_path, test, check)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    closing = done.stdout.split("== pytest\n")[1]
    assert ("12 passed" in closing) is (test == PASSES)
    assert ("== make demo-check" in done.stdout) is (test == PASSES)


def test_it_ends_what_it_started_when_it_is_ended(tmp_path: Path) -> None:
    script = project(tmp_path, "@sleep 600 & echo started; wait", "@true")
    process = subprocess.Popen(
        [script], stdout=subprocess.PIPE, text=True, env={**os.environ, "CI_MARK": str(tmp_path)}
    )
    assert process.stdout is not None
    while "started" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    process.stdout.close()
    deadline = time.monotonic() + 20
    while sleepers(tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def sleepers(mark: Path) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.name() == "sleep" and process.environ().get("CI_MARK") == str(mark):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
