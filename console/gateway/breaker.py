"""Replicas that keep failing get no calls until a probe succeeds. Pure: `now` (monotonic seconds) is handed in."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from console.gateway.limits import Limits


@dataclass(slots=True)
class Trouble:
    failures: deque[float] = field(default_factory=deque)
    open_until: float | None = None  # None: closed
    pause_s: float = 0.0


class Breaker:
    """One per gateway; knows only replicas that failed lately."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._troubles: dict[int, Trouble] = {}

    def usable(self, replica: int) -> bool:
        trouble = self._troubles.get(replica)
        return trouble is None or trouble.open_until is None

    def failed(self, replica: int, now: float) -> None:
        """A connect error, a refusal of the door, an engine's 5xx, an answer broken off."""
        trouble = self._troubles.setdefault(replica, Trouble())
        trouble.failures.append(now)
        while trouble.failures[0] < now - self._limits.breaker_window_s:
            trouble.failures.popleft()
        if len(trouble.failures) >= self._limits.breaker_failures:
            self._open(trouble, now)

    def stalled(self, replica: int, now: float) -> None:
        """Opens at once: a stream silent for `stall_s` has already cost its caller that long."""
        self._open(self._troubles.setdefault(replica, Trouble()), now)

    def served(self, replica: int) -> None:
        """A whole answer, or a good probe: closed, and the pause starts small again."""
        if self._troubles:
            self._troubles.pop(replica, None)

    def due(self, now: float) -> list[int]:
        """Replicas whose pause is over: to be probed now."""
        return [r for r, t in self._troubles.items() if t.open_until is not None and t.open_until <= now]

    def probe_failed(self, replica: int, now: float) -> None:
        self._open(self._troubles.setdefault(replica, Trouble()), now, again=True)

    def forget_others(self, routed: Collection[int]) -> None:
        """Replica ids are never used again: what is not routed need not be remembered."""
        for replica in self._troubles.keys() - set(routed):
            del self._troubles[replica]

    def _open(self, trouble: Trouble, now: float, again: bool = False) -> None:
        if trouble.open_until is not None and not again:
            return
        longer_s = min(trouble.pause_s * 2, self._limits.breaker_open_max_s)
        trouble.pause_s = longer_s if again and trouble.pause_s else self._limits.breaker_open_s
        trouble.open_until = now + trouble.pause_s
        trouble.failures.clear()
