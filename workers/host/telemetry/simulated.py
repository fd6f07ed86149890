"""Samples of simulated cards: a JSON line each period, until standard input closes. Standard library only: 10 MB."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path
from typing import Any

from workers.simulator.cards import CardState, TelemetryError, read_cards, read_host

#: Host memory of a simulated host, MiB: what servers with eight cards of this kind have. The real machine's would
#: say that no model can sleep on a laptop.
MEMORY_MIB = 512 * 1024


def row(card: CardState) -> dict[str, Any]:
    """As `workers.messages.CardSample`; whose process it is, only the agent can tell."""
    names = (
        "uuid",
        "index",
        "name",
        "total_mib",
        "reserved_mib",
        "free_mib",
        "util_pct",
        "healthy",
        "group",
        "slice_of",
    )
    processes = [{"pid": one.pid, "used_mib": one.used_mib, "name": one.name} for one in card.processes]
    return {name: getattr(card, name) for name in names} | {"processes": processes}


def sample(directory: Path) -> dict[str, Any]:
    """As `telemetry.Sample`. A host whose driver or folder cannot be read is a fault, never an empty host."""
    at = time.time()
    try:
        host = read_host(directory)
        cards = [row(card) for card in read_cards(directory)]
    except (TelemetryError, OSError, ValueError) as error:
        return {"at": at, "fault": f"{error}" or type(error).__name__}
    memory_mib = int(os.environ.get("GONGKA_SIM_MEMORY_MIB", MEMORY_MIB))
    return {"at": at, "cards": cards, "memory_mib": memory_mib, "bandwidth_mib_s": int(host.bandwidth_mib_s)}


def main(period_s: float) -> None:
    directory = Path(os.environ["GONGKA_SIM_DIR"])
    while True:
        print(json.dumps(sample(directory)), flush=True)
        readable, _, _ = select.select([sys.stdin], [], [], period_s)
        if readable and not os.read(sys.stdin.fileno(), 4096):
            return


if __name__ == "__main__":
    main(float(sys.argv[1]))
