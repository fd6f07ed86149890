"""Keeps the parts of a farm running and ends all of them: start, restart with back-off, stop in order."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from demo import marks
from demo.home import Home

TICK_S = 0.2
STEADY_S = 30.0  # a part that ran so long has earned a quick restart again
BACK_OFF_S = (0.3, 1.0, 2.0, 5.0, 10.0)
ENGINES_S = 4.0  # engines and doors, once their agent is gone
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Part:
    """One process: how it starts, and when it is stopped (smaller `wave` first)."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    wave: int
    stop_s: float = 3.0  # from SIGTERM to SIGKILL


@dataclass(slots=True)
class Running:
    part: Part
    process: subprocess.Popen[bytes]
    since: float


@dataclass(slots=True)
class Supervisor:
    """Owner of the farm's processes. Single-threaded: call `tend()` every `TICK_S`, `stop()` once."""

    home: Home
    farm: str
    say: Callable[[str], None]
    running: dict[str, Running] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    due: dict[str, tuple[float, Part]] = field(default_factory=dict)  # when a dead part starts again
    watchdog: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        if sys.platform == "linux":  # orphans of a killed agent come to us, so none stays as a zombie
            ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._watch()

    def start(self, parts: Iterable[Part]) -> None:
        for part in parts:
            self._start(part)

    def tend(self) -> None:
        """One look at all parts: the dead are told of and started again after their back-off."""
        now = time.monotonic()
        self._reap()
        if self.watchdog is not None and self.watchdog.poll() is not None:
            self._watch()
        for name, running in list(self.running.items()):
            if (code := running.process.poll()) is not None:
                del self.running[name]
                count = 0 if now - running.since > STEADY_S else self.failures.get(name, 0)
                pause = BACK_OFF_S[min(count, len(BACK_OFF_S) - 1)]
                self.failures[name] = count + 1
                self.due[name] = (now + pause, running.part)
                log = self.home.logs / f"{name}.log"
                self.say(f"⚠ {name} 已退出（{_ending(code)}），{pause:g} 秒后重启 / restarting; 日志 {log}")
        for name, (at, part) in list(self.due.items()):
            if now >= at:
                del self.due[name]
                self._start(part)

    def stop(self) -> int:
        """Ends everything that carries the mark, in order, within 15 s. How many processes could not be ended."""
        self.due.clear()
        last = max((running.part.wave for running in self.running.values()), default=0)
        for wave in sorted({running.part.wave for running in self.running.values()} - {last}):
            self._end([r for r in self.running.values() if r.part.wave == wave])
        spare = {running.process.pid for running in self.running.values()}
        if self.watchdog is not None:
            spare.add(self.watchdog.pid)
        marks.end(self.farm, ENGINES_S, spare)  # engines and doors live in sessions of their own
        self._end(list(self.running.values()))
        if self.watchdog is not None and self.watchdog.stdin is not None:
            self.watchdog.stdin.close()
            _wait(self.watchdog, 5.0)
        left = marks.end(self.farm, 0.5)
        self._reap()
        return len(left)

    def _start(self, part: Part) -> None:
        with self.home.log(part.name) as log:
            process = subprocess.Popen(
                part.argv,
                env={**part.env, marks.MARK: self.farm},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in the terminal reaches the supervisor alone, which stops in order
            )
        self.running[part.name] = Running(part, process, time.monotonic())

    def _watch(self) -> None:
        with self.home.log("watchdog") as log:
            self.watchdog = subprocess.Popen(
                [sys.executable, "-m", "demo.watchdog", self.farm],
                env={**os.environ, marks.MARK: self.farm},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _end(self, running: list[Running]) -> None:
        for each in running:
            if each.process.poll() is None:
                each.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        for each in running:
            _wait(each.process, max(0.0, each.part.stop_s - (time.monotonic() - began)))
            del self.running[each.part.name]

    def _reap(self) -> None:
        """Collects adopted orphans only: a part's own ending is left for `poll()`, which wants its exit status."""
        if sys.platform != "linux":
            return
        ours = {running.process.pid for running in self.running.values()}
        if self.watchdog is not None:
            ours.add(self.watchdog.pid)
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is None or ended.si_pid in ours:
                    return
                os.waitpid(ended.si_pid, os.WNOHANG)
            except ChildProcessError:
                return


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ending(code: int) -> str:
    return f"信号 {-code}" if code < 0 else f"状态 {code}"
