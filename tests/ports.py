"""Ports for servers that a test starts, and that nobody else takes before they listen.

The system gives out ports for connections and for `bind(0)` from one range, to every process: a free one seen there
may be another's a second later. These are below that range, a block a process.
"""

from __future__ import annotations

import os
from itertools import count

from demo.preflight import port_free

FIRST, BLOCK, BLOCKS = 20000, 50, 240
_given = count()


def free_ports(number: int) -> list[int]:
    """So many in a row of this process's block, that nobody listens on; each call gives others, until all have been."""
    block = FIRST + os.getpid() % BLOCKS * BLOCK
    for _ in range(BLOCK):
        first = block + next(_given) * number % (BLOCK - number + 1)
        ports = list(range(first, first + number))
        if all(map(port_free, ports)):
            return ports
    raise AssertionError(f"no {number} ports in a row are free from {block} on")


def free_port() -> int:
    return free_ports(1)[0]
