"""Usage records on disk until control has stored them: numbered without a gap, over restarts and kill -9.

Segment files `<first seq>.jsonl`, append only. The newest stays although acknowledged, so that the numbers go on.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from console.gateway.limits import MIB, Limits
from console.gateway.wire import Wire

log = logging.getLogger(__name__)

BATCH = 200
IDLE_S = 0.5
TOGETHER_S = 0.05  # records of one moment travel together


class Numbered(msgspec.Struct):
    seq: int


class Spool:
    """One per gateway name: a lock keeps a second process of that name out (RuntimeError)."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder, self._limits = folder, limits
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise RuntimeError(f"another gateway runs under the name {folder.name!r}") from None
        self.lost = 0  # records not kept because the spool was full
        self._acked = self._sent = 0
        self._position: tuple[Path, int] | None = None  # segment and offset after the last record sent
        self._more = asyncio.Event()
        self._open_newest()

    def _open_newest(self) -> None:
        segments = self.segments()
        # A lost folder must not number from 1 again: control has counted those. Time is above any old number.
        path = segments[-1] if segments else self._folder / f"{int(time.time() * 1000):020d}.jsonl"
        self._file = open(path, "ab")  # noqa: SIM115 - held for life
        self.seq = int(path.stem) - 1
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):  # torn by kill -9: the record was never numbered for anybody else
            os.truncate(path, whole)
            self._file.seek(0, os.SEEK_END)
        if whole:
            self.seq = msgspec.json.decode(data[:whole].rstrip().rsplit(b"\n", 1)[-1], type=Numbered).seq
        self._size = whole
        self._total = sum(segment.stat().st_size for segment in segments)

    def segments(self) -> list[Path]:
        return sorted(self._folder.glob("*.jsonl"))

    def append(self, record: dict[str, Any]) -> None:
        """Number the record and keep it. A full spool or disk loses it, counted in `lost`: calls go on."""
        line = msgspec.json.encode({**record, "seq": self.seq + 1}) + b"\n"
        if self._total + len(line) > self._limits.spool_mib * MIB:
            self._lose("full")
            return
        try:
            if self._size + len(line) > self._limits.segment_kib * 1024 and self._size:
                self._rotate()
            os.write(self._file.fileno(), line)
        except OSError as error:
            self._lose(str(error))
            os.truncate(self._file.fileno(), self._size)
            return
        self.seq += 1
        self._size += len(line)
        self._total += len(line)
        self._more.set()

    def _lose(self, why: str) -> None:
        self.lost += 1
        if self.lost & (self.lost - 1) == 0:  # at 1, 2, 4, 8, …
            log.error("usage record lost, spool %s: %d so far", why, self.lost)

    def _rotate(self) -> None:
        file = open(self._folder / f"{self.seq + 1:020d}.jsonl", "ab")  # noqa: SIM115 - held for life
        self._file.close()
        self._file, self._size = file, 0

    def acknowledge(self, upto: int) -> None:
        """Control stored all records up to `upto`: segments that hold no other are deleted, the newest apart."""
        self._acked = max(self._acked, min(upto, self.seq))
        segments = self.segments()
        for segment, following in zip(segments, segments[1:], strict=False):
            if int(following.stem) - 1 > self._acked:
                break
            if self._position is not None and self._position[0] == segment:
                break  # still being read; next time
            self._total -= segment.stat().st_size
            segment.unlink()

    def unsent(self, count: int) -> list[tuple[int, bytes, tuple[Path, int]]]:
        """The next records after what was sent and acknowledged, oldest first: (seq, body, position after it)."""
        found: list[tuple[int, bytes, tuple[Path, int]]] = []
        for segment, offset in self._from_position():
            with open(segment, "rb") as file:
                file.seek(offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    offset += len(line)
                    seq = msgspec.json.decode(line, type=Numbered).seq
                    if seq > max(self._sent, self._acked):
                        found.append((seq, line[:-1], (segment, offset)))
                    if len(found) >= count:
                        return found
        return found

    def _from_position(self) -> Iterator[tuple[Path, int]]:
        for segment in self.segments():
            if self._position is None or segment > self._position[0]:
                yield segment, 0
            elif segment == self._position[0]:
                yield self._position

    def rewind(self) -> None:
        """What was sent may be lost: begin again after the last acknowledged one."""
        self._sent, self._position = self._acked, None

    async def follow(self, wire: Wire, name: str) -> None:
        """Send in order, again after every outage and whatever stays unacknowledged. Runs until cancelled."""
        sent_at = time.monotonic()
        while True:
            async with wire.patiently("usage"):
                self._more.clear()
                before = self._acked
                self.acknowledge(await wire.acknowledged(name))
                if self._acked > before or self._acked >= self._sent:
                    sent_at = time.monotonic()
                elif time.monotonic() - sent_at > self._limits.resend_s:
                    sent_at = time.monotonic()
                    self.rewind()
                for seq, body, position in self.unsent(BATCH):
                    await wire.send_usage(body)
                    self._sent, self._position = seq, position
                await self._pause()
                continue
            self.rewind()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(IDLE_S):
                await self._more.wait()
            await asyncio.sleep(TOGETHER_S)
        except TimeoutError:
            return

    def close(self) -> None:
        self._file.close()
        os.close(self._lock)
