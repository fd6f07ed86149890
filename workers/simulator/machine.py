"""The folder that stands for one host: where its files lie, how they are written, and which processes live."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CARDS_FILE = "cards.json"
FAULTS_FILE = "faults.json"
ALLOC_FOLDER = "alloc"
MIB = 1024 * 1024
GIB = 1024 * MIB


def write_json(path: Path, value: Any) -> None:
    """Replaces `path` in one step, so that a reader sees the old or the new text and never half of one."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    scratch.replace(path)


@contextmanager
def locked(directory: Path, name: str) -> Iterator[None]:
    """Holds the host-wide lock `name`; the kernel lets go of it when its holder dies, so kill -9 blocks nobody."""
    handle = os.open(directory / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def start_ticks(pid: int) -> int | None:
    """When process `pid` began, in clock ticks since boot; None if it is gone.

    A zombie counts as gone: the driver takes its memory back although nobody has waited for it yet.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            fields = handle.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
