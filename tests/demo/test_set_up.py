"""Set-up: says what is wrong, heals what was interrupted, does nothing twice, and writes no registry address."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from demo import set_up


def test_it_says_which_python_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_up, "OLDEST", (9, 0))
    with pytest.raises(set_up.Failed, match=r"PYTHON=python3\.11"):
        set_up.check_python()


def test_an_interrupted_environment_is_made_anew_and_a_whole_one_is_kept(tmp_path: Path) -> None:
    half = tmp_path / ".venv" / "bin"
    half.mkdir(parents=True)
    (half / "python").symlink_to(sys.executable)  # as an interrupted first run leaves it: no pip, no pyvenv.cfg
    (half / "python3").write_text("torn")
    venv = set_up.make_venv(tmp_path)
    python = venv / "bin" / "python"
    assert subprocess.run([str(python), "-m", "pip", "--version"], check=False, capture_output=True).returncode == 0
    (venv / "kept").write_text("")
    set_up.make_venv(tmp_path)
    assert (venv / "kept").exists()


def test_stamps_are_written_after_the_work_and_follow_the_locks(tmp_path: Path) -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        (tmp_path / name).write_text("")
    venv = tmp_path / ".venv"
    bin_ = venv / "bin"
    bin_.mkdir(parents=True)
    calls = tmp_path / "calls"
    for name, status in (("uv", 0), ("python", 0)):
        (bin_ / name).write_text(f"#!/bin/sh\necho {name} $* >> {calls}\nexit {status}\n")
        (bin_ / name).chmod(0o755)

    def installs() -> int:
        return calls.read_text().count("uv pip install") if calls.exists() else 0

    set_up.install(tmp_path, venv, "runtime")
    set_up.install(tmp_path, venv, "runtime")
    assert installs() == 1
    set_up.install(tmp_path, venv, "dev")
    set_up.install(tmp_path, venv, "runtime")  # the development lock contains it
    assert installs() == 2
    (tmp_path / "requirements.lock").write_text("# changed\n")
    set_up.install(tmp_path, venv, "runtime")
    assert installs() == 3


def test_a_failed_install_leaves_no_stamp_and_tells_why(tmp_path: Path) -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        (tmp_path / name).write_text("")
    bin_ = tmp_path / ".venv" / "bin"
    bin_.mkdir(parents=True)
    for name in ("uv", "python"):
        (bin_ / name).write_text("#!/bin/sh\necho 'Failed to fetch: dns error'\nexit 1\n")
        (bin_ / name).chmod(0o755)
    with pytest.raises(set_up.Failed, match="check the network"):
        set_up.install(tmp_path, tmp_path / ".venv", "runtime")
    assert not list((tmp_path / ".venv").glob(".stamps/*"))


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("OSError: [Errno 28] No space left on device", "磁盘空间不足"),
        ("npm error code ENOTFOUND", "网络"),
        ("Temporary failure in name resolution, could not resolve host", "网络"),
        ("error: something else", "失败"),
    ],
)
def test_it_tells_the_likely_cause(output: str, said: str) -> None:
    assert said in set_up.cause("安装", output)


def test_too_little_room_is_told_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(set_up.ROOM_MIB, "runtime", 10**9)
    with pytest.raises(set_up.Failed, match="not enough disk space"):
        set_up.make_venv(tmp_path)
    assert not (tmp_path / ".venv").exists()


def test_pips_own_registry_is_uvs_too_unless_the_person_said_otherwise() -> None:
    listed = "global.index-url='https://mirror.example/simple'\nglobal.find-links='/wheels'\nlist.format='columns'\n"
    env = set_up.translate(listed, {"UV_FIND_LINKS": "/mine"})
    assert env["UV_DEFAULT_INDEX"] == "https://mirror.example/simple"
    assert env["UV_FIND_LINKS"] == "/mine"
    assert "list" not in " ".join(env).lower().replace("uv_find_links", "")


def test_several_indexes_on_several_lines_become_one_list() -> None:
    env = set_up.translate(r"global.extra-index-url='\nhttps://a.example/simple\nhttps://b.example/simple'", {})
    assert env["UV_INDEX"] == "https://a.example/simple https://b.example/simple"


def test_nothing_committed_names_a_registry() -> None:
    locks = [set_up.ROOT / name for name in ("requirements.lock", "requirements-dev.lock", "package-lock.json")]
    for lock in locks:
        text = lock.read_text()
        assert "resolved" not in text or lock.suffix != ".json"
        assert "index-url" not in text
        assert "file://" not in text
