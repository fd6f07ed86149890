"""Starting: the checks, the load with its progress in the log, and the errors, in vLLM's order and words."""

from __future__ import annotations

import asyncio
import math
import time

from workers.simulator import log
from workers.simulator.batch import BLOCK_TOKENS
from workers.simulator.core import Core
from workers.simulator.flags import Flags, Simulated
from workers.simulator.interference import LOADING
from workers.simulator.machine import MIB
from workers.simulator.memory import Memory, OutOfMemory
from workers.simulator.rates import load_s

TICK_S = 0.25  # memory is taken and progress told in steps of this length while weights load
SHARD_MIB = 4096  # checkpoints come in files of about 4 GiB
CONTEXT_MIB = 300  # part of the overhead that the device context takes before the first look at free memory


class StartFailed(RuntimeError):
    """The start cannot go on; the text is what the worker's log says."""


class Start:
    """One start. Every amount is MiB on each card."""

    def __init__(self, flags: Flags, sim: Simulated, memory: Memory) -> None:
        self.flags = flags
        self.sim = sim
        self.memory = memory
        self.weights_mib = math.ceil(sim.weights_mib / flags.tp)
        self.requested_mib = [math.ceil(card.total_mib * flags.utilization) for card in memory.cards]
        self.token_bytes = max(1, math.ceil(sim.kv_bytes_per_token / flags.tp))
        self._free_before: list[int] = []

    async def run(self) -> Core:
        """Waits as long as the load takes. Raises StartFailed or OutOfMemory."""
        log.line("APIServer", f"Using max model len {self.flags.max_model_len}", where="model.py:2152")
        log.line("EngineCore", "Initializing a V1 LLM engine (v0.32.0, simulated)", where="core.py:133")
        await self._part("init", self.memory.host.init_s)
        self._look_at_free()
        self.memory.take(min(CONTEXT_MIB, self.sim.overhead_mib))
        await self._load_weights()
        before_warm_up = time.monotonic()
        kv_mib = self._kv_mib()
        blocks = self._blocks(kv_mib)
        self.memory.take(self.weights_mib + self.sim.overhead_mib + kv_mib)
        self._log_kv(blocks)
        await self._part("warmup", self.memory.host.warm_up_s)
        took = time.monotonic() - before_warm_up
        log.line("EngineCore", f"init engine (profile, create kv cache, warmup model) took {took:.2f} s")
        return Core(self.flags, self.sim, self.memory, blocks, kv_mib)

    async def _part(self, stage: str, seconds: float) -> None:
        self.memory.publish(0.0, stage)
        self._crash_when(0.0 if stage == "init" else 100.0)
        await asyncio.sleep(seconds)

    def _look_at_free(self) -> None:
        """vLLM's start-up check: it runs even when the KV size is given."""
        self._free_before = self.memory.free_mib()
        for number, card in enumerate(self.memory.cards):
            free, wanted = self._free_before[number], self.requested_mib[number]
            if free < wanted:
                raise StartFailed(
                    f"ValueError: Free memory on device cuda:{number} ({_gib(free)}/{_gib(card.total_mib)} GiB) on "
                    f"startup is less than desired GPU memory utilization ({self.flags.utilization}, {_gib(wanted)} "
                    "GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
                )

    async def _load_weights(self) -> None:
        log.line("Worker", f"Starting to load model {self.flags.model}...", where="gpu_model_runner.py:68")
        began = time.monotonic()
        shards = max(1, math.ceil(self.sim.weights_mib / SHARD_MIB))
        done = 0.0
        self.memory.publish(LOADING, "weights")
        while done < 1.0:
            _tell_progress(done, shards, time.monotonic() - began)
            self._crash_when(100 * done)
            whole_s = self._weights_s()
            step_s = min(TICK_S, whole_s * (1.0 - done))
            await asyncio.sleep(step_s)
            done = 1.0 if step_s < TICK_S else min(1.0, done + step_s / whole_s)
            self.memory.take(min(CONTEXT_MIB, self.sim.overhead_mib) + round(self.weights_mib * done))
        took = time.monotonic() - began
        _tell_progress(1.0, shards, took)
        log.line("Worker", f"Loading weights took {took:.2f} seconds", where="default_loader.py:501")
        size = f"Model loading took {_gib(self.weights_mib)} GiB memory and {took:.2f} seconds"
        log.line("Worker", size, where="gpu_model_runner.py:3338")

    def _weights_s(self) -> float:
        """Seconds of the whole load at the present sharing of the storage, with a fault's delay."""
        seconds = load_s(self.sim.weights_mib, self.memory.host.bandwidth_mib_s, 1 + self.memory.loaders())
        delay = self.memory.faults.find("load_delay", *self.memory.targets)
        return max(1e-6, seconds * delay.number("factor") + delay.number("seconds") if delay else seconds)

    def _crash_when(self, reached_pct: float) -> None:
        crash = self.memory.faults.find("load_crash", *self.memory.targets)
        if crash and reached_pct >= crash.number("at_pct"):
            self.memory.fired(crash)
            raise StartFailed(str(crash.values["text"]))

    def _kv_mib(self) -> int:
        """The KV cache on each card: as told, or measured by what the whole card shows, neighbours and all."""
        if self.flags.kv_bytes is not None:
            return self.flags.kv_bytes // MIB
        sizes = [self._measured_kv_mib(number, free) for number, free in enumerate(self.memory.free_mib())]
        log.line("Worker", f"Available KV cache memory: {_gib(min(sizes))} GiB", where="gpu_worker.py:393")
        if min(sizes) <= 0:
            raise StartFailed(
                "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
                "initializing the engine."
            )
        return min(sizes)

    def _measured_kv_mib(self, number: int, free_now: int) -> int:
        before = self._free_before[number]
        if free_now > before:
            raise StartFailed(
                f"AssertionError: Error in memory profiling. Initial free memory {_gib(before)} GiB, current free "
                f"memory {_gib(free_now)} GiB. This happens when other processes sharing the same container release "
                "GPU memory while vLLM is profiling during initialization. To fix this, ensure consistent GPU memory "
                "allocation or isolate vLLM in its own container."
            )
        still_to_come = self.sim.overhead_mib - min(CONTEXT_MIB, self.sim.overhead_mib)
        return self.requested_mib[number] - (before - free_now) - still_to_come

    def _blocks(self, kv_mib: int) -> int:
        """KV blocks; one request of the greatest length must fit."""
        if self.flags.task == "embedding":
            return max(2, kv_mib * MIB // (self.token_bytes * BLOCK_TOKENS))
        blocks = kv_mib * MIB // (self.token_bytes * BLOCK_TOKENS)
        needed = math.ceil(self.flags.max_model_len / BLOCK_TOKENS)
        if needed > blocks:
            needed_mib = needed * BLOCK_TOKENS * self.token_bytes / MIB
            raise StartFailed(
                f"ValueError: To serve at least one request with the model's max seq len ({self.flags.max_model_len}), "
                f"({_gib(needed_mib)} GiB KV cache is needed, which is larger than the available KV cache memory "
                f"({_gib(kv_mib)} GiB). Based on the available memory, the estimated maximum model length is "
                f"{blocks * BLOCK_TOKENS}. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when "
                "initializing the engine."
            )
        return blocks

    def _log_kv(self, blocks: int) -> None:
        tokens = blocks * BLOCK_TOKENS
        text = f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for {self.flags.max_model_len:,} tokens per "
        text += f"request: {tokens / self.flags.max_model_len:.2f}x"
        log.line("EngineCore", text, where="kv_cache_utils.py:2327")


def _gib(mib: float) -> str:
    return f"{mib / 1024:.2f}"


def _tell_progress(done: float, shards: int, elapsed_s: float) -> None:
    """tqdm's line, one a tick instead of one line drawn over."""
    rest = elapsed_s * (1 / done - 1) if done > 0 else 0.0
    clock, left = (time.strftime("%M:%S", time.gmtime(part)) for part in (elapsed_s, rest))
    shown = f"{clock}<{left if done > 0 else '?'}"
    pace = f"{done * shards / elapsed_s:.2f}it/s" if elapsed_s > 0 and done > 0 else "?it/s"
    bar = f"{round(100 * done):3d}% Completed | {int(done * shards)}/{shards} [{shown}, {pace}]"
    log.bare(f"Loading safetensors checkpoint shards: {bar}")


def tell_failure(error: StartFailed | OutOfMemory) -> None:
    """What a failed start leaves in the log: the reason far up, the general sentence last."""
    log.line("Worker", f"WorkerProc failed to start.\n{error}", "ERROR", "multiproc_executor.py:953")
    failed = (
        "WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause."
    )
    log.line("EngineCore", f"EngineCore failed to start.\nException: {failed}", "ERROR", "core.py:1510")
    log.bare("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
