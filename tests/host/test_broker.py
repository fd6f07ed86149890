"""Redis goes away while a message is being acknowledged: the worker hears the next one all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery

from tests.host.harness import ROOT, RedisServer, end, redis_server, until
from workers.app import make

#: A worker as ours are, whose task `last` ends the server before it is acknowledged.
WORKER = """
import os, signal
from pathlib import Path
from workers.app import make

app = make("deaf", "deaf", "deaf:")

@app.task(name="heard")
def heard(word):
    with Path(os.environ["HEARD"]).open("a") as file:
        file.write(word + "\\n")

@app.task(name="last", acks_late=True)
def last(pid):
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
        pass
"""


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with redis_server([]) as running:
        yield running


@pytest.fixture
def control(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Celery:
    monkeypatch.setenv("REDIS_URL", server.url())
    return make("deaf", "deaf", "deaf:")


@pytest.fixture
def told(server: RedisServer, tmp_path: Path) -> Iterator[Path]:
    """What the running worker heard, a word a line."""
    (tmp_path / "deaf_worker.py").write_text(WORKER)
    told = tmp_path / "heard"
    told.touch()
    env = os.environ | {"REDIS_URL": server.url(), "HEARD": str(told), "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    words = "celery -A deaf_worker worker -P threads -c 1 --without-gossip --without-mingle --without-heartbeat"
    process = subprocess.Popen([sys.executable, "-m", *words.split()], cwd=tmp_path, env=env)
    yield told
    end(process)


def test_a_message_whose_acknowledgement_failed_does_not_make_the_worker_deaf(
    server: RedisServer, control: Celery, told: Path
) -> None:
    control.send_task("heard", ["before"])
    until(lambda: told.read_text() == "before\n", "the worker hears")
    assert server.process is not None
    control.send_task("last", [server.process.pid])
    server.process.wait(60)
    server.start()
    control.send_task("heard", ["after"])
    until(lambda: told.read_text() == "before\nafter\n", "it hears again")
