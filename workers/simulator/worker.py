"""The process that holds the card's memory, where an engine shall be a tree as the real one is (`GONGKA_SIM_TREE=1`).

A real engine is an API server, the pid that was started, and workers, the pids the driver shows. What follows from
that: SIGKILL of the API server alone leaves the worker behind as an orphan with all its memory, and the death of a
worker ends the API server. Without the variable one process is both, which is cheaper and leaves no orphans.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from setproctitle import setproctitle

from workers.simulator.machine import start_ticks

LOOK_S = 0.3  # vLLM's health turns bad within 0.3 s of a worker's death


def fork_worker() -> int:
    """Starts the worker and returns its pid; called before there is an event loop that a fork would copy."""
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    setproctitle("VLLM::Worker")
    while True:
        signal.pause()


async def watch_worker(pid: int, on_death: Callable[[], None]) -> None:
    """Calls `on_death` once the worker is gone."""
    while start_ticks(pid) is not None:
        await asyncio.sleep(LOOK_S)
    on_death()
