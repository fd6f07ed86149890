"""Who holds how much of which card, written as it changes: one row from one change to the next.

Runs inside the recording transaction, so that one leader writes. A farm that stands still writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from console.money.models import Holding
from console.state import moment
from scheduler.policy import Policy
from scheduler.world import Phase, Replica, Service, World

Key = tuple[int, str]  # replica, card
HOLDS = frozenset({Phase.STARTING, Phase.READY, Phase.DRAINING, Phase.ASLEEP})


class Sizes(NamedTuple):
    """What is paid for, MiB, and by whom; two equal ones are one stretch of time."""

    service: str
    tenant: str
    weights_mib: int = 0
    kv_mib: int = 0
    headroom_mib: int = 0
    overhead_mib: int = 0
    residue_mib: int = 0
    host_mib: int = 0

    @property
    def asleep(self) -> bool:
        return self.residue_mib > 0 or self.host_mib > 0


@dataclass(slots=True)
class Open:
    """A stretch that goes on; `gone_at`: its replica left then and its memory is still on the way back."""

    pk: int
    began: float
    sizes: Sizes
    gone_at: float | None = None


@dataclass(slots=True)
class Holdings:
    """A leader's memory of what is open; read from the rows when it begins to lead."""

    open: dict[Key, Open] | None = None
    _seen: dict[int, tuple[tuple[object, ...], Sizes | None]] = field(default_factory=dict)

    def keep(self, world: World, policy: Policy, now: float) -> int:
        """Writes what changed since the last round; how many stretches ended or began."""
        if self.open is None:
            self.open = _read()
        held = {
            (replica.id, card): (sizes, replica)
            for replica in world.replicas.values()
            if (sizes := self._sizes(replica, world.services.get(replica.service), policy)) is not None
            for card in replica.cards
        }
        ends: dict[Key, float] = {}
        for key in [key for key in self.open if self._over(key, held)]:
            if (at := self._end(key, held, world, policy, now)) is not None:
                ends[key] = at
                Holding.objects.filter(pk=self.open.pop(key).pk, ended=None).update(ended=moment(at))
        begun = [key for key in held if key not in self.open]
        self._begin([(key, *held[key], ends.get(key)) for key in begun], policy, now)
        if len(self._seen) > len(world.replicas):
            self._seen = {i: seen for i, seen in self._seen.items() if i in world.replicas}
        return len(ends) + len(begun)

    def _sizes(self, replica: Replica, service: Service | None, policy: Policy) -> Sizes | None:
        """As last time where nothing that matters is new: a sleeper's residue is not paid anew at each measurement."""
        claim, tenant = (service.claim, service.tenant) if service else (None, "")
        values = (replica.phase, replica.kv_granted_mib, replica.residue_mib is None, claim, tenant)
        known = self._seen.get(replica.id)
        if known is not None and known[0] == values:
            return known[1]
        sizes = sizes_of(replica, service, policy)
        self._seen[replica.id] = values, sizes
        return sizes

    def _over(self, key: Key, held: dict[Key, tuple[Sizes, Replica]]) -> bool:
        assert self.open is not None
        if key in held and held[key][0] == self.open[key].sizes:
            self.open[key].gone_at = None
            return False
        return True

    def _end(
        self, key: Key, held: dict[Key, tuple[Sizes, Replica]], world: World, policy: Policy, now: float
    ) -> float | None:
        """When the stretch ended; None: its replica is gone, but its memory is not back yet, and is its own so long."""
        assert self.open is not None
        stretch = self.open[key]
        if key in held:
            sizes, replica = held[key]
            return changed_at(replica, stretch, sizes, policy, now)
        card = world.cards.get(key[1])
        stretch.gone_at = now if stretch.gone_at is None else stretch.gone_at
        on_its_way = card is not None and card.releasing_mib > 0
        return None if on_its_way and now - stretch.gone_at < policy.release_timeout_s else now

    def _begin(self, begun: Iterable[tuple[Key, Sizes, Replica, float | None]], policy: Policy, now: float) -> None:
        assert self.open is not None
        rows = []
        for (replica_id, card), sizes, replica, follows in begun:
            at = changed_at(replica, None, sizes, policy, now) if follows is None else follows
            rows.append(Holding(replica=replica_id, card=card, began=moment(at), **sizes._asdict()))
        for row in Holding.objects.bulk_create(rows):
            self.open[row.replica, row.card] = Open(row.pk, row.began.timestamp(), _sizes_of_row(row))


def sizes_of(replica: Replica, service: Service | None, policy: Policy) -> Sizes | None:
    """What the replica holds by its claim; None: nothing. What is imported has no claim: its measured part is drift."""
    if replica.phase not in HOLDS or service is None:
        return None
    if replica.external:
        return Sizes(service.name, service.tenant)
    claim = service.claim
    if replica.phase is Phase.ASLEEP:
        residue = policy.default_residue_mib if replica.residue_mib is None else replica.residue_mib
        return Sizes(service.name, service.tenant, residue_mib=residue, host_mib=claim.weights_mib)
    return Sizes(
        service.name,
        service.tenant,
        weights_mib=claim.weights_mib,
        kv_mib=replica.kv_granted_mib,
        headroom_mib=claim.headroom_mib,
        overhead_mib=claim.overhead_mib,
    )


def changed_at(replica: Replica, before: Open | None, sizes: Sizes | None, policy: Policy, now: float) -> float:
    """When the replica came to hold what it holds: as its host says, but never so long ago that the hour may be booked.

    What changes while it stays awake or asleep (a claim) has no moment of its own: it is when it was seen.
    """
    if before is not None and sizes is not None and before.sizes.asleep == sizes.asleep:
        return now
    told = max(replica.since, replica.want_since) if replica.phase is Phase.STARTING else replica.since
    return min(now, max(told, now - policy.cost_late_s, before.began if before else 0.0))


def _read() -> dict[Key, Open]:
    rows = Holding.objects.filter(ended=None)
    return {(row.replica, row.card): Open(row.pk, row.began.timestamp(), _sizes_of_row(row)) for row in rows}


def _sizes_of_row(row: Holding) -> Sizes:
    return Sizes(*(getattr(row, name) for name in Sizes._fields))
