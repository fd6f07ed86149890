"""A simulated engine as a process of its own: `python -m workers.simulator.engine --uds SOCK --model WEIGHTS ...`

The socket is bound at once and listened on only when the model is loaded: until then a connection is refused.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Sequence

import uvloop

from workers.simulator import log
from workers.simulator.core import Core
from workers.simulator.flags import ConfigError, Flags, Simulated, read_environment, read_flags
from workers.simulator.http1 import Request, Server
from workers.simulator.memory import Memory, OutOfMemory
from workers.simulator.routes import Routes
from workers.simulator.start import Start, StartFailed, tell_failure
from workers.simulator.stopping import Stopping, leave_now
from workers.simulator.worker import fork_worker, watch_worker

BACKLOG = 2048
THROUGHPUT_S = 10.0  # how often vLLM logs its throughput


class Engine:
    """Puts the parts of one engine together and runs it to its end."""

    def __init__(self, flags: Flags, sim: Simulated, memory: Memory, bound: socket.socket, worker: int = 0) -> None:
        """`worker`: the pid that holds the memory, 0 if this process does."""
        self.flags = flags
        self.sim = sim
        self.memory = memory
        self.bound = bound
        self.worker = worker
        self.routes = Routes(sim.replica)
        self.server = Server(self.routes, f"x-sim-replica: {sim.replica}\r\n" if sim.replica else "")
        self.server.on_answered = self._answered
        self.stopping = Stopping(self.server, self._close, self._leave)
        self._watch: asyncio.Task[None] | None = None
        self._listener: asyncio.Server | None = None

    async def run(self) -> None:
        """Returns never: the end is a signal, a failed start or a dead core."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.signal)
        if self.worker:
            self._watch = loop.create_task(watch_worker(self.worker, self._worker_died))
        early = loop.create_task(self._listen_early())
        try:
            core = await Start(self.flags, self.sim, self.memory).run()
        except (StartFailed, OutOfMemory) as error:
            tell_failure(error)
            self._leave(1)
            return
        await early
        self.routes.serve(core)
        self.stopping.core = core
        self.memory.publish(0.0, "ready")
        log.line("APIServer", f"Starting vLLM server on unix:{self.flags.uds} (simulated)", where="entry.py:140")
        await self._listen()
        log.bare("INFO:     Application startup complete.")
        while True:
            await self._log_throughput(core)

    async def _listen_early(self) -> None:
        """The readiness fault: the socket, health, model list and completions become good one by one."""
        fault = self.memory.faults.find("readiness", *self.memory.targets)
        if fault:
            self.routes.good_at_s = {name: fault.number(name) for name in self.routes.good_at_s}
            await asyncio.sleep(fault.number("listen_s"))
            await self._listen()

    async def _listen(self) -> None:
        if self._listener is None:
            loop = asyncio.get_running_loop()
            self._listener = await loop.create_unix_server(self.server.connection, sock=self.bound, backlog=BACKLOG)

    def _leave(self, status: int) -> None:
        self.memory.release()
        leave_now(status)

    def _worker_died(self) -> None:
        core = self.routes.core
        if core:
            core.die()
        else:
            tell_failure(StartFailed("RuntimeError: Worker died unexpectedly during initialization."))
            self._leave(1)

    def _close(self) -> None:
        if self._listener:
            self._listener.close()

    def _answered(self, request: Request, status: int) -> None:
        core = self.routes.core
        if core and request.path.startswith("/v1/"):
            core.metrics.count_http(request.path, request.method, status)

    async def _log_throughput(self, core: Core) -> None:
        prompt, made = core.metrics.prompt_tokens, core.metrics.generation_tokens
        began = time.monotonic()
        await asyncio.sleep(THROUGHPUT_S)
        took = time.monotonic() - began
        prompt, made = core.metrics.prompt_tokens - prompt, core.metrics.generation_tokens - made
        if prompt or made or core.batch.count:
            log.line(
                "APIServer",
                f"Engine 000: Avg prompt throughput: {prompt / took:.1f} tokens/s, Avg generation throughput: "
                f"{made / took:.1f} tokens/s, Running: {len(core.batch.running)} reqs, Waiting: "
                f"{len(core.batch.waiting)} reqs, GPU KV cache usage: {100 * core.batch.kv_used:.1f}%, "
                "Prefix cache hit rate: 0.0%",
                where="loggers.py:335",
            )


def bind(path: str) -> socket.socket:
    """A unix socket that exists but refuses connections. Raises OSError where the path is taken, as vLLM does."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bound.setblocking(False)
    bound.bind(path)
    return bound


def main(arguments: Sequence[str]) -> int:
    """The command line; returns only when the engine cannot even begin."""
    try:
        flags = read_flags(arguments)
        sim = read_environment()
        if len(sim.cards) != flags.tp:
            raise ConfigError(f"tensor_parallel_size {flags.tp} needs as many cards, got {len(sim.cards)}.")
        Memory(sim.directory, sim.cards, sim.replica, flags.served_name)  # an unknown card fails before any fork
        bound = bind(flags.uds)
    except (ValueError, OSError) as error:
        log.bare(f"{type(error).__name__}: {error}")
        return 1
    worker = fork_worker() if sim.tree else 0
    memory = Memory(sim.directory, sim.cards, sim.replica, flags.served_name, worker)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Engine(flags, sim, memory, bound, worker).run())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
