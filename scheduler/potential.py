"""What a card could give if all went who may: worked out once, asked by every wish.

Bounds only ever promise too much: a card that a bound lets through is tried, one that it rules out cannot serve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.draft import Draft
from scheduler.lifecycle import goes_by
from scheduler.sleep import may_sleep
from scheduler.sums import Sums, part_asleep, part_of, sums_of
from scheduler.victims import Candidate, Kind, candidates
from scheduler.world import Phase, Replica, Want

#: The first members of `Room.cost`.
Cost = tuple[int, int, int, float]
FREE: Cost = (0, 0, 0, 0.0)


class Potential(NamedTuple):
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

    `stopped`: for good; `asleep`: to sleep where it may; one and the same where nobody may.
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
    return Parts(bool(book.releasing_mib), sums, stopped, stopped | asleep if asleep else stopped)


def _potential(draft: Draft, card: str) -> Potential:
    book = draft.book(card)
    if book.room_mib is None:
        return UNKNOWN
    leaving, held, now = _leaving(draft, draft.on_card(card)), book.held, draft.now
    gone = {r.id for r in leaving}
    left_mib = book.room_mib + book.releasing_mib + sum([held[i] for i in gone])
    others = [c for c in candidates(draft, card) if c.replica.id not in gone] if gone else candidates(draft, card)
    mib, idle, in_use, later = dict.fromkeys(Kind, 0), [], [], []
    for c in others:
        if c.stays_until > now:
            later.append(c)
            continue
        mib[c.kind] += c.held_mib
        if c.kind is Kind.IDLE:
            idle.append(c)
        elif c.kind is Kind.IN_USE:
            in_use.append(c)
    cheap_mib = left_mib + mib[Kind.SLEEPER] + mib[Kind.UNWANTED_LOAD]
    idle_mib = cheap_mib + mib[Kind.IDLE]
    now_mib = idle_mib + mib[Kind.IN_USE]
    return Potential(
        leaving,
        left_mib,
        cheap_mib,
        idle_mib,
        now_mib,
        now_mib + sum([c.held_mib for c in later]),
        (0, 1, _lowest(idle), min([c.used_at for c in idle], default=0.0)),
        (1, 0, _lowest(in_use), min([c.used_at for c in (*idle, *in_use)], default=0.0)),
        min([c.stays_until for c in later], default=now),
    )


def _lowest(those: Iterable[Candidate]) -> int:
    return min([c.priority for c in those], default=0)


def falls_asleep(draft: Draft, replica: Replica) -> bool:
    """Where it goes when it goes and may sleep: a sleeper that goes is stopped."""
    if replica.want is Want.STOPPED or replica.phase is Phase.ASLEEP:
        return False
    return replica.want is Want.ASLEEP or may_sleep(draft, replica)


def _leaving(draft: Draft, on: Iterable[Replica]) -> tuple[Replica, ...]:
    """Those on the card who go anyway, and soon."""
    soon = draft.now + draft.policy.grace_room_s
    return tuple([r for r in on if goes_by(r, soon)])
