"""The data folder: what it keeps, and one sentence for each thing that is wrong before a process starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from demo import preflight
from demo.home import Home
from demo.problem import Problem


def test_what_is_kept_stays_the_same_and_private(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.make()
    assert home.kept("secret", 32) == home.kept("secret", 32)
    assert (home.path / "secret").stat().st_mode & 0o777 == 0o600
    assert home.path.stat().st_mode & 0o777 == 0o700


def test_a_torn_file_of_an_interrupted_first_run_heals(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.make()
    (home.path / "farm.id").write_text("")
    assert home.kept("farm.id", 8)


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Problem, match="cannot write"):
        Home(tmp_path / "file" / "home").make()


def test_the_lock_names_who_holds_it_and_is_free_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.make()
    with home.lock(), pytest.raises(Problem, match=str(os.getpid())):
        home.lock()
    home.lock().close()


def test_a_long_log_is_moved_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demo.home.LOG_KEPT_BYTES", 10)
    home = Home(tmp_path)
    home.make()
    for _ in range(3):
        with home.log("web") as file:
            file.write(b"twenty bytes of log.")
    assert (home.logs / "web.log").read_bytes() == (home.logs / "web.log.1").read_bytes()


def test_too_little_room_is_told(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="not enough disk space"):
        preflight.check_room(tmp_path, room_mib=10**9)
    preflight.check_room(tmp_path, room_mib=1)


def test_a_path_too_long_for_sockets_is_told() -> None:
    with pytest.raises(Problem, match="too long"):
        preflight.check_length(Path("/" + "x" * 90))
    preflight.check_length(Path("/srv/gongka/var/demo"))


def test_a_port_in_use_ends_the_command_with_both_languages_and_status_2() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="gk-") as home,  # a short path: sockets lie below it
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "demo.run", "--home", home, "--port-web", str(port)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert f"端口 {port} 已被" in done.stderr
    assert "--port-web" in done.stderr
    assert "Traceback" not in done.stderr


def test_free_ports_are_different_and_free() -> None:
    ports = preflight.free_ports(5)
    assert len(set(ports)) == 5
    assert all(preflight.port_free(port) for port in ports)
