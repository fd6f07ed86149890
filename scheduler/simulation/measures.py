"""What a simulation measured, kept while it runs and told at its end."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from scheduler.histogram import GAMMA, Tally, middle_ms

MS = 1000.0


def quantile_s(tally: Tally, share: float) -> float | None:
    """Seconds that `share` (0..1) of the samples do not exceed; None when there are none."""
    whole = sum(tally.counts)
    rank, below = share * whole, 0
    for i, count in enumerate(tally.counts):
        below += count
        if count and below >= rank:
            return middle_ms(i) / MS
    return None


def over(tally: Tally, seconds: float) -> int:
    """How many samples are longer, to the width of a bucket."""
    return sum(count for i, count in enumerate(tally.counts) if middle_ms(i) > seconds * MS * GAMMA)


@dataclass
class Spread:
    """Durations in seconds, as a histogram."""

    tally: Tally = field(default_factory=Tally)
    count: int = 0

    def add(self, seconds: float) -> None:
        self.tally.add(seconds * MS)
        self.count += 1

    def at(self, share: float) -> float | None:
        return quantile_s(self.tally, share)


@dataclass
class Waits(Spread):
    """With their sum, for a mean."""

    total_s: float = 0.0

    def add(self, seconds: float) -> None:
        Spread.add(self, seconds)
        self.total_s += seconds


@dataclass(slots=True)
class OfService:
    """The part of one service. `fen` is of cards whose price is known; `unpriced`: some were not."""

    told: int = 0
    cut: int = 0
    cold_starts: int = 0
    reclaims: int = 0
    evictions: int = 0  # had to go for somebody else: for room, or from a card nearly full
    harmful_reclaims: int = 0
    held_mib_s: float = 0.0  # as the ledger has it, headroom too
    fen: float = 0.0
    unpriced: bool = False
    waits: Waits = field(default_factory=Waits)


@dataclass
class Measures:
    """Sums over the simulated time. Shares are of what their comment says; None: nothing to judge by."""

    seconds: float = 0.0
    calls: int = 0
    answered: int = 0
    told: int = 0  # not answered, with a reason and a time to come back
    cut: int = 0  # of those in flight when their engine went
    cut_by_kills: int = 0  # of those in flight when their engine was killed
    harmful: int = 0  # told or cut because the service had been reclaimed of late
    loads: int = 0  # starts of engines
    wakes: int = 0
    cold_starts: int = 0  # loads that a caller waited for
    reclaims: int = 0
    harmful_reclaims: int = 0
    regrets: int = 0
    sessions: int = 0  # first calls after a pause
    hits: int = 0  # of them answered without a wait worth the name
    moves: int = 0  # of repack, that were made to their end
    moves_failed: int = 0
    pressures: int = 0  # times that a card came over the pressure line
    kills: int = 0  # engines that wanted memory their card did not have
    growths: int = 0
    absorbed: int = 0  # by buffer and headroom: no pressure came of it
    batch_lowered: int = 0  # times that a card's batch calls were halved for an online neighbour
    plans: int = 0
    decisions: int = 0
    busy_card_s: float = 0.0  # share of a card's time, summed over cards and seconds
    used_card_s: float = 0.0  # cards with anybody on them
    resident_mib_s: float = 0.0
    total_mib_s: float = 0.0
    copies_s: float = 0.0  # awake or asleep, on cards in use
    stranded_mib_s: float = 0.0
    free_mib_s: float = 0.0
    waits: Spread = field(default_factory=Spread)  # of held calls that were answered
    first_token: dict[str, Spread] = field(default_factory=lambda: defaultdict(Spread))  # by class of service, see farm
    alone: dict[str, Spread] = field(default_factory=lambda: defaultdict(Spread))  # the same without any neighbour
    of: dict[str, OfService] = field(default_factory=lambda: defaultdict(OfService))  # by service; waits: `waits`
    scale_ups: list[float] = field(default_factory=list)  # seconds from a raise until all its copies are ready
    relieved: list[float] = field(default_factory=list)  # seconds from the pressure line until below the relief line
    rebuilt: list[float] = field(default_factory=list)  # seconds from an eviction until a copy is ready elsewhere

    @property
    def utilisation(self) -> float | None:
        """Mean busy share of the cards that are in use."""
        return self.busy_card_s / self.used_card_s if self.used_card_s else None

    @property
    def resident_share(self) -> float | None:
        """Of all cards' memory, what copies hold."""
        return self.resident_mib_s / self.total_mib_s if self.total_mib_s else None

    @property
    def models_a_card(self) -> float | None:
        return self.copies_s / self.used_card_s if self.used_card_s else None

    @property
    def cards_in_use(self) -> float:
        return self.used_card_s / self.seconds if self.seconds else 0.0

    @property
    def fragmentation(self) -> float | None:
        """F: of the free memory, what the expected mix cannot use."""
        return self.stranded_mib_s / self.free_mib_s if self.free_mib_s else None

    @property
    def hit_share(self) -> float | None:
        return self.hits / self.sessions if self.sessions else None

    def a_day(self, count: int) -> float:
        return count * 86400 / self.seconds if self.seconds else 0.0
