"""What a card could give if all went who may: worked out once, asked by every wish.

Bounds only ever promise too much: a card that a bound lets through is tried, one that it rules out cannot serve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scheduler.draft import Draft
from scheduler.lifecycle import goes_by
from scheduler.memory import held_mib
from scheduler.sleep import may_sleep
from scheduler.sums import Sums, part_asleep, part_of, sums_of
from scheduler.victims import Candidate, Kind, candidates
from scheduler.world import Phase, Replica, Want

#: The first members of `Room.cost`.
Cost = tuple[int, int, int, float]
FREE: Cost = (0, 0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class Potential:
    """The most room there can be, all stopped, in MiB.

    When those who leave anyway and soon are gone, then also the sleepers and unwanted loads, then also the idle that
    may go now, then also those in use, and at last those that may go later.
    """

    leaving: tuple[Replica, ...]
    left_mib: int
    cheap_mib: int
    idle_mib: int
    now_mib: int
    ever_mib: int
    idle_cost: Cost
    in_use_cost: Cost
    first_at: float  # the first of those that may go later may go then

    def least_cost(self, least_mib: int) -> Cost:
        """No room that can be made now, with at most `now_mib`, costs less."""
        if least_mib <= self.cheap_mib:
            return FREE
        return self.idle_cost if least_mib <= self.idle_mib else self.in_use_cost

    def least_rest_s(self, least_mib: int, now: float) -> float:
        """No room can be there before, with at most `ever_mib`."""
        return 0.0 if least_mib <= self.now_mib else max(0.0, self.first_at - now)


#: Of a card that cannot be measured: less room than anything needs.
NO_MIB = -(2**40)
UNKNOWN = Potential((), NO_MIB, NO_MIB, NO_MIB, NO_MIB, NO_MIB, FREE, FREE, 0.0)


@dataclass(frozen=True, slots=True)
class Parts:
    """A card's `sums` once all that is being released is back, and what leaves them when a replica goes.

    `stopped`: for good; `asleep`: to sleep where it may.
    """

    releasing: bool
    sums: Sums
    stopped: dict[int, Sums]
    asleep: dict[int, Sums]


def potential_of(draft: Draft, card: str) -> Potential:
    return draft.table(_potential)[card]


def potentials(draft: Draft) -> Mapping[str, Potential]:
    """The same of any card, by id."""
    return draft.table(_potential)


def parts_of(draft: Draft, card: str) -> Parts | None:
    """None while the card cannot be measured."""
    return draft.table(_parts)[card]


def _parts(draft: Draft, card: str) -> Parts | None:
    book = draft.book(card)
    sums = sums_of(book)
    if sums is None:
        return None
    stopped = {s.replica.id: part_of(s, draft.policy) for s in book.seats}
    sleepy = {r.id for r in draft.on_card(card) if falls_asleep(draft, r)}
    asleep = {s.replica.id: part_asleep(s, draft.policy) for s in book.seats if s.replica.id in sleepy}
    return Parts(bool(book.releasing_mib), sums, stopped, stopped | asleep)


def _potential(draft: Draft, card: str) -> Potential:
    book = draft.book(card)
    if book.room_mib is None:
        return UNKNOWN
    held = {s.replica.id: held_mib(s.replica, s.service, draft.policy) for s in book.seats}
    leaving = _leaving(draft, draft.on_card(card))
    gone = {r.id for r in leaving}
    others = [c for c in candidates(draft, card) if c.replica.id not in gone]
    now = [c for c in others if c.stays_until <= draft.now]
    idle = [c for c in now if c.kind is Kind.IDLE]
    in_use = [c for c in now if c.kind is Kind.IN_USE]
    left_mib = book.room_mib + book.releasing_mib + sum(held[i] for i in gone)
    idle_mib, in_use_mib = _held(idle, held), _held(in_use, held)
    now_mib = left_mib + _held(now, held)
    return Potential(
        leaving=leaving,
        left_mib=left_mib,
        cheap_mib=now_mib - idle_mib - in_use_mib,
        idle_mib=now_mib - in_use_mib,
        now_mib=now_mib,
        ever_mib=left_mib + _held(others, held),
        idle_cost=(0, 1, _lowest(idle), min((c.used_at for c in idle), default=0.0)),
        in_use_cost=(1, 0, _lowest(in_use), min((c.used_at for c in (*idle, *in_use)), default=0.0)),
        first_at=min((c.stays_until for c in others if c.stays_until > draft.now), default=draft.now),
    )


def _held(those: Iterable[Candidate], held: Mapping[int, int]) -> int:
    return sum(held[c.replica.id] for c in those)


def _lowest(those: Iterable[Candidate]) -> int:
    return min((c.priority for c in those), default=0)


def falls_asleep(draft: Draft, replica: Replica) -> bool:
    """Where it goes when it goes and may sleep: a sleeper that goes is stopped."""
    if replica.want is Want.STOPPED or replica.phase is Phase.ASLEEP:
        return False
    return replica.want is Want.ASLEEP or may_sleep(draft, replica)


def _leaving(draft: Draft, on: Iterable[Replica]) -> tuple[Replica, ...]:
    """Those on the card who go anyway, and soon."""
    soon = draft.now + draft.policy.grace_room_s
    return tuple(r for r in on if goes_by(r, soon))
