"""Samples of NVIDIA cards and their MIG slices: a JSON line each period, until standard input closes.

Everything is keyed by UUID: the driver's numbering may change with every boot. What a card does not tell is None,
never zero; a card that answers an error is reported lost and spoils no other. Free memory is what the driver calls
free: `used` means different things in its two versions of the same question.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pynvml as nv

HEALED_S = 600.0  # so long without a new fault, and a card counts as healthy again
MIB = 1024 * 1024

#: XID codes that condemn the card: uncorrectable memory, fallen off the bus, uncontained error, dead GPU processor.
#: All others blame a process, which the agent sees for itself. Source: NVIDIA's list of XID errors.
CARD_XIDS = frozenset({48, 79, 94, 95, 119, 120})
#: The board, this driver or our rights do not know the answer; another card or release may.
UNKNOWN = frozenset(
    {
        nv.NVML_ERROR_NOT_SUPPORTED,
        nv.NVML_ERROR_NO_PERMISSION,
        nv.NVML_ERROR_NOT_FOUND,
        nv.NVML_ERROR_FUNCTION_NOT_FOUND,
        nv.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        nv.NVML_ERROR_DEPRECATED,
    }
)
Row = dict[str, Any]


def told(question: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or None where there is none. Raises NVMLError when the card or the driver is broken."""
    try:
        return question(*arguments)
    except nv.NVMLError as error:
        if error.value in UNKNOWN:
            return None
        raise


class Cards:
    """The cards of this machine through one initialised library; used by one thread of one process."""

    def __init__(self) -> None:
        """Raises NVMLError where there is no driver or no card."""
        nv.nvmlInit()
        self._seen: dict[str, Row] = {}  # the last row of each card or slice
        self._bad: dict[str, tuple[float, str]] = {}  # UUID → when, and which fault
        self._uncorrected: dict[str, int] = {}
        self._groups: dict[str, str] = {}
        self._events = _Events()

    def rows(self, now: float) -> list[Row]:
        """As `workers.messages.CardSample`. Raises NVMLError when the driver as a whole does not answer."""
        handles = list(self._handles())
        if self._groups.keys() != {uuid for uuid, _, _ in handles}:
            self._groups = groups(handles)
            self._events.watch(handles)
        for uuid, code in self._events.take():
            if code in CARD_XIDS:
                self._bad[uuid] = (now, f"XID {code}")
        rows: dict[str, Row] = {}
        for uuid, index, handle in handles:
            try:
                rows |= {row["uuid"]: row for row in self._card(uuid, index, handle, now)}
            except nv.NVMLError as error:
                self._bad[uuid] = (now, str(error))
        lost = {uuid: self._lost(row, now) for uuid, row in self._seen.items() if uuid not in rows}
        self._seen = rows | lost
        return sorted(self._seen.values(), key=lambda row: (row["index"], row["uuid"]))

    def _handles(self) -> Iterator[tuple[str, int, Any]]:
        for index in range(nv.nvmlDeviceGetCount()):
            try:
                handle = nv.nvmlDeviceGetHandleByIndex(index)
                yield nv.nvmlDeviceGetUUID(handle), index, handle
            except nv.NVMLError as error:
                if error.value == nv.NVML_ERROR_UNINITIALIZED:
                    raise
                # Which one it was shows by who is missing.

    def _lost(self, row: Row, now: float) -> Row:
        """A card that was here and is not: its size stays, its numbers are unknown."""
        owner = row["slice_of"] or row["uuid"]
        _, why = self._bad.get(owner, (now, "not listed by the driver"))
        return row | {"free_mib": None, "util_pct": None, "healthy": False, "note": why, "processes": []}

    def _card(self, uuid: str, index: int, handle: Any, now: float) -> list[Row]:
        """The card, or its slices where it is cut: then nothing runs on the whole."""
        health = self._health(uuid, handle, now)
        shared = {"index": index, "group": self._groups.get(uuid, ""), "compute_cap": capability(handle)} | health
        mode = told(nv.nvmlDeviceGetMigMode, handle)
        if not mode or mode[0] != nv.NVML_DEVICE_MIG_ENABLE:
            use = told(nv.nvmlDeviceGetUtilizationRates, handle)
            return [measured(handle) | shared | {"util_pct": use and use.gpu, "slice_of": ""}]
        cut = [told(nv.nvmlDeviceGetMigDeviceHandleByIndex, handle, i) for i in range(most_slices(handle))]
        return [measured(one) | shared | {"util_pct": None, "slice_of": uuid, "group": ""} for one in cut if one]

    def _health(self, uuid: str, handle: Any, now: float) -> Row:
        volatile = (handle, nv.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nv.NVML_VOLATILE_ECC)
        errors = told(nv.nvmlDeviceGetTotalEccErrors, *volatile)
        if errors is not None and errors > self._uncorrected.setdefault(uuid, errors):
            self._uncorrected[uuid] = errors
            self._bad[uuid] = (now, f"{errors} uncorrectable memory errors")
        remapped = told(nv.nvmlDeviceGetRemappedRows, handle)
        if remapped and (remapped[2] or remapped[3]):
            self._bad[uuid] = (now, "memory rows wait for a reset" if remapped[2] else "memory rows cannot be remapped")
        at, why = self._bad.get(uuid, (float("-inf"), ""))
        healthy = now - at >= HEALED_S
        return {"healthy": healthy, "note": "" if healthy else why}


class _Events:
    """Faults that the driver announces. Only those after registration arrive, so counters are read as well."""

    def __init__(self) -> None:
        self._set: Any = None

    def watch(self, handles: list[tuple[str, int, Any]]) -> None:
        if self._set is not None:
            nv.nvmlEventSetFree(self._set)
        self._set = told(nv.nvmlEventSetCreate)
        for _, _, handle in handles if self._set is not None else ():
            told(nv.nvmlDeviceRegisterEvents, handle, nv.nvmlEventTypeXidCriticalError, self._set)

    def take(self) -> Iterator[tuple[str, int]]:
        """(UUID, XID code) of each since the last look."""
        while self._set is not None:
            try:
                event = nv.nvmlEventSetWait_v2(self._set, 0)
            except nv.NVMLError as error:
                if error.value != nv.NVML_ERROR_TIMEOUT:
                    print(f"events: {error}", file=sys.stderr, flush=True)
                return
            try:
                yield nv.nvmlDeviceGetUUID(event.device), int(event.eventData)
            except nv.NVMLError:  # of a card that is gone: it is missing from the list as well
                continue


def capability(handle: Any) -> float | None:
    pair = told(nv.nvmlDeviceGetCudaComputeCapability, handle)
    return None if pair is None else pair[0] + pair[1] / 10


def most_slices(handle: Any) -> int:
    return told(nv.nvmlDeviceGetMaxMigDeviceCount, handle) or 0


def measured(handle: Any) -> Row:
    """Identity, memory and processes of a card or slice. Sizes are rounded against who wants to use them."""
    memory = told(nv.nvmlDeviceGetMemoryInfo, handle, nv.nvmlMemory_v2) or told(nv.nvmlDeviceGetMemoryInfo, handle)
    reserved = getattr(memory, "reserved", 0)
    seen = processes(handle)
    return {
        "uuid": nv.nvmlDeviceGetUUID(handle),
        "name": nv.nvmlDeviceGetName(handle),
        "total_mib": memory.total // MIB if memory else 0,
        "reserved_mib": -(-reserved // MIB),
        "free_mib": memory.free // MIB if memory else None,
        "processes": [{"pid": pid, "used_mib": used} for pid, used in sorted(seen.items())],
        "per_process": None not in seen.values(),
    }


def processes(handle: Any) -> dict[int, int | None]:
    """pid → MiB, None where the driver does not tell. A process may be in more than one of the three lists."""
    found: dict[int, int | None] = {}
    lists = (
        nv.nvmlDeviceGetComputeRunningProcesses,
        nv.nvmlDeviceGetGraphicsRunningProcesses,
        nv.nvmlDeviceGetMPSComputeRunningProcesses,
    )
    for question in lists:
        for one in told(question, handle) or ():
            used = None if one.usedGpuMemory is None else -(-one.usedGpuMemory // MIB)
            found[one.pid] = used if one.pid not in found or used is None else max(used, found[one.pid] or 0)
    return found


def groups(handles: list[tuple[str, int, Any]]) -> dict[str, str]:
    """UUID → name of the set of cards it reaches by NVLink; empty for a card alone."""
    leader = {uuid: uuid for uuid, _, _ in handles}
    numbers = {uuid: index for uuid, index, _ in handles}
    for (one, _, a), (other, _, b) in combinations(handles, 2):
        if told(nv.nvmlDeviceGetP2PStatus, a, b, nv.NVML_P2P_CAPS_INDEX_NVLINK) == nv.NVML_P2P_STATUS_OK:
            joined, into = leader[other], leader[one]
            leader = {uuid: into if name == joined else name for uuid, name in leader.items()}
    sizes = list(leader.values())
    return {uuid: f"nvlink-{numbers[first]}" if sizes.count(first) > 1 else "" for uuid, first in leader.items()}


class Sampler:
    """Opens the driver when it can, and again after it was lost."""

    def __init__(self) -> None:
        self._cards: Cards | None = None

    def sample(self, now: float) -> Row:
        """As `telemetry.Sample`. A driver that does not answer is a fault, never a machine without cards."""
        try:
            self._cards = self._cards or Cards()
            return {"at": now, "cards": self._cards.rows(now)}
        except nv.NVMLError as error:
            self._cards = None
            if error.value == nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
                raise  # the driver was upgraded under us: only a new process loads the new library
            return {"at": now, "fault": f"NVML: {error}"}


def main(period_s: float) -> None:
    sampler = Sampler()
    while True:
        print(json.dumps(sampler.sample(time.time())), flush=True)
        readable, _, _ = select.select([sys.stdin], [], [], period_s)
        if readable and not os.read(sys.stdin.fileno(), 4096):
            return


if __name__ == "__main__":
    main(float(sys.argv[1]))
