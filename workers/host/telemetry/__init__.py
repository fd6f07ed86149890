"""What the cards of this host show, read by a process of its own: a crash in a vendor's library ends that, not us.

A source is a module run with `python -m`; it writes one `Sample` as a line of JSON a period and ends when its
standard input closes, so not even kill -9 of the agent leaves one. One line in `SOURCES` enlists a source.
"""

from __future__ import annotations

import logging
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import msgspec
import psutil

from workers.host.command import INHERITED, INHERITED_PREFIX
from workers.host.engines.base import ROOT
from workers.host.limits import Limits
from workers.host.settings import Settings
from workers.messages import CardSample

MIB = 1024 * 1024
READ_BYTES = 256 * 1024

log = logging.getLogger(__name__)

SOURCES = {"simulated": "workers.host.telemetry.simulated", "nvml": "workers.host.telemetry.nvml"}


@dataclass(frozen=True, slots=True)
class Sample:
    """`at`: seconds since the epoch. `fault`: the driver of the whole host does not answer; then no cards."""

    at: float
    cards: list[CardSample] = field(default_factory=list)
    memory_mib: int = 0
    memory_free_mib: int | None = None
    bandwidth_mib_s: int | None = None
    fault: str = ""


class Telemetry:
    """The last sample, and the watcher that keeps its source alive."""

    def __init__(self, settings: Settings, limits: Limits) -> None:
        self._settings, self._limits = settings, limits
        self._last: Sample | None = None
        self._fault = "starting"
        self._halt = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def halt(self) -> None:
        self._halt.set()
        child = self._child
        if child is not None:
            child.terminate()
        self._thread.join(self._limits.sample_s * 3)

    @property
    def sample(self) -> Sample | None:
        return self._last

    @property
    def at(self) -> float | None:
        """Time of the last measured sample; None: telemetry is silent."""
        return self._last.at if self._last and not self._fault else None

    def cards(self) -> list[CardSample]:
        """The last sample's cards; where telemetry has failed since, the same cards with nothing measured."""
        cards = self._last.cards if self._last else []
        if not self._fault:
            return cards
        return [replace(card, free_mib=None, util_pct=None, processes=[], note=self._fault) for card in cards]

    def totals_mib(self) -> dict[str, int] | None:
        """Card → its size, which does not change; None: never seen any."""
        return {card.uuid: card.total_mib for card in self._last.cards} if self._last else None

    def measured_mib(self, pids: set[int]) -> int | None:
        """What these processes hold on their fullest card; None: not measured, or not seen there (yet)."""
        if self.at is None or self._last is None:
            return None
        sums = []
        for card in self._last.cards:
            used = [one.used_mib for one in card.processes if one.pid in pids]
            if None in used:
                return None
            if used:
                sums.append(sum(mib for mib in used if mib is not None))
        return max(sums, default=None)

    def _run(self) -> None:
        while not self._halt.is_set():
            try:
                self._listen()
            except (OSError, ValueError) as error:
                log.error("telemetry: %s", error)
            self._halt.wait(self._limits.sample_s)

    def _listen(self) -> None:
        """Take samples until the source ends, or says nothing for so long that it hangs."""
        child = self._start()
        self._child = child
        if self._halt.is_set():
            child.terminate()
        assert child.stdout is not None
        try:
            for line in newest(child.stdout.fileno(), self._limits.sample_hung_s):
                self.take(line)
        finally:
            self._end(child)

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """A process that hangs in the kernel survives even this: then the next one is not tried at once."""
        self._fault = "sampler ended" if child.poll() is not None else "the driver does not answer"
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        try:
            child.wait(self._limits.sample_s)
        except subprocess.TimeoutExpired:
            log.error("telemetry: the sampler cannot be ended")
            self._halt.wait(self._limits.sampler_rest_s)

    def _start(self) -> subprocess.Popen[bytes]:
        inherited = {n: v for n, v in os.environ.items() if n in INHERITED or n.startswith(INHERITED_PREFIX)}
        return subprocess.Popen(
            [sys.executable, "-m", SOURCES[self._settings.telemetry], str(self._limits.sample_s)],
            env=inherited | {"GONGKA_SIM_DIR": str(self._settings.cards), "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def take(self, line: bytes) -> None:
        """One line of the source. A line that is no sample says only that it could not be measured."""
        try:
            sample = msgspec.json.decode(line, type=Sample)
        except msgspec.DecodeError as error:
            self._fault = f"bad sample: {error}"
            return
        if sample.fault:
            self._fault = sample.fault
        else:
            self._last, self._fault = sample, ""


def newest(fd: int, silence_s: float) -> Iterator[bytes]:
    """The newest whole line of each read, until the writer ends or is silent for so long."""
    rest = b""
    while select.select([fd], [], [], silence_s)[0] and (got := os.read(fd, READ_BYTES)):
        *whole, rest = (rest + got).split(b"\n")
        yield from whole[-1:]


def machine_memory_mib() -> tuple[int, int]:
    """(all, available) memory of this machine, for sources that do not say their own."""
    memory = psutil.virtual_memory()
    return memory.total // MIB, memory.available // MIB
