"""What SIGTERM does at each point of an engine's life, as seen on vLLM.

- While loading the first signal is lost; a second one ends the start with exit code 130.
- With `--shutdown-timeout 0` the core is killed at once: health turns 503, memory goes back, the socket closes half a
  second later, callers in flight get nothing at all, and the process stays until they have hung up.
- With a time-out N new requests get 500, health stays 200, and what runs or waits is answered whole within N seconds;
  when N runs out the core is killed as above.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from workers.simulator import log
from workers.simulator.core import Core
from workers.simulator.http1 import Server
from workers.simulator.routes import wait_until

CLOSE_AFTER_S = 0.5  # from the core's end to the closing of the socket
TEARDOWN_S = 1.5  # with the half second above, an idle engine is gone after two
LOOK_S = 0.02


class Stopping:
    """Turns signals into the end of the process. `close` stops listening; `leave` ends the process with a status."""

    def __init__(self, server: Server, close: Callable[[], None], leave: Callable[[int], None]) -> None:
        self.core: Core | None = None
        self._server = server
        self._close = close
        self._leave = leave
        self._lost = 0
        self._task: asyncio.Task[None] | None = None

    def signal(self) -> None:
        """A SIGTERM (or SIGINT) has come; one during the end changes nothing."""
        if self.core is None:
            self._lost += 1
            if self._lost > 1:
                self._leave(130)
        elif self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._end(self.core))

    async def _end(self, core: Core) -> None:
        timeout_s = core.flags.shutdown_s
        mode = "drain" if timeout_s else "abort"
        _tell("APIServer", "API server: shutdown triggered", "launcher.py:254")
        _tell("APIServer", f"API server: stopping engine client mode={mode} timeout={timeout_s}s", "launcher.py:270")
        if timeout_s:
            await self._drain(core, timeout_s)
        else:
            text = "[shutdown] Process manager: force killing remaining processes count=1"
            log.line("APIServer", text, "WARNING", "utils.py:648")
        core.cut_off()
        _tell("APIServer", "API server: engine client stopped", "launcher.py:279")
        await asyncio.sleep(CLOSE_AFTER_S)
        self._close()
        self._server.close_idle()
        log.bare("INFO:     Shutting down")
        if self._server.in_flight:
            log.bare("INFO:     Waiting for connections to close. (CTRL+C to force quit)")
        await wait_until(lambda: self._server.in_flight == 0, LOOK_S)
        await asyncio.sleep(TEARDOWN_S)
        log.bare("INFO:     Application shutdown complete.")
        self._leave(0)

    async def _drain(self, core: Core, timeout_s: int) -> None:
        core.stopping = True
        text = f"EngineCore: draining in-flight requests count={core.batch.count} timeout={timeout_s}s"
        _tell("EngineCore", text, "core.py:1655")
        try:
            await asyncio.wait_for(wait_until(lambda: core.batch.count == 0, LOOK_S), timeout_s)
        except TimeoutError:
            text = "[shutdown] Process manager: force killing remaining processes count=1"
            log.line("APIServer", text, "WARNING", "utils.py:648")
        else:
            _tell("EngineCore", "EngineCore: request processing complete; starting resource teardown", "core.py:1666")


def _tell(who: str, text: str, where: str) -> None:
    log.line(who, f"[shutdown] {text}", where=where)


def leave_now(status: int) -> None:
    """Ends the process without waiting for connections that will never be answered."""
    os._exit(status)
