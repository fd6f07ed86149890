"""S03: a long text makes one model grow beside a hotline. With caps it queues in its own engine, and nobody is killed.

The engines are the simulator's own batches; how they slow each other is its documented model, told as simulated and
shown at half and double strength. Steps take a thousandth of their told time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import repeat

import pytest

from scheduler.kv import admitted_tokens
from scheduler.memory import room_mib
from scheduler.placement import Placement, place
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.world import Profile
from tests.scheduler.build import NOW, a_card, a_draft, a_replica, a_service, a_world
from workers.simulator.batch import BLOCK_TOKENS, Batch, Sequence
from workers.simulator.interference import busy_share, slowdown
from workers.simulator.metrics import Metrics

POLICY = Policy()
CARD_MIB = 24576
KV_BYTES = 131072  # a token
STEP_S = 0.03  # told; a thousandth of it passes
FAST = 1000
SEQS = 16
MIB = 2**20


def services(kv_mib: int = 4096):
    """A hotline and a reader of long texts; each with its cap."""
    hotline = a_service("hotline", weights=5000, kv=2048, headroom=600, max_num_seqs=SEQS)
    reader = a_service("reader", weights=7000, kv=kv_mib, headroom=600, profile=Profile.LOWFREQ, max_num_seqs=SEQS)
    return hotline, reader


@dataclass
class Engine:
    """One simulated batch; `steps` are the told seconds of each step."""

    kv_mib: int
    strength: float = 1.0
    neighbour: Engine | None = None
    steps: list[float] = field(default_factory=list)
    peak_mib: int = 0
    ended: int = 0
    most_waiting: int = 0

    def __post_init__(self) -> None:
        self.batch = Batch(SEQS, self.kv_mib * MIB // (KV_BYTES * BLOCK_TOKENS), Metrics("m", 65536, {}), self._step_s)

    def _step_s(self, prefill: int, kv_tokens: int, running: int) -> float:
        beside = self.neighbour.batch if self.neighbour else None
        busy = [busy_share(len(beside.running), SEQS)] if beside else []
        told = STEP_S * slowdown(busy, self.strength)
        self.steps.append(told)
        self.peak_mib = max(self.peak_mib, self.batch.used_blocks * BLOCK_TOKENS * KV_BYTES // MIB)
        self.most_waiting = max(self.most_waiting, len(self.batch.waiting))
        return told / FAST

    def call(self, prompt: int, answer: int) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def emit(word: int, reason: str | None) -> None:
            if reason is not None and not done.done():
                self.ended += 1
                done.set_result(None)

        self.batch.add(Sequence(prompt, answer, answer, repeat(0), emit))
        return done

    def p99_ms(self) -> float:
        """Of the gap between its tokens since the last look."""
        found, self.steps = sorted(self.steps), []
        return found[min(len(found) - 1, len(found) * 99 // 100)] * 1000


async def talk(engine: Engine, calls: int, prompt: int, answer: int, until: asyncio.Event) -> None:
    """So many callers, each calling again as soon as it has its answer."""

    async def one() -> None:
        while not until.is_set():
            await engine.call(prompt, answer)

    await asyncio.gather(*(one() for _ in range(calls)))


async def a_day(kv_mib: int, long_tokens: int, longs: int, strength: float, *, capped: bool = True):
    """(hotline, reader, P99 before, P99 while long texts are read). The reader is busy already with short ones."""
    hotline, reader = Engine(2048, strength), Engine(kv_mib if capped else 10**6, strength)
    hotline.neighbour, reader.neighbour = reader, hotline
    quiet = asyncio.Event()
    ordinary = asyncio.gather(talk(hotline, 4, 200, 40, quiet), talk(reader, 8, 400, 60, quiet))
    await asyncio.sleep(0.15)
    before = hotline.p99_ms()
    long = [reader.call(long_tokens, 50) for _ in range(longs)]
    await asyncio.wait(long, return_when=asyncio.FIRST_COMPLETED)
    while len([one for one in long if not one.done()]) > longs // 2:
        await asyncio.sleep(0.01)
    during = hotline.p99_ms()
    quiet.set()
    await asyncio.gather(ordinary, *long)
    return hotline, reader, before, during


def test_both_fit_by_their_claims_and_the_sum_of_all_they_can_ever_hold_fits_the_card():
    hotline, reader = services()
    card = a_card(total=CARD_MIB, reserved=450, unavailable_mib=450)
    first = place(a_world(card, hotline), POLICY, hotline, NOW)
    assert isinstance(first, Placement)
    there = a_replica(1, "hotline", kv_granted_mib=first.kv_granted_mib)
    second = place(a_world(card, hotline, reader, there), POLICY, reader, NOW)
    assert isinstance(second, Placement)
    both = [there, a_replica(2, "reader", kv_granted_mib=second.kv_granted_mib)]
    draft = a_draft(card, hotline, reader, *both)
    assert room_mib(draft.book("c1")) >= 0, "fixed parts, granted KV and the buffer, to the last MiB"


@pytest.mark.parametrize(("kv_mib", "long_tokens", "longs"), [(4096, 12000, 6), (3072, 20000, 4), (6144, 30000, 8)])
@pytest.mark.parametrize("strength", [0.5, 1.0, 2.0])
def test_the_grower_queues_in_its_own_engine_and_the_hotline_hardly_feels_it(kv_mib, long_tokens, longs, strength):
    hotline, reader, before, during = asyncio.run(a_day(kv_mib, long_tokens, longs, strength))
    assert reader.most_waiting > 0, "it queues"
    assert reader.peak_mib <= kv_mib
    assert during <= before * 1.08
    assert hotline.ended > 0
    assert reader.ended >= longs, "all are answered in the end"


def test_without_a_cap_the_same_texts_would_burst_the_card():
    """Else the test above would say little."""
    _, reader, _, _ = asyncio.run(a_day(4096, 30000, 8, 1.0, capped=False))
    hotline, other = services()
    held = 450 + hotline.claim.fixed_mib + 2048 + other.claim.fixed_mib + reader.peak_mib
    assert held > CARD_MIB


@pytest.mark.parametrize("used_pct", [96.0, 100.0])
def test_the_scheduler_kills_nobody_for_it(used_pct):
    """KV full with calls waiting: nobody goes from the card; the gateways send the reader less, and it is said."""
    card = a_card(total=CARD_MIB, reserved=450, unavailable_mib=450 + 8248 + 12296)
    hotline, reader = services()
    full = {"kv_used_pct": used_pct, "waiting": 6, "kv_full_samples": 2, "in_flight": 9}
    on = [
        a_replica(1, "hotline", kv_granted_mib=2048, measured_mib=8248, in_flight=4),
        a_replica(2, "reader", kv_granted_mib=4096, measured_mib=12296, **full),
    ]
    found = plan(a_world(card, hotline, reader, *on), POLICY, NOW)
    assert [d for d in found if d.refusal is None] == []
    assert [(d.service, d.refusal.code) for d in found] == [("reader", "kv_full")]


@pytest.mark.parametrize("kv_mib", [2048, 4096, 9000])
def test_what_gateways_let_through_does_not_even_fill_the_kv(kv_mib):
    tokens = kv_mib * MIB // KV_BYTES
    assert 0.85 * tokens <= admitted_tokens(tokens, POLICY, tight=False) <= 0.9 * tokens
    assert admitted_tokens(tokens, POLICY, tight=True) <= 0.7 * tokens


def test_of_two_growers_neither_takes_from_the_other():
    async def both():
        one, other = Engine(2048), Engine(2048)
        one.neighbour, other.neighbour = other, one
        await asyncio.gather(*(e.call(6000, 30) for e in (one, other) for _ in range(5)))
        return one, other

    one, other = asyncio.run(both())
    assert max(one.peak_mib, other.peak_mib) <= 2048
    assert min(one.most_waiting, other.most_waiting) > 0
    assert (one.ended, other.ended) == (5, 5)
