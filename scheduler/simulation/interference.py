"""How much slower an engine runs because of its neighbours on the card. SIMULATED: a model, not a measurement.

The function of the simulated engines (`workers.simulator.interference`, which says where it is from): without hardware
slices the processes on a card take turns, so with `b` the busy share of each neighbour a step takes
1 + strength * sum(b) times as long. A test holds the two against each other.
"""

from __future__ import annotations

from functools import cache

DECODE_FLOOR = 0.3
LOADING = 0.2


@cache
def busy_share(running: int, most: int) -> float:
    """Share of the card's time that an engine with `running` of at most `most` calls wants, 0..1."""
    if running == 0:
        return 0.0
    return DECODE_FLOOR + (1.0 - DECODE_FLOOR) * min(1.0, running / most)


def slowdown(neighbours_busy: float, strength: float) -> float:
    """Factor on a call's time; `neighbours_busy` is the sum over the other engines of the card."""
    return 1.0 + strength * max(0.0, neighbours_busy)
