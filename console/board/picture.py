"""One card as it is drawn: who holds how much of it, and in what state. Pure: a World and a few facts in, numbers out.

Segments are integer MiB and always sum to the card's total, so a bar drawn from them has no gap and no overflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from scheduler.bar import Bar, Segment, bar_of
from scheduler.memory import Book, book_of, buffer_mib
from scheduler.policy import Policy
from scheduler.world import Phase, Replica, World

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
        return sum(size for _, size in self.segments)


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


def picture(world: World, facts: Facts, policy: Policy, now: float) -> list[CardNumbers]:
    """All cards in the order of the board."""
    present: dict[str, list[Replica]] = {}
    for replica in sorted(world.replicas.values(), key=lambda r: (r.phase is Phase.ASLEEP, r.id)):
        if replica.phase in PRESENT:
            for uuid in replica.cards:
                present.setdefault(uuid, []).append(replica)
    result = []
    for uuid, card_facts in facts.cards.items():
        if (card := world.cards.get(uuid)) is not None:
            book = book_of(card, present.get(uuid, ()), world.services, policy)
            result.append(card_numbers(book, world, facts, card_facts, now))
    return result


def card_numbers(book: Book, world: World, facts: Facts, card_facts: CardFacts, now: float) -> CardNumbers:
    card, bar = book.card, bar_of(book)
    idle_before = now - book.policy.idle_unload_s
    return CardNumbers(
        id=card_facts.id,
        total_mib=card.total_mib,
        groups=[_group(part, world, facts, idle_before) for part in bar.segments if part.replica in facts.replicas],
        rest=_rest(bar, facts),
        used_mib=card.unavailable_mib,
        load_pct=card_facts.load_pct,
        sampled_at=card_facts.sampled_at,
        stale=card_facts.sampled_at is not None and now - card_facts.sampled_at > STALE_S,
        cordoned=card.cordoned,
        healthy=card.healthy,
        eaten=bar.buffer_mib < buffer_mib(card, book.policy),
        pressed=(card.unavailable_mib or 0) * 100 > book.policy.pressure_pct * card.total_mib,
        foreign_until=card_facts.foreign_until,
        oversell_pct=round(bar.oversell_pct, 1) if isfinite(bar.oversell_pct) else None,
    )


def _group(part: Segment, world: World, facts: Facts, idle_before: float) -> Group:
    replica, own = world.replicas[part.replica], facts.replicas[part.replica]
    service = world.services.get(part.service)
    flying = own.in_flight if replica.in_flight is None else replica.in_flight
    unused = own.used_at is not None and own.used_at < idle_before
    return Group(
        segments=_segments(part, own),
        profile="" if service is None else service.profile,
        phase=replica.phase,
        tenant=own.tenant,
        replica=replica.id,
        service=own.service,
        in_flight=flying,
        progress=replica.progress if replica.phase is Phase.STARTING else None,
        until=replica.drain_at if replica.phase is Phase.READY else None,
        p99_ms=own.p99_ms if replica.phase is Phase.READY else None,
        idle=replica.phase is Phase.READY and flying == 0 and unused,
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


def _rest(bar: Bar, facts: Facts) -> list[tuple[str, int]]:
    """What no replica holds. `unk`: the card cannot be measured, so nobody knows who has it."""
    strangers = sum(part.held_mib for part in bar.segments if part.replica not in facts.replicas)
    return [
        ("rel", bar.releasing_mib),
        ("ext", (bar.external_mib or 0) + bar.driver_reserved_mib + strangers),
        ("free", bar.free_mib or 0),
        ("unk", bar.unknown_mib),
        ("buf", bar.buffer_mib),
    ]
