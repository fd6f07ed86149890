"""The whole demo, once: the supervisor killed, nothing left, and a second run in the same folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo import marks, preflight
from demo.home import Home
from demo.run import READY_FILE
from tests.ports import free_ports

pytestmark = [pytest.mark.farm, pytest.mark.timeout(420)]
START_S, GONE_S = 150.0, 15.0


class Demo:
    """A home outside the tree: socket paths must stay short, and pytest's own folders are deep."""

    def __init__(self) -> None:
        self.home = Home(Path(tempfile.mkdtemp(prefix="gk-farm-")))
        self.home.make()
        self.farm = self.home.kept("farm.id", 8)
        self.web, self.gateway, self.doors, *_ = free_ports(6)  # a door on each of the four hosts
        self.supervisor: subprocess.Popen[bytes] | None = None

    def start(self) -> dict[str, Any]:
        (self.home.path / READY_FILE).unlink(missing_ok=True)
        argv = [sys.executable, "-m", "demo.run", "--home", str(self.home.path), "--speed", "0"]
        ports = ["--port-web", str(self.web), "--port-gateway", str(self.gateway), "--port-doors", str(self.doors)]
        env = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")}
        with self.home.log("screen") as screen:
            self.supervisor = subprocess.Popen([*argv, *ports], env=env, stderr=screen)
        self.until(lambda: bool(self.home.read_json(READY_FILE)), START_S)
        ready: dict[str, Any] = self.home.read_json(READY_FILE)
        assert ready["missing"] == []
        return ready

    def until(self, look: Callable[[], bool], limit_s: float) -> float:
        began = time.monotonic()
        while not look():
            assert time.monotonic() - began < limit_s, f"waited {limit_s} s in vain; {self.screen()}"
            assert self.supervisor is None or self.supervisor.poll() in (None, -9), self.screen()
            time.sleep(0.2)
        return time.monotonic() - began

    def screen(self) -> str:
        return (self.home.logs / "screen.log").read_text()[-2000:]

    def close(self) -> None:
        if self.supervisor is not None:
            self.supervisor.kill()
            self.supervisor.wait()
        left = marks.end(self.farm, 1.0)
        shutil.rmtree(self.home.path, ignore_errors=True)
        assert left == []


@pytest.fixture
def demo() -> Iterator[Demo]:
    made = Demo()
    yield made
    made.close()


def test_it_leaves_nothing_after_its_own_death_and_runs_again(demo: Demo) -> None:
    """kill -9 of each other kind of process: tests/farm/test_kills.py."""
    ready = demo.start()
    assert calls(demo, ready)

    assert demo.supervisor is not None
    demo.supervisor.kill()
    demo.supervisor.wait()
    demo.supervisor = None
    demo.until(lambda: not marks.marked(demo.farm), GONE_S)
    assert preflight.port_free(demo.web)
    assert preflight.port_free(demo.gateway)

    again = demo.start()
    assert again["services"] == ready["services"]  # the data of the first run
    assert calls(demo, again)
    demo.supervisor.send_signal(signal.SIGTERM)  # type: ignore[attr-defined]
    assert demo.supervisor.wait(GONE_S) == 0  # type: ignore[attr-defined]
    assert marks.marked(demo.farm) == []


def calls(demo: Demo, ready: dict[str, Any]) -> bool:
    """A call to a service that is kept ready is answered."""
    key = json.loads((demo.home.path / "demo-keys.json").read_text())["energy"]
    body = {"model": "hotline-qa", "messages": [{"role": "user", "content": "你好"}], "max_tokens": 1}
    headers = {"Authorization": f"Bearer {key}"}
    url = f"{ready['gateway']}/v1/chat/completions"
    return httpx.post(url, json=body, headers=headers, timeout=30, trust_env=False).status_code == 200
