"""Ways to run an engine. One line in `LAUNCHERS` enlists a launcher.

A launcher keeps nothing in memory: `scan` reads the machine, so a restarted agent adopts what runs, and it sees and
ends only what carries this farm's and this host's mark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from workers.host.command import Command
from workers.host.launchers.process import ProcessLauncher, Running

__all__ = ["LAUNCHERS", "Launcher", "Running"]


class Launcher(Protocol):
    def start(self, command: Command) -> int:
        """Runs it, returns its pid. Raises OSError when it cannot be run."""
        ...

    def scan(self, max_age_s: float = 0.0) -> dict[int, list[Running]]:
        """Replica → its processes now (or as of `max_age_s` ago at most); the engine's first process leads."""
        ...

    def terminate(self, processes: list[Running]) -> None:
        """Asks the leader to end."""
        ...

    def kill(self, processes: list[Running]) -> None:
        """Ends all of them, and all else in their process groups, at once."""
        ...


LAUNCHERS: dict[str, Callable[[str, str], Launcher]] = {"process": ProcessLauncher}
