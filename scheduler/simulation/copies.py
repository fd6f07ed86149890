"""One copy in the simulated farm: what the planner sees of it, and its engine."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.policy import Policy
from scheduler.simulation.interference import LOADING, busy_share
from scheduler.simulation.trace import Call
from scheduler.world import Phase, Profile, Replica, Service

#: Answers of late that a copy is judged by: more than any of them comes within the time that is looked at.
KEPT = 240


class Answer(NamedTuple):
    """A call as its gateway measures it: when it began and ends, and how much slower it is than alone on the card."""

    at: float
    ends: float
    first_s: float
    slow: float


@dataclass(slots=True, eq=False)
class Copy:
    """`seen` is kept as the planner shall see it; `life` makes events of an earlier phase void."""

    seen: Replica
    service: Service
    running: int = 0
    queue: deque[tuple[Call, float]] = field(default_factory=deque)  # with the time they came
    left_mib: float = 0.0  # weights still to be read
    reading: bool = False
    life: int = 0
    grown_mib: int = 0
    late: deque[Answer] = field(default_factory=lambda: deque(maxlen=KEPT))  # of an online service, the last ones
    busy: float = 0.0  # share of its card's time that it wants
    last_call_at: float | None = None
    kinds: tuple[str, str] = field(init=False)  # of its first tokens by day and by night: see `Measures`

    def __post_init__(self) -> None:
        online = self.service.profile is Profile.ONLINE
        self.kinds = ("online day", "online night") if online else (str(self.service.profile),) * 2

    @property
    def in_flight(self) -> int:
        return self.running + len(self.queue)

    def wants(self) -> float:
        """Share of the card's time: calls, and reading weights."""
        return LOADING if self.reading else busy_share(self.running, self.service.max_num_seqs)

    def process_mib(self, policy: Policy) -> int:
        """What the driver shows of it, on each of its cards: not the headroom, as long as it does not grow."""
        claim, phase = self.service.claim, self.seen.phase
        if phase in (Phase.STOPPED, Phase.FAILED):
            return 0
        if phase is Phase.ASLEEP:
            return policy.default_residue_mib
        return claim.weights_mib + claim.overhead_mib + self.seen.kv_granted_mib + self.grown_mib
