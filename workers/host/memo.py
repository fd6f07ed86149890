"""What the host must not forget about a replica over a restart of its agent: `engines/<replica>/memo.json`.

The machine says what runs; this file says what it means (which attempt, since when, why it failed).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from workers.host import files

NOTHING, LOADING, AWAKE, ASLEEP, STOPPED, FAILED = ("", "loading", "awake", "asleep", "stopped", "failed")


@dataclass(slots=True)
class Memo:
    """Times are seconds since the epoch, None: not yet. `state` is one of the words above."""

    attempt: int = 0
    state: str = NOTHING
    kind: str = "vllm"
    service: str = ""
    served_name: str = ""
    cards: list[str] = field(default_factory=list)
    sleep_mode: bool = False
    started_at: float = 0.0
    wake_at: float | None = None  # a wake began and has not ended
    stop_at: float | None = None  # a stop began: out of the door's map since then
    term_at: float | None = None  # first SIGTERM: from here there is no way back
    took_s: float | None = None
    took: str = ""
    fault: str = ""
    fault_text: str = ""
    fatal: bool = False
    phase: str = ""  # as last reported
    since: float = 0.0  # of that phase

    @property
    def lives(self) -> bool:
        """Is there supposed to be an engine?"""
        return self.state in (LOADING, AWAKE, ASLEEP)

    @property
    def on_its_way(self) -> bool:
        """Does it hold its cards' turn? (a start or a wake; a sleep in progress is a call of the living agent)"""
        return self.state == LOADING or self.wake_at is not None


def load(folder: Path) -> Memo:
    """An empty memo when there is no file, or one that a full disk cut short."""
    try:
        return msgspec.json.decode((folder / "memo.json").read_bytes(), type=Memo)
    except (OSError, msgspec.DecodeError):
        return Memo()


def save(folder: Path, memo: Memo) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files.replace(folder / "memo.json", msgspec.json.encode(memo))
