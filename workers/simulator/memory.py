"""What one simulated engine holds on its cards: taken, given back, and published for its neighbours."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from workers.simulator.cards import CardSpec, HostSpec, Record, read_host, read_records, record_row
from workers.simulator.faults import Fault, Faults, clear_faults
from workers.simulator.machine import ALLOC_FOLDER, locked, start_ticks, write_json


class OutOfMemory(RuntimeError):
    """A card has less free than was asked for; the text is the one CUDA's allocator gives."""


class Memory:
    """The allocation record of this process. Amounts are MiB on each of its cards."""

    def __init__(self, directory: Path, uuids: list[str], replica: str, service: str, pid: int = 0) -> None:
        """`pid`: the process that the driver shows, this one if not said. Raises ValueError for an unknown card."""
        self.directory = directory
        self.faults = Faults(directory)
        self.host: HostSpec = read_host(directory)
        by_uuid = {card.uuid: card for card in self.host.cards}
        missing = [uuid for uuid in uuids if uuid not in by_uuid]
        if missing or not uuids:
            raise ValueError(f"no simulated card {', '.join(missing) or '(none named)'}")
        self.cards: list[CardSpec] = [by_uuid[uuid] for uuid in uuids]
        pid = pid or os.getpid()
        held = dict.fromkeys(uuids, 0)
        self._record = Record(pid, start_ticks(pid) or 0, "VLLM::Worker", replica, service, held)
        self._path = directory / ALLOC_FOLDER / self._record.file_name
        self._asked_mib = 0

    @property
    def targets(self) -> tuple[str, ...]:
        """By which names a fault may mean this engine, most specific first."""
        return self._record.targets

    @property
    def held_mib(self) -> int:
        return self._asked_mib

    def others(self) -> list[Record]:
        """The records of all other processes of the host, dead ones included until their memory is back."""
        records = read_records(self.directory, self.faults, self.host.release_s, time.time())
        return [one for one in records if one.pid != self._record.pid]

    def free_mib(self) -> list[int]:
        """Free memory of each of this engine's cards, in their order."""
        others = self.others()
        return [self._free_of(card, others) for card in self.cards]

    def _free_of(self, card: CardSpec, others: list[Record]) -> int:
        taken = sum(one.held_mib.get(card.uuid, 0) for one in others)
        for target, fault in self.faults.all_of("foreign_memory").items():
            taken += fault.whole("mib") if target in ("*", f"card:{card.uuid}") else 0
        return card.total_mib - card.reserved_mib - taken - self._record.held_mib[card.uuid]

    def take(self, total_mib: int) -> None:
        """Holds `total_mib` on each card from now on. Raises OutOfMemory, changing nothing, where more is not free.

        Look and take happen under one host-wide lock: two engines never get the same memory.
        """
        more = total_mib - self._asked_mib
        with locked(self.directory, "alloc"):
            others = self.others() if more > 0 else []
            for number, card in enumerate(self.cards if more > 0 else []):
                free = self._free_of(card, others)
                if more > free:
                    raise OutOfMemory(_oom_text(number, card, more, max(0, free)))
            self._asked_mib = total_mib
            self._record.held_mib = dict.fromkeys(self._record.held_mib, total_mib)
            self._write()

    def publish(self, busy: float, stage: str) -> None:
        """Tells the neighbours what share of the card's time this engine wants, and what it is doing."""
        if (busy, stage) != (self._record.busy, self._record.stage):
            self._record.busy, self._record.stage = busy, stage
            self._write()

    def release(self) -> None:
        """The part of the engine that held the memory ends; it comes back as after any death."""
        if self._record.died_at is not None:
            return
        if self._record.pid != os.getpid():
            with suppress(ProcessLookupError):
                os.kill(self._record.pid, signal.SIGKILL)
        self._record.died_at = time.time()
        self._record.busy = 0.0
        self._write()

    def fired(self, fault: Fault) -> None:
        """A fault has struck; one that was meant for a single time is over."""
        if fault.values.get("once"):
            clear_faults(self.directory, fault.kind, fault.target)

    def neighbours(self) -> list[Record]:
        """Live processes on any of this engine's cards."""
        mine = set(self._record.held_mib)
        return [one for one in self.others() if one.died_at is None and mine & set(one.held_mib)]

    def loaders(self) -> int:
        """How many other engines of the host are reading weights: storage bandwidth is shared among them."""
        return sum(one.stage == "weights" and one.died_at is None for one in self.others())

    def _write(self) -> None:
        write_json(self._path, record_row(self._record))


def _oom_text(number: int, card: CardSpec, more_mib: int, free_mib: int) -> str:
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {more_mib / 1024:.2f} GiB. "
        f"GPU {number} has a total capacity of {card.total_mib / 1024:.2f} GiB of which "
        f"{free_mib / 1024:.2f} GiB is free."
    )
