"""The engine core of one simulated engine: its batch, its speed, its memory, and how it dies."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable

from workers.simulator import log
from workers.simulator.batch import BLOCK_TOKENS, Batch, Sequence
from workers.simulator.faults import Fault
from workers.simulator.flags import Flags, Simulated
from workers.simulator.interference import busy_share, slowdown
from workers.simulator.memory import Memory, OutOfMemory
from workers.simulator.metrics import Metrics
from workers.simulator.rates import decode_s, prefill_s

FAULT_LOOK_S = 0.05  # how often a working engine looks for a crash or a hang: not at every step, for its cost
LOOK_S = 0.5  # how often a working engine looks at its neighbours and tells them about itself
EXIT_AFTER_DEATH_S = 1.0  # the API server notices a dead core in about a second and exits, with code 0
BURST_S = 0.005  # the API server's count of requests is this old in a burst: the core refuses what slips through
GROWTH_CALLS = 100


class Core:
    """What lives behind the HTTP routes. `kv_blocks` and `held_mib` come from the start (start.py)."""

    def __init__(self, flags: Flags, sim: Simulated, memory: Memory, kv_blocks: int, kv_mib: int) -> None:
        self.flags = flags
        self.sim = sim
        self.memory = memory
        self.kv_blocks = kv_blocks
        self.awake_mib = memory.held_mib
        self.metrics = Metrics(flags.served_name, flags.max_model_len, self._cache_info(kv_blocks, kv_mib))
        self.batch = Batch(flags.max_num_seqs, kv_blocks, self.metrics, self._step_s)
        self.batch.on_change = self._changed
        self.batch.on_token = self._made_token
        self.batch.stalled = self._stalled
        self.dead = False  # health says 503
        self.stopping = False  # new requests get the 500 of a core that is shutting down
        self.sleep_level: int | None = None
        self.paused = False
        self.failing: dict[Sequence, Callable[[], None]] = {}  # how each caller learns that the core is dead
        self._slowdown = 1.0
        self._looked_at = 0.0
        self._faults_at = 0.0
        self._hung = False
        self._publishing: asyncio.TimerHandle | None = None
        self._crash: Fault | None = None
        self._calls = 0
        self._counted_at = 0.0
        self._counted = 0

    def _cache_info(self, blocks: int, kv_mib: int) -> dict[str, str]:
        tokens = blocks * BLOCK_TOKENS
        return {
            "block_size": str(BLOCK_TOKENS),
            "cache_dtype": "auto",
            "enable_prefix_caching": "True",
            "gpu_memory_utilization": str(self.flags.utilization),
            "kv_cache_max_concurrency": str(round(tokens / self.flags.max_model_len, 2)),
            "kv_cache_memory_bytes": str(kv_mib * 1024 * 1024),
            "kv_cache_size_tokens": str(tokens),
            "num_gpu_blocks": str(blocks),
        }

    def fault(self, kind: str) -> Fault | None:
        return self.memory.faults.find(kind, *self.memory.targets)

    @property
    def weights_mib_per_card(self) -> float:
        return self.sim.weights_mib / self.flags.tp

    @property
    def asleep(self) -> bool:
        return self.sleep_level is not None

    @property
    def sleep_state(self) -> str:
        """The label of vLLM's sleep gauge."""
        return {1: "weights_offloaded", 2: "discard_all"}.get(self.sleep_level or 0, "awake")

    def full(self) -> bool:
        """Whether the API server refuses at once: from a count that may be BURST_S old."""
        now = asyncio.get_running_loop().time()
        if now - self._counted_at > BURST_S:
            self._counted_at, self._counted = now, self.batch.count
        return self._over(self._counted)

    def submit(self, sequence: Sequence, on_dead: Callable[[], None]) -> bool:
        """Hands a request to the core; False when its queue is full. `on_dead` is called if the core dies first."""
        if self._over(self.batch.count):
            self.metrics.rejections += 1
            return False
        self.failing[sequence] = on_dead
        self.batch.add(sequence)
        crash = self.fault("crash")
        if crash and crash.whole("after_tokens") == 0:
            self._fire(crash)
        return True

    def _over(self, count: int) -> bool:
        return self.flags.max_queued is not None and count >= self.flags.max_queued and not self.batch.paused

    def ended(self, sequence: Sequence) -> None:
        """A request is answered, or its caller has gone."""
        self.failing.pop(sequence, None)
        self.batch.remove(sequence)
        self._calls += 1
        growth = self.fault("growth") if self._calls % GROWTH_CALLS == 0 else None
        if growth:
            self.grow(growth.whole("mib"))

    def grow(self, mib: int) -> None:
        """Memory creeps up by `mib` on each card; where there is none left the core dies of it."""
        try:
            self.memory.take(self.memory.held_mib + mib)
            self.awake_mib += mib
        except OutOfMemory as error:
            log.line("EngineCore", str(error), "ERROR", "core.py:1510")
            self.die()

    def die(self) -> None:
        """The core ends as by SIGKILL: callers get errors, health turns 503, the process exits with 0 soon after."""
        if self.dead:
            return
        self.dead = True
        log.line("APIServer", "EngineCore died unexpectedly. Shutting down client.", "ERROR", "core_client.py:640")
        self.batch.drop_all()
        self.memory.release()
        for tell in list(self.failing.values()):
            tell()
        self.failing.clear()
        asyncio.get_running_loop().call_later(EXIT_AFTER_DEATH_S, os._exit, 0)

    def cut_off(self) -> None:
        """The core is killed by a shutdown: nobody is told anything, callers hang."""
        self.dead = True
        self.failing.clear()
        self.batch.drop_all()
        self.memory.release()

    def _step_s(self, prefill: int, tokens: int, running: int) -> float:
        now = time.monotonic()
        if now - self._looked_at >= LOOK_S:
            self._looked_at = now
            self._look()
        self._look_for_faults(now)
        card = self.memory.cards[0]
        kv_bytes = tokens * self.sim.kv_bytes_per_token / self.flags.tp
        weights = self.weights_mib_per_card
        return (decode_s(card, weights, kv_bytes) + prefill_s(card, weights, prefill)) * self._slowdown

    def _look_for_faults(self, now: float) -> None:
        if now - self._faults_at >= FAULT_LOOK_S:
            self._faults_at = now
            self._crash = self.fault("crash")
            self._hung = self.fault("hang") is not None

    def _stalled(self) -> bool:
        """Asked at the end of each step; while it hangs, looks whether it still shall."""
        if self._hung:
            self._look_for_faults(time.monotonic())
        return self._hung

    def _look(self) -> None:
        busy = [one.busy for one in self.memory.neighbours()]
        slow = self.fault("slow")
        self._slowdown = slowdown(busy, self.sim.interference) * (slow.number("factor") if slow else 1.0)

    def _made_token(self, sequence: Sequence) -> None:
        if self._crash and sequence.made >= self._crash.whole("after_tokens"):
            # After this token is out: the caller has really seen it.
            asyncio.get_running_loop().call_soon(self._fire, self._crash)
            self._crash = None

    def _fire(self, crash: Fault) -> None:
        self.memory.fired(crash)
        if crash.values["how"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        self.die()

    def _changed(self) -> None:
        """Publishes soon, and at most every LOOK_S: a batch changes far more often than neighbours need to know."""
        if self._publishing is None and not self.dead:
            self._publishing = asyncio.get_running_loop().call_later(LOOK_S, self._publish)

    def _publish(self) -> None:
        self._publishing = None
        if not self.dead:
            busy = busy_share(len(self.batch.running), self.flags.max_num_seqs)
            self.memory.publish(round(busy, 2), "asleep" if self.asleep else "ready")
