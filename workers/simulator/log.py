"""Log lines as vLLM writes them, so that whoever follows an engine's log needs no second parser."""

from __future__ import annotations

import os
import time


def line(who: str, text: str, level: str = "INFO", where: str = "core.py:402") -> None:
    """`who`: APIServer, EngineCore or Worker. Text of several lines is repeated with the same head, as vLLM does."""
    stamp = time.strftime("%m-%d %H:%M:%S")
    for part in text.splitlines() or [""]:
        print(f"({who} pid={os.getpid()}) {level} {stamp} [{where}] {part}", flush=True)


def bare(text: str) -> None:
    """A line without a head: progress bars, tracebacks and uvicorn's own."""
    print(text, flush=True)
