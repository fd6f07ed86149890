"""Small files that another process reads while we replace them."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """A reader sees the old or the new content, never half of one."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    scratch.write_bytes(content)
    scratch.replace(path)


def tail(path: Path, size_bytes: int) -> str:
    """The end of a text file; empty when there is none."""
    try:
        with path.open("rb") as handle:
            length = handle.seek(0, os.SEEK_END)
            handle.seek(max(0, length - size_bytes))
            return handle.read().decode("utf-8", "replace")
    except OSError:
        return ""


def cut_back(path: Path, max_bytes: int, keep_bytes: int) -> bool:
    """Shortens a log that somebody appends to, keeping its end in `<name>.1`. True if it was too long."""
    try:
        if path.stat().st_size <= max_bytes:
            return False
        path.with_name(f"{path.name}.1").write_text(tail(path, keep_bytes), encoding="utf-8")
        os.truncate(path, 0)  # the writer's descriptor is in append mode and goes on at the new end
    except OSError:
        return False
    return True


def lock(path: Path, wait_s: float) -> int:
    """Takes the file for this process's life (kill -9 lets go of it too). Raises BlockingIOError after `wait_s`."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(handle)
                raise
            time.sleep(0.1)
