"""Dev endpoints: sleep, wake up, pause, resume, with vLLM's answers, and what each does to memory.

Level 1 moves the weights to host memory and drops the KV cache. What stays on the card (device context, graphs,
allocator) is `residue_mib`: the engine's overhead and RESIDUE_EXTRA_MIB, 1300 MiB with the usual overhead of 600.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

from workers.simulator import log, shapes
from workers.simulator.core import Core
from workers.simulator.http1 import Reply, Request
from workers.simulator.memory import OutOfMemory

RESIDUE_EXTRA_MIB = 700
REMAP_S = 0.2  # unmapping or mapping the allocator's pages, besides the copy
MODES = ("abort", "wait", "keep")
DRAIN_LOOK_S = 0.05


class Sleeping:
    """Sleep state of one core. One operation at a time: a second one waits."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._lock = asyncio.Lock()
        self._asleep_tags: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def residue_mib(self) -> int:
        return min(self.core.awake_mib, self.core.sim.overhead_mib + RESIDUE_EXTRA_MIB)

    @property
    def is_sleeping(self) -> bool:
        """True after a pause as well, as in vLLM."""
        return self.core.asleep or self.core.paused

    def sleep(self, request: Request, reply: Reply) -> None:
        level, mode = request.query.get("level", "1"), request.query.get("mode", "abort")
        if level not in ("0", "1", "2"):
            bound = "less_than_equal" if level.isdigit() else "int_parsing"
            text = "Input should be less than or equal to 2"
            context = ", 'ctx': {'le': 2}"
            reply.send(400, shapes.validation(bound, "query.level", text, level, context))
        elif mode not in MODES:
            text = "Input should be 'abort', 'wait' or 'keep'"
            reply.send(400, shapes.validation("literal_error", "query.mode", text, mode))
        elif level != "0" and not self.core.flags.sleep_mode:
            self._fail(reply, "sleep", "Sleep mode is not enabled. Please set `--enable-sleep-mode`.")
        else:
            self._run(self._go_to_sleep(int(level), mode, reply))

    def wake_up(self, request: Request, reply: Reply) -> None:
        tags = [tag for tag in request.query.get("tags", "").split(",") if tag]
        self._run(self._wake(tags or None, reply))

    def pause(self, request: Request, reply: Reply) -> None:
        self._run(self._pause(request.query.get("mode", "abort"), reply))

    def resume(self, reply: Reply) -> None:
        self.core.paused = False
        if not self.core.asleep:
            self.core.batch.resume()
        reply.send(200, shapes.dump({"status": "resumed"}))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pause(self, mode: str, reply: Reply) -> None:
        await self._still(mode)
        self.core.paused = True
        reply.send(200, shapes.dump({"status": "paused"}))

    async def _still(self, mode: str) -> None:
        """Scheduling stops: at once, or with `wait` when all that runs is done; new requests are held meanwhile."""
        batch = self.core.batch
        if mode == "wait":
            while batch.running:
                log.line(
                    "EngineCore", "Waiting for in-flight requests to complete before sleeping...", where="core.py:993"
                )
                await asyncio.sleep(DRAIN_LOOK_S)
        batch.pause()
        if mode == "abort":
            batch.end_all("abort")

    async def _go_to_sleep(self, level: int, mode: str, reply: Reply) -> None:
        async with self._lock:
            began = time.monotonic()
            grew = False
            await self._still(mode)
            if level and not self._asleep_tags:
                grew = await self._give_back(self._copy_s() if level == 1 else 0.0)
            self.core.sleep_level = level
            self.core.memory.publish(0.0, "asleep")
            if grew:
                self._fail(reply, "sleep", "Memory usage increased after sleeping.")
                return
            self.core.metrics.count_sleep("sleep", time.monotonic() - began)
            reply.send(200, shapes.dump({"status": "sleeping", "level": level}))

    def _copy_s(self) -> float:
        return self.core.weights_mib_per_card / self.core.memory.host.host_to_card_mib_s

    async def _give_back(self, copy_s: float) -> bool:
        """Frees down to the residue; True when a neighbour took more meanwhile, which trips vLLM's device-wide check.

        The memory is free and the engine asleep all the same: only the call says that it failed.
        """
        memory = self.core.memory
        before = memory.free_mib()
        await asyncio.sleep(REMAP_S + copy_s)
        freed = memory.held_mib - self.residue_mib
        memory.take(self.residue_mib)
        self._asleep_tags = {"weights", "kv_cache"}
        text = f"Sleep mode freed {freed / 1024:.2f} GiB memory, "
        text += f"{memory.held_mib / 1024:.2f} GiB memory is still in use."
        log.line("Worker", text, where="gpu_worker.py:170")
        return any(after < first for first, after in zip(before, memory.free_mib(), strict=True))

    async def _wake(self, tags: list[str] | None, reply: Reply) -> None:
        async with self._lock:
            began = time.monotonic()
            waking = set(tags or ("weights", "kv_cache")) & self._asleep_tags
            try:
                self._take_again(waking)
            except OutOfMemory:
                self._fail(reply, "wake_up", "CUDA Error: out of memory at csrc/cumem_allocator.cpp:139")
                return
            if "weights" in waking:
                await asyncio.sleep(REMAP_S + self._copy_s())
            self._asleep_tags -= waking
            if not self._asleep_tags:
                self.core.sleep_level = None
                self.core.memory.publish(0.0, "ready")
                if not self.core.paused:
                    self.core.batch.resume()
            self.core.metrics.count_sleep("wake", time.monotonic() - began)
            state = "sleeping" if self._asleep_tags else "awake"
            reply.send(200, shapes.dump({"status": state, "tags": tags}))

    def _take_again(self, waking: set[str]) -> None:
        """Raises OutOfMemory, changing nothing, when a card has not enough free."""
        after = self._asleep_tags - waking
        core = self.core
        if not after:
            core.memory.take(core.awake_mib)
        elif waking:
            weights = round(core.weights_mib_per_card)
            part = weights if "weights" in waking else core.awake_mib - self.residue_mib - weights
            core.memory.take(core.memory.held_mib + max(0, part))

    @staticmethod
    def _fail(reply: Reply, method: str, text: str) -> None:
        message = f"Call to {method} method failed: {text}"
        log.line("EngineCore", message, "ERROR", "core.py:1510")
        reply.send(500, shapes.error(message, "InternalServerError", 500))
