"""A card's ledger in numbers: the same answers as a Book gives, for the many trials of who might go.

`tests/properties/test_sums.py` holds it against `memory.start_grant` and `memory.wake_fits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from scheduler.draft import Draft
from scheduler.memory import HUNDRED, Book, Seat, allocatable_mib, held_mib, least_start_mib
from scheduler.policy import Policy
from scheduler.seats import residue_mib
from scheduler.world import Phase, Profile, Replica, Service


class Sums(NamedTuple):
    """`caps_mib` and `granted_mib` over every replica of ours; `mixed`: how many of them are not online services."""

    room_mib: int
    caps_mib: int
    granted_mib: int
    awake: int
    mixed: int

    def without(self, parts: Iterable[Sums]) -> Sums:
        """The card once these are gone from it."""
        room, caps, granted, awake, mixed = self
        for part in parts:
            room += part.room_mib
            caps -= part.caps_mib
            granted -= part.granted_mib
            awake -= part.awake
            mixed -= part.mixed
        return Sums(room, caps, granted, awake, mixed)


NOTHING = Sums(0, 0, 0, 0, 0)


class Start(NamedTuple):
    """What a start asks of a card. Two services with the same are judged the same."""

    fixed_mib: int
    cap_mib: int
    profile: Profile
    one_request_mib: int
    least_online_mib: int
    least_mixed_mib: int
    least_mib: int  # with less room than this no mix lets it in
    online_pct: int
    mixed_pct: int
    most_awake: int

    def fits(self, sums: Sums) -> bool:
        """As `awake_limit` and `start_grant` have it. What a squeezed card grants less never decides whether."""
        room, caps, granted, awake, mixed = sums
        if awake >= self.most_awake:
            return False
        all_online = self.profile is Profile.ONLINE and not mixed
        if (self.least_online_mib if all_online else self.least_mixed_mib) > room:
            return False
        grant = min(self.cap_mib, room - self.fixed_mib)
        limit = self.online_pct if all_online else self.mixed_pct
        enough = (caps + self.cap_mib) * HUNDRED <= (granted + grant) * (HUNDRED + limit)
        return enough and grant >= self.one_request_mib

    def short_mib(self, sums: Sums) -> int:
        """What the room lacks; 0 or less: room is not what it lacks."""
        all_online = self.profile is Profile.ONLINE and not sums.mixed
        return (self.least_online_mib if all_online else self.least_mixed_mib) - sums.room_mib


def start_of(service: Service, policy: Policy) -> Start:
    online_mib = least_start_mib(service, policy.oversell_online_pct)
    mixed_mib = least_start_mib(service, policy.oversell_mixed_pct)
    return Start(
        service.claim.fixed_mib,
        service.claim.kv_cap_mib,
        service.profile,
        service.one_request_mib,
        online_mib,
        mixed_mib,
        min(online_mib, mixed_mib),
        policy.oversell_online_pct,
        policy.oversell_mixed_pct,
        policy.max_replicas_per_card,
    )


class Wake(NamedTuple):
    """What a wake asks of its card beyond what the sleeper holds there already."""

    least_mib: int
    online_pct: int
    mixed_pct: int
    most_awake: int

    def fits(self, sums: Sums) -> bool:
        """As `wake_fits` has it."""
        limit = self.mixed_pct if sums.mixed else self.online_pct
        enough = sums.caps_mib * HUNDRED <= sums.granted_mib * (HUNDRED + limit)
        return enough and sums.awake < self.most_awake and self.least_mib <= sums.room_mib


def wake_of(sleeper: Replica, service: Service, policy: Policy) -> Wake:
    more = service.claim.fixed_mib + sleeper.kv_granted_mib - held_mib(sleeper, service, policy)
    return Wake(more, policy.oversell_online_pct, policy.oversell_mixed_pct, policy.max_replicas_per_card)


def sums_of(book: Book) -> Sums | None:
    """The card once all that is being released is back; None while it cannot be measured."""
    room = allocatable_mib(book)
    if room is None:
        return None
    held, caps, granted, awake, mixed, _ = book.taken
    return Sums(room + book.releasing_mib - held, caps, granted, awake, mixed)


def sums_on(draft: Draft) -> Mapping[str, Sums]:
    """Each card as it is, by id. One that cannot be measured has less room than anything needs."""
    return draft.table(_sums_now, of_book=True)


def room_now(draft: Draft, card: str) -> int:
    """Of `sums_on`, to rank the cards by."""
    return draft.table(_sums_now, of_book=True)[card].room_mib


def _sums_now(draft: Draft, card: str) -> Sums:
    book = draft.book(card)
    room = -HUNDRED * book.card.total_mib if book.room_mib is None else book.room_mib
    _, caps, granted, awake, mixed, _ = book.taken
    return Sums(room, caps, granted, awake, mixed)


def part_of(seat: Seat, policy: Policy) -> Sums:
    """What leaves the card's sums when this replica stops."""
    replica, service = seat.replica, seat.service
    held, awake = held_mib(replica, service, policy), int(replica.awake)
    if replica.external or replica.phase in (Phase.STOPPED, Phase.FAILED):
        return Sums(held, 0, 0, awake, 0)
    if service is None:
        return Sums(held, 0, 0, awake, 1)
    mixed = int(service.profile is not Profile.ONLINE)
    return Sums(held, service.claim.kv_cap_mib, replica.kv_granted_mib, awake, mixed)


def part_asleep(seat: Seat, policy: Policy) -> Sums:
    """What leaves the card's sums when this replica falls asleep: its KV stays granted."""
    if seat.replica.phase is Phase.ASLEEP:
        return NOTHING
    if seat.replica.awake and not seat.replica.external and seat.service is not None:
        return Sums(held_mib(seat.replica, seat.service, policy) - residue_mib(seat.replica, policy), 0, 0, 1, 0)
    sleeper = replace(seat.replica, phase=Phase.ASLEEP, measured_mib=None)
    before, after = part_of(seat, policy), part_of(Seat(sleeper, seat.service), policy)
    return Sums(
        before.room_mib - after.room_mib,
        before.caps_mib - after.caps_mib,
        before.granted_mib - after.granted_mib,
        before.awake - after.awake,
        before.mixed - after.mixed,
    )
