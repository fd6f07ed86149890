"""What a process loads once is never garbage: keep the collector from walking through it in a request or a tick."""

from __future__ import annotations

import gc

#: New objects before a collection, in a process that answers pages. Each page leaves a few hundred that hold each other
#: (a request and its user): many short collections rather than one of 85 ms in the middle of somebody's page.
PAGES = 5_000
#: The same in the loop: a tick of 300 cards makes 50,000 that live until it ends, and is not walked through ten times.
TICKS = 50_000
#: Young collections before one of the middle generation, and those before a whole one.
MIDDLE, WHOLE = 10, 20


def settle(young: int = TICKS) -> None:
    """Call once when everything is loaded. Measured: a full collection in a request costs 30 to 60 ms."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(young, MIDDLE, WHOLE)
