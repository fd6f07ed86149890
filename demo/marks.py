"""Every process of a farm carries `GONGKA_FARM` in its environment: how leftovers are found, and ended, by anybody."""

from __future__ import annotations

import os
import time
from collections.abc import Collection

import psutil

MARK = "GONGKA_FARM"
LOOK_S = 0.1
KILL_S = 3.0  # after SIGKILL a process is gone at once, unless the system is very busy


def marked(farm: str, spare: Collection[int] = ()) -> list[psutil.Process]:
    """Living processes of this farm, oneself and `spare` apart. Zombies hold nothing and are not counted."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid in spare or process.pid == os.getpid() or process.environ().get(MARK) != farm:
                continue
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:  # ended while we looked, or another user's: not ours
            continue
    return found


def end(farm: str, grace_s: float, spare: Collection[int] = ()) -> list[psutil.Process]:
    """SIGTERM, `grace_s` later SIGKILL, and again until two looks find nothing; what is left after all of it.

    Looks again and again because an agent may start an engine while we end the others.
    """
    for process in marked(farm, spare):
        _signal(process, kill=False)
    deadline = time.monotonic() + grace_s
    while (left := marked(farm, spare)) and time.monotonic() < deadline:
        psutil.wait_procs(left, timeout=LOOK_S)
    deadline = time.monotonic() + KILL_S
    quiet = 0
    while quiet < 2 and time.monotonic() < deadline:
        left = marked(farm, spare)
        for process in left:
            _signal(process, kill=True)
        psutil.wait_procs(left, timeout=LOOK_S)
        quiet = 0 if left else quiet + 1
    return marked(farm, spare)


def _signal(process: psutil.Process, *, kill: bool) -> None:
    try:
        process.kill() if kill else process.terminate()
    except psutil.Error:
        return
