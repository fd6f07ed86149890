"""Simulated cards: the driver's view that telemetry reads, made from `cards.json` and what processes recorded.

Memory is integer MiB. A dead process is no longer listed, but its memory counts as used until `release_s` after its
death was noticed: whole for the first half of that time, then falling evenly; that is the lag real drivers show.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.simulator.faults import Fault, Faults
from workers.simulator.machine import ALLOC_FOLDER, CARDS_FILE, start_ticks, write_json

FOREIGN_PID_BASE = (
    2_000_000_000  # above any pid a kernel hands out: a simulated foreign process must never be taken for a live one
)


class TelemetryError(RuntimeError):
    """The driver library of the whole host does not answer."""


@dataclass(frozen=True, slots=True)
class CardSpec:
    """A card as `cards.json` describes it. `fp16_tflops` None: taken from the bandwidth (see rates.py)."""

    uuid: str
    index: int
    name: str
    total_mib: int
    reserved_mib: int
    mem_bw_gbs: float
    fp16_tflops: float | None = None
    group: str = ""  # cards of the host with the same one are joined by fast links
    slice_of: str = ""  # uuid of the chip that it is a hardware slice of: others on the chip do not slow it


@dataclass(frozen=True, slots=True)
class HostSpec:
    """A host's cards and how fast it loads: storage bandwidth in MiB/s, seconds before and after the weights."""

    cards: tuple[CardSpec, ...]
    bandwidth_mib_s: float = 2000.0
    init_s: float = 2.0
    warm_up_s: float = 1.0
    release_s: float = 1.0
    host_to_card_mib_s: float = 20_000.0  # pinned host memory to card, as PCIe 4.0 x16 gives in practice


@dataclass(frozen=True, slots=True)
class CardProcess:
    pid: int
    used_mib: int
    name: str
    replica: str = ""


@dataclass(frozen=True, slots=True)
class CardState:
    """A card as its driver shows it now. None: could not be measured."""

    uuid: str
    index: int
    name: str
    total_mib: int
    reserved_mib: int
    free_mib: int | None
    util_pct: int | None
    healthy: bool
    processes: tuple[CardProcess, ...]
    group: str = ""
    slice_of: str = ""


@dataclass(slots=True)
class Record:
    """What one process holds: the content of its file in `alloc/`. `busy` is its share of the card's time, 0..1."""

    pid: int
    start: int
    name: str
    replica: str
    service: str
    held_mib: dict[str, int]
    busy: float = 0.0
    stage: str = ""
    died_at: float | None = None

    @property
    def file_name(self) -> str:
        return f"{self.pid}.{self.start}.json"

    @property
    def targets(self) -> tuple[str, ...]:
        return (f"replica:{self.replica}", f"service:{self.service}", *(f"card:{uuid}" for uuid in self.held_mib))


@dataclass(slots=True)
class _Use:
    """Sums of one card while it is being read."""

    mib: int = 0
    busy: float = 0.0
    processes: list[CardProcess] = field(default_factory=list)


def make_cards(directory: Path, cards: Iterable[CardSpec | dict[str, Any]], **loading: float) -> HostSpec:
    """Makes (or replaces) the folder of a host. `loading`: the other fields of HostSpec, such as `init_s`."""
    specs = tuple(one if isinstance(one, CardSpec) else CardSpec(**one) for one in cards)
    host = HostSpec(specs, **loading)
    (directory / ALLOC_FOLDER).mkdir(parents=True, exist_ok=True)
    rows = [{name: getattr(one, name) for name in CardSpec.__slots__} for one in specs]
    write_json(
        directory / CARDS_FILE, {"cards": rows} | {n: getattr(host, n) for n in HostSpec.__slots__ if n != "cards"}
    )
    return host


def read_host(directory: Path) -> HostSpec:
    """What `make_cards` wrote. Raises OSError or ValueError for a folder that is not a simulated host."""
    content = json.loads((directory / CARDS_FILE).read_text(encoding="utf-8"))
    return HostSpec(tuple(CardSpec(**row) for row in content.pop("cards")), **content)


def read_records(directory: Path, faults: Faults, release_s: float, now: float) -> list[Record]:
    """All live processes, and dead ones whose memory is not back yet with what still counts of it."""
    records = []
    with os.scandir(directory / ALLOC_FOLDER) as entries:
        names = [entry.name for entry in entries if entry.name.endswith(".json") and entry.name[0] != "."]
    for name in names:
        path = directory / ALLOC_FOLDER / name
        try:
            record = Record(**json.loads(path.read_bytes()))
        except FileNotFoundError:  # another reader tidied it away
            continue
        alive = record.died_at is None and start_ticks(record.pid) == record.start
        if alive or _shrink(path, record, faults, release_s, now):
            records.append(record)
    return records


def _shrink(path: Path, record: Record, faults: Faults, release_s: float, now: float) -> bool:
    """Leaves in `record` what its death has not given back yet; forgets the record when nothing is left."""
    if record.died_at is None:
        record.died_at = now
        record.busy = 0.0
        write_json(path, record_row(record))
    release = faults.find("release", *record.targets)
    leave = faults.find("leave", *record.targets)
    wait_s = release.number("seconds") if release else release_s
    stays = 1.0 - release.number("share") if release else 0.0
    gone = _given_back(now - record.died_at, wait_s)
    for uuid, mib in record.held_mib.items():
        kept = min(mib, max(round(mib * stays), leave.whole("mib") if leave else 0))
        record.held_mib[uuid] = kept + round((mib - kept) * (1.0 - gone))
    if any(record.held_mib.values()):
        return True
    path.unlink(missing_ok=True)
    return False


def _given_back(since_s: float, wait_s: float) -> float:
    """Share of a dead process's memory that is free again. A clock set back counts as long ago."""
    if since_s < 0 or since_s >= wait_s:
        return 1.0
    return max(0.0, 2.0 * since_s / wait_s - 1.0)


def record_row(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in Record.__slots__}


def read_cards(directory: Path) -> list[CardState]:
    """The host's cards now, in order of index. Raises TelemetryError when the whole host's driver is said to fail."""
    faults = Faults(directory)
    broken = faults.all_of("telemetry")
    if "*" in broken:
        raise TelemetryError("NVML: Driver Not Loaded")
    host = read_host(directory)
    uses = _sum_up(host, read_records(directory, faults, host.release_s, time.time()), faults)
    order = faults.find("card_order")
    places = [int(word) for word in str(order.values["order"]).split(",")] if order else []
    states = []
    for position, card in enumerate(host.cards):
        index = places[position] if position < len(places) else card.index
        states.append(_state(card, index, uses[card.uuid], broken.get(f"card:{card.uuid}")))
    return sorted(states, key=lambda state: state.index)


def _sum_up(host: HostSpec, records: list[Record], faults: Faults) -> dict[str, _Use]:
    uses = {card.uuid: _Use() for card in host.cards}
    for record in records:
        for uuid, mib in record.held_mib.items():
            use = uses.setdefault(uuid, _Use())
            use.mib += mib
            use.busy += record.busy
            if record.died_at is None:
                use.processes.append(CardProcess(record.pid, mib, record.name, record.replica))
    for number, (target, fault) in enumerate(sorted(faults.all_of("foreign_memory").items())):
        pid = fault.whole("pid") or FOREIGN_PID_BASE + number
        for uuid in uses if target == "*" else [target.partition(":")[2]]:
            use = uses.setdefault(uuid, _Use())
            use.mib += fault.whole("mib")
            use.processes.append(CardProcess(pid, fault.whole("mib"), str(fault.values["name"])))
    return uses


def _state(card: CardSpec, index: int, use: _Use, broken: Fault | None) -> CardState:
    fixed = (card.uuid, index, card.name, card.total_mib, card.reserved_mib)
    if broken:
        return CardState(*fixed, None, None, not broken.values["lost"], (), card.group, card.slice_of)
    free = max(0, card.total_mib - card.reserved_mib - use.mib)
    return CardState(
        *fixed, free, min(100, round(100 * use.busy)), True, tuple(use.processes), card.group, card.slice_of
    )
