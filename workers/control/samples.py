"""Cards measured for the bill: means over an hour, kept as sums; and whether anybody in a pool wanted memory in vain.

The leader adds up in memory and writes whole sums, so that writing twice changes nothing; what a leader had not written
when it died is a minute's samples of a mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from console.fleet.models import Card as CardRow
from console.money.models import CardHour, PoolHour
from console.state import moment
from scheduler.cost import HOUR_S
from scheduler.decision import FOR_WANT_OF_ROOM, Code, Decision
from scheduler.memory import Seat, external_mib, ours_mib
from scheduler.policy import Policy
from scheduler.world import Phase, Replica, World

FLUSH_S = 60.0
#: A wish that is refused or waits with one of these wants memory that others have.
WANTS_MEMORY = FOR_WANT_OF_ROOM | {Code.NO_CAPACITY, Code.NOT_NOW, Code.ANTI_SWAP}
SUMS = ("total_mib", "reserved_mib", "samples", "used_mib", "external_mib", "util_samples", "util_pct", "replicas")


@dataclass(slots=True)
class Sums:
    """One card's samples of the hour so far."""

    total_mib: int = 0
    reserved_mib: int = 0
    samples: int = 0
    used_mib: int = 0
    external_mib: int = 0
    util_samples: int = 0
    util_pct: int = 0
    replicas: dict[str, list[int]] = field(default_factory=dict)


@dataclass(slots=True)
class Samples:
    """A leader's sums of the present hour; begun from the rows of whoever led before."""

    hour: float = 0.0
    cards: dict[str, Sums] = field(default_factory=dict)
    pools: dict[str, list[int]] = field(default_factory=dict)
    sampled_at: float = 0.0
    written_at: float = 0.0

    def keep(self, world: World, decisions: Iterable[Decision], policy: Policy, now: float) -> None:
        """Samples when it is time, writes once a minute and at the end of the hour."""
        hour = now - now % HOUR_S
        if hour != self.hour:
            self._write(now)
            self._begin(hour, now)
        if now - self.sampled_at >= policy.cost_sample_s:
            self.sampled_at = now
            self._cards(world, policy)
            self._pools(world, decisions)
        if now - self.written_at >= FLUSH_S:
            self._write(now)

    def _begin(self, hour: float, now: float) -> None:
        self.hour, self.written_at = hour, now
        rows = CardHour.objects.filter(hour=moment(hour)).values_list("card", *SUMS)
        self.cards = {card: Sums(*sums) for card, *sums in rows}
        pools = PoolHour.objects.filter(hour=moment(hour)).values_list("pool", "samples", "contended")
        self.pools = {pool: [samples, contended] for pool, samples, contended in pools}

    def _cards(self, world: World, policy: Policy) -> None:
        on: dict[str, list[Replica]] = defaultdict(list)
        for replica in world.replicas.values():
            for card in replica.cards:
                on[card].append(replica)
        for one in world.cards.values():
            sums = self.cards.setdefault(one.id, Sums())
            sums.total_mib, sums.reserved_mib = one.total_mib, one.driver_reserved_mib
            seats = [Seat(r, world.services.get(r.service)) for r in on[one.id] if r.phase is not Phase.STOPPED]
            external = external_mib(one, ours_mib(seats, policy))
            if external is not None and one.unavailable_mib is not None:
                sums.samples += 1
                sums.used_mib += one.unavailable_mib
                sums.external_mib += external
            _measured(sums, on[one.id])

    def _pools(self, world: World, decisions: Iterable[Decision]) -> None:
        wanting = {name for d in decisions if wants_memory(d) for name in _pools_of(world, d.service)}
        for name in world.pools:
            counts = self.pools.setdefault(name, [0, 0])
            counts[0] += 1
            counts[1] += name in wanting

    def _write(self, now: float) -> None:
        self.written_at = now
        if not self.hour:
            return
        hour = moment(self.hour)
        for card, util in CardRow.objects.exclude(util_pct=None).values_list("uuid", "util_pct"):
            if card in self.cards:
                self.cards[card].util_samples += 1
                self.cards[card].util_pct += util or 0
        rows = [
            CardHour(card=card, hour=hour, **{name: getattr(sums, name) for name in SUMS})
            for card, sums in self.cards.items()
        ]
        unique = ["card", "hour"]
        CardHour.objects.bulk_create(rows, update_conflicts=True, update_fields=SUMS, unique_fields=unique)
        pools = [PoolHour(pool=name, hour=hour, samples=n, contended=c) for name, (n, c) in self.pools.items()]
        PoolHour.objects.bulk_create(
            pools, update_conflicts=True, update_fields=["samples", "contended"], unique_fields=["pool", "hour"]
        )


def _measured(sums: Sums, replicas: Sequence[Replica]) -> None:
    for replica in replicas:
        if replica.measured_mib is not None and (replica.awake or replica.phase is Phase.ASLEEP):
            counts = sums.replicas.setdefault(str(replica.id), [0, 0])
            counts[0] += 1
            counts[1] += replica.measured_mib


def wants_memory(decision: Decision) -> bool:
    """Is it a wish that is refused, or waits, for want of memory?"""
    refusal = decision.refuses_wish
    return refusal is not None and refusal.code in WANTS_MEMORY


def _pools_of(world: World, service: str) -> Iterable[str]:
    known = world.services.get(service)
    return known.pools if known is not None and known.pools else world.pools
