"""One card as it is drawn: who holds how much of it, and in what state. Pure: a World and a few facts in, numbers out.

Segments are integer MiB and always sum to the card's total, so a bar drawn from them has no gap and no overflow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from typing import Any

from console.unchanged import Unchanged
from scheduler.bar import Bar, Segment, bar_of
from scheduler.memory import book_of, buffer_mib
from scheduler.policy import Policy
from scheduler.world import Card, Phase, Replica, Service, World

#: Phases that hold memory on a card.
PRESENT = (Phase.STARTING, Phase.READY, Phase.DRAINING, Phase.ASLEEP)
#: A sample older than this is shown as stale: hosts report once a second, so several in a row were lost.
STALE_S = 5.0


@dataclass(frozen=True, slots=True)
class Group:
    """The memory of one replica on one card. A foreign one, for who may not see it, has only profile and size."""

    segments: list[tuple[str, int]]  # (kind, MiB); kinds are the classes of the bar without their `s-`
    profile: str
    phase: str = ""
    tenant: int | None = None
    replica: int | None = None
    service: int | None = None
    in_flight: int | None = None
    progress: float | None = None
    until: float | None = None  # a notice ends then
    p99_ms: int | None = None  # of its last minutes; None: too few calls
    idle: bool = False  # ready, and not called for as long as the policy lets it idle

    @property
    def mib(self) -> int:
        return sum([size for _, size in self.segments])


@dataclass(frozen=True, slots=True)
class CardNumbers:
    """One card in numbers. `used_mib` and `load_pct` are measured; None: not known."""

    id: int
    total_mib: int
    groups: list[Group]
    rest: list[tuple[str, int]]  # releasing, external, free, unknown, buffer
    used_mib: int | None
    load_pct: int | None
    sampled_at: float | None
    stale: bool = False
    cordoned: bool = False
    healthy: bool = True
    eaten: bool = False  # something stands in the buffer
    pressed: bool = False  # measured use is above the pressure line
    foreign_until: float | None = None  # somebody else has the card until then
    oversell_pct: float | None = None  # how far KV caps exceed what was granted; None: nothing was granted

    @property
    def segments(self) -> list[tuple[str, int]]:
        return [segment for group in self.groups for segment in group.segments] + self.rest

    @property
    def p99_ms(self) -> int | None:
        """The worst of those on it that are known."""
        return max((group.p99_ms for group in self.groups if group.p99_ms is not None), default=None)

    def mib(self, kind: str) -> int:
        return sum(size for name, size in self.segments if name == kind)


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """What the planner does not need to know of a replica, and the board does."""

    service: int
    tenant: int
    kv_used_pct: float | None = None
    waiting: int | None = None
    in_flight: int | None = None  # as its door counts
    used_at: float | None = None  # last called, or became ready
    p99_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CardFacts:
    id: int
    load_pct: int | None = None
    sampled_at: float | None = None
    foreign_until: float | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Beside the World: database ids and measurements, by replica id and card UUID, in the order of the board."""

    cards: Mapping[str, CardFacts] = field(default_factory=dict)
    replicas: Mapping[int, ReplicaFacts] = field(default_factory=dict)


#: A copy on a card, its service, what is known of it besides, and whether nobody called it for long.
Seat = tuple[Replica, Service | None, ReplicaFacts | None, bool]


@dataclass(frozen=True, slots=True)
class Parts:
    """What lies on a card: the half of its picture that no sample of its memory or load changes by itself."""

    groups: list[Group]
    rest: list[tuple[str, int]]
    eaten: bool
    oversell_pct: float | None


#: A card's parts, and its bar, as they were worked out for these very values: most of a farm stands still, and of the
#: others what a copy uses moves each second, and what it holds does not.
_parts: Unchanged[Parts] = Unchanged()
_bars: Unchanged[Bar] = Unchanged()


def picture(world: World, facts: Facts, policy: Policy, now: float) -> list[CardNumbers]:
    """All cards in the order of the board."""
    present: dict[str, list[Replica]] = {}
    for replica in sorted(world.replicas.values(), key=lambda r: (r.phase is Phase.ASLEEP, r.id)):
        if replica.phase in PRESENT:
            for uuid in replica.cards:
                present.setdefault(uuid, []).append(replica)
    idle_before = now - policy.idle_unload_s
    idle = {pk for pk, own in facts.replicas.items() if own.used_at is not None and own.used_at < idle_before}
    result = []
    for uuid, card_facts in facts.cards.items():
        if (card := world.cards.get(uuid)) is not None:
            seats = [_seat(replica, world, facts, idle) for replica in present.get(uuid, ())]
            claims = [None if one[1] is None else (one[1].claim, one[1].profile) for one in seats]
            values = card, policy, [(replica, own, unused) for replica, _, own, unused in seats], claims
            parts = _parts.of(uuid, values, partial(_worked_out, card, policy, seats, claims))
            result.append(_numbers(card, parts, card_facts, policy, now))
    return result


def _seat(replica: Replica, world: World, facts: Facts, idle: Collection[int]) -> Seat:
    return replica, world.services.get(replica.service), facts.replicas.get(replica.id), replica.id in idle


def _worked_out(card: Card, policy: Policy, seats: list[Seat], claims: list[Any]) -> Parts:
    """`claims`: all that a bar wants to know of their services."""
    copies = [replica for replica, *_ in seats]
    bar = _bars.of(card.id, (card, policy, copies, claims), partial(_bar, card, policy, copies, seats))
    of = {replica.id: (replica, service, own, idle) for replica, service, own, idle in seats if own is not None}
    return Parts(
        groups=[_group(part, *of[part.replica]) for part in bar.segments if part.replica in of],
        rest=_rest(bar, of),
        eaten=bar.buffer_mib < buffer_mib(card, policy),
        oversell_pct=round(bar.oversell_pct, 1) if isfinite(bar.oversell_pct) else None,
    )


def _bar(card: Card, policy: Policy, copies: list[Replica], seats: list[Seat]) -> Bar:
    services = {service.name: service for _, service, _, _ in seats if service is not None}
    return bar_of(book_of(card, copies, services, policy))


def _numbers(card: Card, parts: Parts, facts: CardFacts, policy: Policy, now: float) -> CardNumbers:
    return CardNumbers(
        id=facts.id,
        total_mib=card.total_mib,
        groups=parts.groups,
        rest=parts.rest,
        used_mib=card.unavailable_mib,
        load_pct=facts.load_pct,
        sampled_at=facts.sampled_at,
        stale=facts.sampled_at is not None and now - facts.sampled_at > STALE_S,
        cordoned=card.cordoned,
        healthy=card.healthy,
        eaten=parts.eaten,
        pressed=(card.unavailable_mib or 0) * 100 > policy.pressure_pct * card.total_mib,
        foreign_until=facts.foreign_until,
        oversell_pct=parts.oversell_pct,
    )


def _group(part: Segment, replica: Replica, service: Service | None, own: ReplicaFacts, idle: bool) -> Group:
    flying = own.in_flight if replica.in_flight is None else replica.in_flight
    ready = replica.phase is Phase.READY
    return Group(
        segments=_segments(part, own),
        profile="" if service is None else service.profile,
        phase=replica.phase,
        tenant=own.tenant,
        replica=replica.id,
        service=own.service,
        in_flight=flying,
        progress=replica.progress if replica.phase is Phase.STARTING else None,
        until=replica.drain_at if ready else None,
        p99_ms=own.p99_ms if ready else None,
        idle=ready and flying == 0 and idle,
    )


def _segments(part: Segment, own: ReplicaFacts) -> list[tuple[str, int]]:
    """By kind of memory. What it holds above its claim is drawn with the headroom it ate."""
    spare = part.headroom_mib + part.overhead_mib + part.drift_mib
    if part.phase is Phase.ASLEEP:
        return [("asleep", part.residue_mib)]
    if part.phase is Phase.STARTING:
        return [("load", part.weights_mib), ("kg", part.kv_granted_mib), ("h", spare)]
    used = round(part.kv_granted_mib * min(100.0, max(0.0, own.kv_used_pct or 0.0)) / 100)
    return [("w", part.weights_mib), ("ku", used), ("kg", part.kv_granted_mib - used), ("h", spare)]


def _rest(bar: Bar, known: Collection[int]) -> list[tuple[str, int]]:
    """What no known replica holds. `unk`: the card cannot be measured, so nobody knows who has it."""
    strangers = sum(part.held_mib for part in bar.segments if part.replica not in known)
    return [
        ("rel", bar.releasing_mib),
        ("ext", (bar.external_mib or 0) + bar.driver_reserved_mib + strangers),
        ("free", bar.free_mib or 0),
        ("unk", bar.unknown_mib),
        ("buf", bar.buffer_mib),
    ]
