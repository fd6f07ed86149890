"""The supervisor with stand-in processes: restarts, an ordered stop, and nothing left however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from demo import marks
from demo.home import Home

T = TypeVar("T")
SLEEPER = "import time\nwhile True: time.sleep(0.1)"
# An engine as an agent starts it: in a session of its own, so no signal to the agent's group reaches it.
AGENT = f"""
import subprocess, sys
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)
{SLEEPER}"""
STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(0.1)"


def wait_for(look: Callable[[], T], limit_s: float = 20.0) -> T:
    deadline = time.monotonic() + limit_s
    while not (value := look()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
    return value


class Farm:
    """One home, and supervisors started over it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = Home(path)
        self.home.make()
        self.id = self.home.kept("farm.id", 8)
        self.started: list[subprocess.Popen[str]] = []

    def start(self, **parts: str) -> subprocess.Popen[str]:
        words = [f"{name}={code}" for name, code in parts.items()]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.demo.standin", str(self.path), *words], stdout=subprocess.PIPE, text=True
        )
        self.started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "started"
        return process

    def processes(self) -> list[psutil.Process]:
        return marks.marked(self.id)

    def named(self, code: str) -> list[psutil.Process]:
        found = []
        for process in self.processes():
            try:
                if code in process.cmdline():
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        assert marks.end(self.id, 0) == []


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    made = Farm(tmp_path / "home")
    yield made
    made.close()


def test_it_stops_parts_and_what_they_started_in_other_sessions(farm: Farm) -> None:
    supervisor = farm.start(agent=AGENT, store=SLEEPER)
    wait_for(lambda: len(farm.processes()) == 4)  # watchdog, agent, its engine, store
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(15) == 0
    assert farm.processes() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_stops_on_every_way_to_ask(farm: Farm, number: signal.Signals) -> None:
    supervisor = farm.start(store=SLEEPER)
    supervisor.send_signal(number)
    assert supervisor.wait(15) == 0
    assert farm.processes() == []


def test_a_second_signal_does_not_break_the_stop(farm: Farm) -> None:
    supervisor = farm.start(stubborn=STUBBORN, agent=AGENT, store=SLEEPER)
    wait_for(lambda: len(farm.processes()) == 5)
    for _ in range(3):
        supervisor.send_signal(signal.SIGINT)
        time.sleep(0.1)
    assert supervisor.wait(15) == 0
    assert farm.processes() == []


def test_a_killed_supervisor_leaves_nothing(farm: Farm) -> None:
    supervisor = farm.start(agent=AGENT, stubborn=STUBBORN, store=SLEEPER)
    wait_for(lambda: len(farm.processes()) == 5)
    supervisor.kill()
    supervisor.wait()
    wait_for(lambda: not farm.processes())


def test_a_second_run_works_after_supervisor_and_watchdog_were_killed(farm: Farm) -> None:
    first = farm.start(agent=AGENT)
    wait_for(lambda: len(farm.processes()) == 3)
    watchdog = next(p for p in farm.processes() if "demo.watchdog" in p.cmdline())
    os.kill(first.pid, signal.SIGSTOP)  # so that it cannot start another watchdog between the two
    watchdog.kill()
    first.kill()
    first.wait()
    assert len(farm.processes()) == 2
    assert marks.end(farm.id, 0.5) == []
    second = farm.start(agent=AGENT)
    wait_for(lambda: len(farm.processes()) == 3)
    second.send_signal(signal.SIGTERM)
    assert second.wait(15) == 0


def test_a_killed_part_is_started_again_and_told_of(farm: Farm) -> None:
    supervisor = farm.start(store=SLEEPER)
    (before,) = farm.named(SLEEPER)
    before.kill()
    wait_for(lambda: [one for one in farm.named(SLEEPER) if one.pid != before.pid])
    assert supervisor.stdout is not None
    line = supervisor.stdout.readline()
    assert "store" in line
    assert "信号 9" in line


def test_a_killed_watchdog_is_started_again(farm: Farm) -> None:
    farm.start(store=SLEEPER)

    def watchdogs() -> list[int]:
        return [p.pid for p in farm.processes() if "demo.watchdog" in p.cmdline()]

    (before,) = watchdogs()
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: [pid for pid in watchdogs() if pid != before])


def test_a_part_that_ends_at_once_is_not_started_in_a_busy_loop(farm: Farm) -> None:
    supervisor = farm.start(broken="raise SystemExit(3)")
    assert supervisor.stdout is not None
    pauses = [supervisor.stdout.readline() for _ in range(3)]
    assert ["0.3" in pauses[0], "1 秒" in pauses[1], "2 秒" in pauses[2]] == [True, True, True]


def test_orphans_of_a_killed_part_do_not_stay_as_zombies(farm: Farm) -> None:
    supervisor = farm.start(agent=AGENT.replace("600", "0.2"))
    (agent,) = farm.named(AGENT.replace("600", "0.2"))
    agent.kill()
    me = psutil.Process(supervisor.pid)

    def zombies() -> list[psutil.Process]:
        return [p for p in me.children() if p.status() == psutil.STATUS_ZOMBIE]

    wait_for(lambda: len(farm.named(AGENT.replace("600", "0.2"))) == 1)
    wait_for(lambda: not zombies())
