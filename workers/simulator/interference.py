"""How much slower an engine runs because of its neighbours on the same card. SIMULATED: a model, not a measurement.

Source: without MIG or MPS the processes on a card are time-sliced: contexts take turns, and an engine that wants
the chip waits for the slices of the others. With `b` the busy share of each neighbour (0..1, published in its
allocation record) and processor sharing, a sequence takes

    slowdown = 1 + strength * sum(b)

times as long: beside one saturated neighbour twice as long at strength 1, beside three four times; an idle neighbour
costs nothing. The equal split of a saturated card is what time-slicing gives; that the wait grows in proportion with
the busy share below saturation is our assumption, as are these shares:

- decoding keeps the chip busy for DECODE_FLOOR with one sequence and fully with a full batch;
- reading weights (copies over the bus, which also take memory bandwidth) counts as LOADING.

Claims that rest on it are shown at half and double strength (`GONGKA_SIM_INTERFERENCE` 0.5 and 2).
"""

from __future__ import annotations

from collections.abc import Iterable

DECODE_FLOOR = 0.3
LOADING = 0.2


def busy_share(running: int, max_num_seqs: int) -> float:
    """Share of the card's time that an engine with `running` sequences of at most `max_num_seqs` wants, 0..1."""
    if running == 0:
        return 0.0
    return DECODE_FLOOR + (1.0 - DECODE_FLOOR) * min(1.0, running / max_num_seqs)


def slowdown(neighbours_busy: Iterable[float], strength: float = 1.0) -> float:
    """Factor on every step's duration, at least 1."""
    return 1.0 + strength * sum(min(1.0, max(0.0, busy)) for busy in neighbours_busy)
