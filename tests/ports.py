"""Ports for servers that a test starts, and that nobody else takes before they listen.

The system gives out ports for connections and for `bind(0)` from one range, to every process: a free one seen there
may be another's a second later. These are below that range, a block a process.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from functools import cache
from itertools import count
from pathlib import Path

from demo.preflight import port_free

FIRST, BLOCK, BLOCKS = 20000, 50, 240
_given = count()


def free_ports(number: int) -> list[int]:
    """So many in a row of this process's block, that nobody listens on; each call gives others, until all have been."""
    block = _block(os.getpid())
    for _ in range(BLOCK):
        first = block + next(_given) * number % (BLOCK - number + 1)
        ports = list(range(first, first + number))
        if all(map(port_free, ports)):
            return ports
    raise AssertionError(f"no {number} ports in a row are free from {block} on")


def free_port() -> int:
    return free_ports(1)[0]


@cache
def _block(process: int) -> int:
    """First port of a block that is ours while we live: other test processes of the machine have others."""
    for number in range(process, process + BLOCKS):
        if _taken(Path(tempfile.gettempdir()) / f"gk-ports-{number % BLOCKS}.lock"):
            return FIRST + number % BLOCKS * BLOCK
    raise AssertionError(f"all {BLOCKS} blocks of ports are taken")


def _taken(path: Path) -> bool:
    """Locked by us, until this process ends; False: another has it."""
    try:
        lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except PermissionError:  # of another user, who may be using it
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    return True
