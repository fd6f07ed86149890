"""Continuous batching: who runs, who waits, and the step that gives each running sequence one token.

Sequences run in order of arrival, at most `max_num_seqs` at once and as far as KV blocks last; the newest one is
preempted when a block is missing. A step's duration comes from rates.py and interference.py.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

from workers.simulator.metrics import Metrics

BLOCK_TOKENS = 16
PREFILL_BUDGET = 2048  # prompt tokens computed in one step (vLLM's --max-num-batched-tokens for the server)
STALL_LOOK_S = 0.2  # how often a stalled core looks whether it may go on

Emit = Callable[[int, str | None], None]  # (index of the word, finish reason or None)


class Sequence:
    """One request inside the engine; `emit` gets every token, the last one with its finish reason."""

    __slots__ = (
        *("prompt_tokens", "limit", "natural", "words", "emit", "made", "computed", "arrived_at"),
        *("started_at", "first_at", "last_at", "pooling"),
    )

    def __init__(
        self, prompt_tokens: int, limit: int, natural: int, words: Iterator[int], emit: Emit, pooling: bool = False
    ) -> None:
        """`limit`: at most so many tokens (then `length`); `natural`: where the answer ends by itself (`stop`).

        `pooling`: an embedding, done with its prompt; its one step makes no token that anybody counts.
        """
        self.pooling = pooling
        self.prompt_tokens = prompt_tokens
        self.limit = limit
        self.natural = natural
        self.words = words
        self.emit = emit
        self.made = 0
        self.computed = 0  # of prompt_tokens + made: what the KV cache holds
        self.arrived_at = 0.0
        self.started_at = 0.0
        self.first_at = 0.0
        self.last_at = 0.0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.made

    @property
    def blocks(self) -> int:
        """KV blocks for all it has plus the token that the next step makes."""
        return self.tokens // BLOCK_TOKENS + 1

    def next_reason(self) -> str | None:
        """The finish reason if the token being made is its last one."""
        if self.made >= self.natural:
            return "stop"
        return "length" if self.made >= self.limit else None


class Batch:
    """The engine core. `step_s(prefill tokens, kv tokens, running)` gives the seconds of a step."""

    def __init__(
        self, max_num_seqs: int, blocks: int, metrics: Metrics, step_s: Callable[[int, int, int], float]
    ) -> None:
        self.max_num_seqs = max_num_seqs
        self.blocks = max(1, blocks - 1)  # one block is the null block, as in vLLM
        self.metrics = metrics
        self.running: list[Sequence] = []
        self.waiting: deque[Sequence] = deque()
        self.held: deque[Sequence] = deque()  # arrived while paused: in no gauge, as in vLLM
        self.paused = False
        self.on_change: Callable[[], None] = lambda: None
        self.on_token: Callable[[Sequence], None] = lambda sequence: None
        self.stalled: Callable[[], bool] = lambda: False
        self._step_s = step_s
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    @property
    def used_blocks(self) -> int:
        return sum(sequence.blocks for sequence in self.running)

    @property
    def kv_used(self) -> float:
        return min(1.0, self.used_blocks / self.blocks)

    @property
    def count(self) -> int:
        return len(self.running) + len(self.waiting)

    def add(self, sequence: Sequence) -> None:
        sequence.arrived_at = asyncio.get_running_loop().time()
        self.metrics.prompt_tokens += sequence.prompt_tokens
        (self.held if self.paused else self.waiting).append(sequence)
        self._go_on()

    def remove(self, sequence: Sequence) -> None:
        """The caller has gone; nothing is counted for it, as in vLLM."""
        for queue in (self.running, self.waiting, self.held):
            if sequence in queue:
                queue.remove(sequence)
                self.on_change()
                return

    def pause(self) -> None:
        self.paused = True
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def resume(self) -> None:
        self.paused = False
        self.waiting.extend(self.held)
        self.held.clear()
        self._go_on()

    def end_all(self, reason: str) -> None:
        """Every running and waiting sequence ends now with what it has."""
        ending = [*self.running, *self.waiting]
        self.running.clear()
        self.waiting.clear()
        for sequence in ending:
            self.metrics.ended[reason] += 1
            sequence.emit(-1, reason)
        self.on_change()

    def drop_all(self) -> list[Sequence]:
        """The core is gone: all sequences are forgotten without a word to anybody."""
        lost = [*self.running, *self.waiting, *self.held]
        self.pause()
        for queue in (self.running, self.waiting, self.held):
            queue.clear()
        self.on_change()
        return lost

    def _go_on(self) -> None:
        if self._timer is None and not self.paused:
            self._due = asyncio.get_running_loop().time()
            self._begin_step()

    def _begin_step(self) -> None:
        self._admit()
        if not self.running:
            self._timer = None
            self.on_change()
            return
        prefill = self._prefill()
        tokens = sum(sequence.tokens for sequence in self.running)
        # Steps are laid end to end, so that a late timer does not make the engine slower than its rate.
        loop = asyncio.get_running_loop()
        self._due = max(self._due + self._step_s(prefill, tokens, len(self.running)), loop.time())
        self._timer = loop.call_at(self._due, self._finish_step)

    def _admit(self) -> None:
        before = len(self.running)
        free = self.blocks - self.used_blocks
        while self.waiting and len(self.running) < self.max_num_seqs and self.waiting[0].blocks <= free:
            sequence = self.waiting.popleft()
            free -= sequence.blocks
            sequence.started_at = sequence.started_at or asyncio.get_running_loop().time()
            self.running.append(sequence)
        if len(self.running) != before:
            self.on_change()

    def _prefill(self) -> int:
        """Computes prompts within this step's budget; returns how many tokens."""
        left = PREFILL_BUDGET
        for sequence in self.running:
            part = min(left, sequence.tokens - sequence.computed)
            sequence.computed += part
            left -= part
        return PREFILL_BUDGET - left

    def _finish_step(self) -> None:
        loop = asyncio.get_running_loop()
        if self.stalled():
            self._due = loop.time() + STALL_LOOK_S
            self._timer = loop.call_at(self._due, self._finish_step)
            return
        self._timer = None
        now = loop.time()
        for sequence in [one for one in self.running if one.computed == one.tokens]:
            if self.paused:  # a token of this very step ended the core
                return
            self._one_token(sequence, now)
        while self.used_blocks > self.blocks and len(self.running) > 1:
            self._preempt()
        if self._timer is None and not self.paused:
            self._begin_step()

    def _one_token(self, sequence: Sequence, now: float) -> None:
        sequence.made += 1
        sequence.computed += 1
        reason = sequence.next_reason()
        metrics = self.metrics
        metrics.generation_tokens += not sequence.pooling
        if sequence.made == 1:
            sequence.first_at = now
            metrics.ttft.observe(now - sequence.arrived_at)
        else:
            metrics.between.observe(now - sequence.last_at)
        sequence.last_at = now
        if reason:
            self.running.remove(sequence)
            self._count_end(sequence, reason, now)
        self.on_token(sequence)
        sequence.emit(next(sequence.words), reason)

    def _preempt(self) -> None:
        """The newest goes back to the head of the queue and computes its KV anew."""
        sequence = self.running.pop()
        sequence.computed = 0
        self.waiting.appendleft(sequence)
        self.metrics.preemptions += 1

    def _count_end(self, sequence: Sequence, reason: str, now: float) -> None:
        metrics = self.metrics
        metrics.ended[reason] += 1
        metrics.whole.observe(now - sequence.arrived_at)
        metrics.queued.observe(sequence.started_at - sequence.arrived_at)
        metrics.prefill.observe(sequence.first_at - sequence.started_at)
        metrics.decode.observe(now - sequence.first_at)
        metrics.inference.observe(now - sequence.started_at)
        metrics.prompt_sizes.observe(sequence.prompt_tokens)
        metrics.answer_sizes.observe(sequence.made)
        if sequence.made > 1:
            metrics.per_token.observe((now - sequence.first_at) / (sequence.made - 1))
