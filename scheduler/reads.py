"""What real loads on a host say of its storage: decayed sums, enough for a straight line through them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reads:
    """Over past loads, younger ones counting more: count, GiB of weights, seconds, GiB squared, GiB times seconds."""

    n: float = 0.0
    gib: float = 0.0
    s: float = 0.0
    gib_gib: float = 0.0
    gib_s: float = 0.0
