"""The calls of the last seven days for who asks every second: only hours that may still be counted are read anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from console import reading
from console.state import WEEK_S, moment

HOUR_S = 3600


@dataclass(slots=True)
class Weeks:
    """One asker's memory. Whatever is counted later than an hour after its own hour is seen when the next begins."""

    hour: float = -1.0
    sums: Mapping[str, reading.Sums] = field(default_factory=dict)  # of the hours before the last one
    told: reading.Week = field(default_factory=dict)

    def at(self, now: float) -> reading.Week:
        """What `reading.week` says of the seven days until now."""
        hour = now - now % HOUR_S
        last = moment(hour - HOUR_S)
        if hour != self.hour:
            self.hour, self.sums = hour, reading.calls(moment(now - WEEK_S), last)
            self.told = {name: reading.told(sums) for name, sums in self.sums.items()}
        recent = reading.calls(last)
        return {**self.told, **{name: self._sum(name, sums) for name, sums in recent.items()}}

    def _sum(self, name: str, recent: reading.Sums) -> tuple[int, float | None]:
        calls, ms, good = self.sums.get(name, (0, 0, 0))
        return reading.told((calls + recent[0], ms + recent[1], good + recent[2]))
