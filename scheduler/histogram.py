"""Durations in a log-scale histogram whose merge is one addition.

Bucket 0 is up to 1 ms, bucket i holds (GAMMA^(i-1), GAMMA^i] ms; the middle told for a bucket is at most ERROR from
any value in it (the mapping of DDSketch: Masson, Rim, Lee, VLDB 2019). A `Histogram` is one big integer, 32 bits a
bucket: a farm's windows are merged each 10 s, and adding integers is what the interpreter does fastest.
"""

from __future__ import annotations

import math
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

ERROR = 0.02
GAMMA = (1 + ERROR) / (1 - ERROR)
BUCKETS = 384  # up to 75 min
SLOT_S = 10  # gateways begin a new histogram each 10 s of the epoch
MOST = 0xFFFF  # a bucket's count in one slot, on the wire
_SCALE = 1 / math.log(GAMMA)
_BITS = 32
_NONE = bytes(BUCKETS * array("I").itemsize)
_ALL = struct.Struct(f"<{BUCKETS}I")


class Histogram(NamedTuple):
    """`bits`: the counts, 32 bits each, bucket 0 lowest. `samples`: their sum."""

    bits: int = 0
    samples: int = 0

    def plus(self, other: Histogram) -> Histogram:
        """Both together."""
        return Histogram(self.bits + other.bits, self.samples + other.samples)

    @staticmethod
    def sum(parts: Iterable[Histogram]) -> Histogram:
        """All together."""
        parts = list(parts)
        return Histogram(sum([p.bits for p in parts]), sum([p.samples for p in parts]))

    def quantile_ms(self, share: float) -> float | None:
        """The value that `share` (0..1) of the samples do not exceed, within ERROR (below 1 ms: 1); None when empty."""
        if not self.samples:
            return None
        rank = max(1, math.ceil(share * self.samples))
        counts = _ALL.unpack(self.bits.to_bytes(_ALL.size, "little"))
        return middle_ms(bisect_left(list(accumulate(counts)), rank))


def bucket(ms: float) -> int:
    """Where a duration is counted."""
    return 0 if ms <= 1.0 else min(BUCKETS - 1, math.ceil(math.log(ms) * _SCALE))


def middle_ms(index: int) -> float:
    """What is told for a bucket: at most ERROR from both its ends."""
    return 1.0 if index == 0 else 2 * GAMMA**index / (GAMMA + 1)


class Tally:
    """A histogram being filled: one array, so that a record costs a logarithm and an addition."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts = array("I", _NONE)

    def add(self, ms: float) -> None:
        """Count one duration."""
        self.counts[0 if ms <= 1.0 else min(BUCKETS - 1, math.ceil(math.log(ms) * _SCALE))] += 1

    def packed(self) -> tuple[int, bytes]:
        """(first bucket, 16-bit little-endian counts from it to the last that is not zero); empty: (0, b"")."""
        raw, width = self.counts.tobytes(), self.counts.itemsize
        first = (len(raw) - len(raw.lstrip(b"\0"))) // width
        part = self.counts[first : -(-len(raw.rstrip(b"\0")) // width)]
        if not part:
            return 0, b""
        counts = part if max(part) <= MOST else [min(count, MOST) for count in part]
        return first, struct.pack(f"<{len(part)}H", *counts)


def unpacked(first: int, packed: bytes) -> Histogram:
    """What `Tally.packed` gave. Raises ValueError for what it cannot have given."""
    length = len(packed) // 2
    if len(packed) % 2 or not 0 <= first <= BUCKETS - length:
        raise ValueError(f"no histogram: {length} buckets from {first}")
    counts = struct.unpack(f"<{length}H", packed)
    bits = int.from_bytes(struct.pack(f"<{length}I", *counts), "little")
    return Histogram(bits << (first * _BITS), sum(counts))
