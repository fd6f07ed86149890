"""What callers wait for, replica by replica: log-scale histograms in 10 s slots, told to control slot by slot.

Filled in memory only. A slot that Redis did not take is sent again, up to five minutes late.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import msgspec

from console.gateway.limits import KIB, Limits
from console.gateway.wire import Wire
from scheduler.histogram import SLOT_S, Tally

log = logging.getLogger(__name__)

TTFT, TPOT, TOTAL = "ttft", "tpot", "total"
ENVELOPE_BYTES = 64  # more than a slot, or one replica of it, has beside its counts


@dataclass(slots=True)
class Tallies:
    """Of one replica in one slot: its service's metric, and the gaps between chunks of its streams."""

    metric: str = TTFT
    calls: Tally = field(default_factory=Tally)
    gaps: Tally = field(default_factory=Tally)


class Latency:
    """The slot being filled, and those not sent yet."""

    def __init__(self, name: str, limits: Limits) -> None:
        self._name, self._limits = name, limits
        self._replicas: dict[int, Tallies] = {}
        self._slot = _slot_now()
        self._waiting: deque[bytes] = deque(maxlen=limits.slots_kept)

    def call(self, replica: int, metric: str, ms: float) -> None:
        """One call's figure, the hold excluded; `metric` is what its service is measured by."""
        tallies = self._of(replica)
        if tallies.metric != metric:  # the service changed its mind: two metrics are never mixed
            tallies.metric, tallies.calls = metric, Tally()
        tallies.calls.add(ms)

    def gap(self, replica: int, ms: float) -> None:
        """Between two chunks of one stream."""
        self._of(replica).gaps.add(ms)

    def _of(self, replica: int) -> Tallies:
        found = self._replicas.get(replica)
        if found is None:
            found = self._replicas[replica] = Tallies()
        return found

    def close(self) -> None:
        """End the slot; the next begins empty."""
        replicas, self._replicas = self._replicas, {}
        slot, self._slot = self._slot, _slot_now()
        if replicas:
            self._waiting.append(body(slot, replicas, self._limits.slot_kib * KIB))

    async def follow(self, wire: Wire) -> None:
        """At each border of 10 s close the slot and send what waits. Runs until cancelled."""
        while True:
            await asyncio.sleep(SLOT_S - time.time() % SLOT_S)
            if self._slot != _slot_now():
                self.close()
            async with wire.patiently("latency"):
                while self._waiting:
                    await wire.send_slot(self._name, self._waiting[0], self._limits.slots_kept)
                    self._waiting.popleft()


def _slot_now() -> int:
    return int(time.time()) // SLOT_S


def body(slot: int, replicas: dict[int, Tallies], most_bytes: int) -> bytes:
    """One slot as control reads it (docs/wire.md). Over `most_bytes` the replicas with the fewest samples stay out."""
    packed: dict[int, list[Any]] = {
        number: [tallies.metric, *tallies.calls.packed(), *tallies.gaps.packed()]
        for number, tallies in replicas.items()
    }
    whole = msgspec.msgpack.encode({"slot": slot, "replicas": packed})
    if len(whole) <= most_bytes:
        return whole
    kept: dict[int, list[Any]] = {}
    left = most_bytes - ENVELOPE_BYTES
    for number in sorted(packed, key=lambda n: -sum(replicas[n].calls.counts) - sum(replicas[n].gaps.counts)):
        left -= len(packed[number][2]) + len(packed[number][4]) + ENVELOPE_BYTES
        if left < 0:
            break
        kept[number] = packed[number]
    log.warning("latencies of %d replicas left out of a slot", len(packed) - len(kept))
    return msgspec.msgpack.encode({"slot": slot, "replicas": kept})
