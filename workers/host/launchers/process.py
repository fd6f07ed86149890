"""Engines as plain processes, each the leader of a session of its own, marked in its environment."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

import psutil

from workers.host.command import ATTEMPT, DOOR, FARM, HOST, REPLICA, Command


@dataclass(frozen=True, slots=True)
class Running:
    """A live process with our mark. `started_at` tells it from a later one with the same pid."""

    pid: int
    started_at: float
    attempt: int
    leads: bool


class ProcessLauncher:
    def __init__(self, farm: str, host: str) -> None:
        self._marks = (f"{FARM}={farm}".encode(), f"{HOST}={host}".encode())
        self._lock = threading.Lock()
        # Our own children, to take their exit status, and because one that is just executing its program shows no mark.
        self._children: list[tuple[int, int, subprocess.Popen[bytes]]] = []
        self._seen: dict[int, list[Running]] = {}
        self._seen_at = float("-inf")

    def start(self, command: Command) -> int:
        command.folder.mkdir(parents=True, exist_ok=True)
        command.socket.unlink(missing_ok=True)
        log = command.log
        if log.exists():
            log.replace(log.with_name(f"{log.name}.1"))
        with log.open("ab") as out:
            child = subprocess.Popen(
                command.argv,
                env=command.environment,
                cwd=command.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        with self._lock:
            self._children.append((command.replica, command.attempt, child))
            self._seen_at = float("-inf")
        return child.pid

    def scan(self, max_age_s: float = 0.0) -> dict[int, list[Running]]:
        with self._lock:
            if time.monotonic() - self._seen_at > max_age_s:
                self._children = [one for one in self._children if one[2].poll() is None]
                self._seen_at = time.monotonic()
                self._seen = self._read()
            return self._seen

    def _read(self) -> dict[int, list[Running]]:
        found: dict[int, list[Running]] = {}
        for pid, marks in marked(self._marks):
            replica = marks.get(REPLICA, "")
            if not replica.isdecimal():
                continue
            with suppress(psutil.Error, OSError):
                attempt = int(marks.get(ATTEMPT, "") or 0)
                one = Running(pid, psutil.Process(pid).create_time(), attempt, os.getpgid(pid) == pid)
                found.setdefault(int(replica), []).append(one)
        for number, attempt, child in self._children:
            if all(one.pid != child.pid for one in found.get(number, [])):
                with suppress(psutil.Error):
                    one = Running(child.pid, psutil.Process(child.pid).create_time(), attempt, True)
                    found.setdefault(number, []).append(one)
        for processes in found.values():
            processes.sort(key=lambda one: (not one.leads, one.started_at))
        return found

    def terminate(self, processes: list[Running]) -> None:
        leaders = [one for one in processes if one.leads]
        for one in leaders or processes:
            send(one, signal.SIGTERM)

    def kill(self, processes: list[Running]) -> None:
        for one in processes:
            if one.leads and alive(one):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(one.pid, signal.SIGKILL)
        for one in processes:
            send(one, signal.SIGKILL)

    def doors(self) -> list[Running]:
        """The doors of this host: one, or none, or for a moment an old and a new one."""
        found = []
        for pid, marks in marked(self._marks):
            if DOOR in marks:
                with suppress(psutil.Error):
                    found.append(Running(pid, psutil.Process(pid).create_time(), 0, True))
        return found


def marked(marks: tuple[bytes, ...]) -> list[tuple[int, dict[str, str]]]:
    """All live processes whose environment has every one of `marks`, with the variables that are ours.

    A process that has ended but was not waited for has no environment, so it does not count as alive.
    """
    found = []
    for pid in psutil.pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as handle:
                content = handle.read()
        except OSError:
            continue
        if marks[0] in content:
            variables = content.split(b"\0")
            if all(mark in variables for mark in marks):
                ours = [one.decode("utf-8", "replace") for one in variables if one.startswith(b"GONGKA_")]
                found.append((pid, dict(one.split("=", 1) for one in ours)))
    return found


def alive(one: Running) -> bool:
    try:
        process = psutil.Process(one.pid)
        return process.create_time() == one.started_at and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def send(one: Running, number: signal.Signals) -> None:
    """Signals exactly this process, never another one that got its pid since."""
    with suppress(psutil.Error):
        process = psutil.Process(one.pid)
        if process.create_time() == one.started_at:
            process.send_signal(number)
