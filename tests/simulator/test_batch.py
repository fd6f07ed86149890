"""Continuous batching by itself, on a loop whose steps take next to nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

from workers.simulator.batch import PREFILL_BUDGET, Batch, Sequence
from workers.simulator.metrics import Metrics

STEP_S = 0.0005


class Steps:
    """Records what each step was asked to cost."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int]] = []

    def __call__(self, prefill: int, tokens: int, running: int) -> float:
        self.seen.append((prefill, tokens, running))
        return STEP_S


class Caller:
    """One sequence and what came out of it."""

    def __init__(self, batch: Batch, prompt: int = 10, limit: int = 5, natural: int = 10**9) -> None:
        self.words: list[int] = []
        self.reason: str | None = None
        self.sequence = Sequence(prompt, limit, natural, count(), self._emit)
        batch.add(self.sequence)

    def _emit(self, word: int, reason: str | None) -> None:
        self.words.append(word)
        self.reason = reason


def made(max_num_seqs: int = 2, blocks: int = 1001) -> tuple[Batch, Steps]:
    steps = Steps()
    return Batch(max_num_seqs, blocks, Metrics("tiny", 4096, {}), steps), steps


def run(what: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(what(), 20)

    asyncio.run(bounded())


async def idle(batch: Batch) -> None:
    while batch.count:
        await asyncio.sleep(STEP_S)


def test_length_and_stop() -> None:
    async def story() -> None:
        batch, _ = made()
        long, short = Caller(batch, limit=5), Caller(batch, limit=50, natural=3)
        await idle(batch)
        assert (long.words, long.reason) == ([0, 1, 2, 3, 4], "length")
        assert (short.words, short.reason) == ([0, 1, 2], "stop")
        assert (batch.metrics.ended["length"], batch.metrics.ended["stop"]) == (1, 1)
        assert batch.metrics.generation_tokens == 8
        assert batch.kv_used == 0.0

    run(story)


def test_order_of_arrival_and_the_limit_of_running() -> None:
    async def story() -> None:
        batch, steps = made(max_num_seqs=2)
        callers = [Caller(batch, limit=4) for _ in range(5)]
        await idle(batch)
        assert all(one.reason == "length" for one in callers)
        assert max(running for _, _, running in steps.seen) == 2
        started = [one.sequence.started_at for one in callers]
        assert started == sorted(started)

    run(story)


def test_a_long_prompt_is_computed_in_parts_and_speaks_only_then() -> None:
    async def story() -> None:
        batch, steps = made(blocks=2000)
        Caller(batch, prompt=PREFILL_BUDGET * 2 + 100, limit=1)
        await idle(batch)
        assert [prefill for prefill, _, _ in steps.seen] == [PREFILL_BUDGET, PREFILL_BUDGET, 100]

    run(story)


def test_memory_bounds_who_runs() -> None:
    async def story() -> None:
        batch, steps = made(max_num_seqs=8, blocks=11)  # ten blocks of 16 tokens
        callers = [Caller(batch, prompt=70, limit=3) for _ in range(3)]  # five blocks each
        await idle(batch)
        assert all(len(one.words) == 3 for one in callers)
        assert max(running for _, _, running in steps.seen) == 2

    run(story)


def test_the_newest_is_preempted_and_still_ends_whole() -> None:
    async def story() -> None:
        batch, steps = made(max_num_seqs=8, blocks=11)
        old, new = Caller(batch, prompt=60, limit=40), Caller(batch, prompt=60, limit=40)
        await idle(batch)
        assert (len(old.words), len(new.words)) == (40, 40)
        assert new.words == list(range(40))  # nothing twice, nothing lost
        assert batch.metrics.preemptions >= 1
        assert any(prefill > 60 for prefill, _, _ in steps.seen[1:])  # its KV was computed anew

    run(story)


def test_who_leaves_frees_memory_at_once() -> None:
    async def story() -> None:
        batch, _ = made(max_num_seqs=1)
        gone, next_one = Caller(batch, limit=100_000), Caller(batch, limit=2)
        await asyncio.sleep(3 * STEP_S)
        batch.remove(gone.sequence)
        batch.remove(gone.sequence)
        await idle(batch)
        assert gone.reason is None
        assert next_one.reason == "length"
        assert sum(batch.metrics.ended.values()) == 1

    run(story)


def test_a_pause_holds_newcomers_in_no_count() -> None:
    async def story() -> None:
        batch, _ = made()
        early = Caller(batch, limit=1000)
        batch.pause()
        late = Caller(batch, limit=1)
        assert (batch.count, len(batch.held)) == (1, 1)
        seen = len(early.words)
        await asyncio.sleep(5 * STEP_S)
        assert (len(early.words), late.words) == (seen, [])
        batch.resume()
        await idle(batch)
        assert (early.reason, late.reason) == ("length", "length")

    run(story)


def test_ending_all_and_dropping_all() -> None:
    async def story() -> None:
        batch, _ = made(max_num_seqs=1)
        callers = [Caller(batch) for _ in range(2)]
        batch.end_all("abort")
        assert [one.reason for one in callers] == ["abort", "abort"]
        lost = Caller(batch)
        assert batch.drop_all() == [lost.sequence]
        await asyncio.sleep(5 * STEP_S)
        assert lost.words == []

    run(story)


def test_a_stalled_core_makes_no_token_and_goes_on_later() -> None:
    async def story() -> None:
        batch, _ = made()
        stalled = True
        batch.stalled = lambda: stalled
        caller = Caller(batch, limit=2)
        await asyncio.sleep(10 * STEP_S)
        assert (caller.words, len(batch.running)) == ([], 1)
        stalled = False
        await idle(batch)
        assert caller.reason == "length"

    run(story)
