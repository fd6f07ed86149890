"""The equations of one card's memory: what is held, what is left, what may still come.

All MiB, all integers, every rounding against the newcomer. A `Book` is one card's page of the ledger: real, or as it
would be once somebody has gone; every question is asked of a Book.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from scheduler.decision import Code, Numbers, Refusal
from scheduler.once import cached_property
from scheduler.policy import Policy
from scheduler.seats import Seat as Seat
from scheduler.seats import Taken as Taken
from scheduler.seats import held_mib as held_mib
from scheduler.seats import ours_mib as ours_mib
from scheduler.seats import taken
from scheduler.world import Card, Phase, Profile, Replica, Service

HUNDRED = 100


@dataclass(frozen=True)
class Book:
    """One card's ledger. `external_mib` is None when the card cannot be measured: then nothing is placed.

    Every wish of a plan asks every card the same sums again: they are worked out once (hence no slots). Other seats
    are other sums: see `with_seats` and `after_leaving`.
    """

    card: Card
    policy: Policy
    seats: tuple[Seat, ...]
    external_mib: int | None
    releasing_mib: int
    taken: Taken  # of all seats

    @cached_property
    def room_mib(self) -> int | None:
        allocatable = allocatable_mib(self)
        return None if allocatable is None else allocatable - self.taken.held_mib

    @property
    def kv_sums(self) -> tuple[int, int]:
        return self.taken.caps_mib, self.taken.granted_mib

    @property
    def awake(self) -> int:
        return self.taken.awake

    @cached_property
    def held(self) -> dict[int, int]:
        """MiB that each replica here holds, by id."""
        return {replica.id: held_mib(replica, service, self.policy) for replica, service in self.seats}

    @cached_property
    def squeezed(self) -> bool:
        """Was an online copy here granted clearly less than its cap? Then what lowfreq newcomers leave is for it."""
        return any(_squeezed(seat, self.policy) for seat in self.seats)

    @cached_property
    def of_service(self) -> dict[str, Replica]:
        """The first replica of each service that has one here, asleep and promised ones too."""
        return {s.replica.service: s.replica for s in reversed(self.seats)}

    @property
    def online(self) -> bool:
        """Are all of ours online services?"""
        return not self.taken.mixed


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def buffer_mib(card: Card, policy: Policy) -> int:
    """The share of a card that belongs to nobody, rounded up."""
    return ceil_div(card.total_mib * policy.of_pool(card.pool).buffer_pct, HUNDRED)


def reserved_mib(card: Card) -> int:
    """What the driver has for itself; where processes cannot be measured, what the card shows when it is empty."""
    return card.driver_reserved_mib if card.baseline_mib is None else max(card.baseline_mib, card.driver_reserved_mib)


def external_mib(card: Card, ours: int, noise_pct: int = 0) -> int | None:
    """What others took of the card; None when the card cannot be measured.

    Without per-process memory `ours` is the ledger's, and less than `noise_pct` of the card is its error, no stranger.
    """
    if card.unavailable_mib is None:
        return None
    others = max(0, card.unavailable_mib - reserved_mib(card) - ours - card.releasing_mib)
    noise = card.baseline_mib is not None and others * HUNDRED < card.total_mib * noise_pct
    return 0 if noise else others


def book_of(card: Card, replicas: Iterable[Replica], services: Mapping[str, Service], policy: Policy) -> Book:
    """The card's ledger as it is now, from the replicas that sit on it."""
    seats = tuple([Seat(r, services.get(r.service)) for r in replicas if r.phase is not Phase.STOPPED])
    sums = taken(seats, policy)
    others = external_mib(card, sums.shown_mib, policy.release_tolerance_pct)
    return Book(card, policy, seats, others, card.releasing_mib, sums)


def with_seats(book: Book, replicas: Iterable[Replica], services: Mapping[str, Service]) -> Book:
    """The book with these replicas added, each in place of one with its id; what others took stays what it is."""
    by_id = {seat.replica.id: seat for seat in book.seats}
    by_id.update({r.id: Seat(r, services.get(r.service)) for r in replicas})
    seats = tuple(by_id.values())
    return replace(book, seats=seats, taken=taken(seats, book.policy))


def after_leaving(book: Book, stopped: Collection[int], asleep: Collection[int] = ()) -> Book:
    """The book once these are stopped or asleep and all that is being released is back."""
    seats = []
    for seat in book.seats:
        if seat.replica.id in stopped:
            continue
        if seat.replica.id in asleep and seat.replica.phase is not Phase.ASLEEP:
            seat = Seat(replace(seat.replica, phase=Phase.ASLEEP, measured_mib=None), seat.service)
        seats.append(seat)
    return replace(book, seats=tuple(seats), releasing_mib=0, taken=taken(seats, book.policy))


def allocatable_mib(book: Book) -> int | None:
    """What claims may use of the card: without driver, others, what is being released, and buffer."""
    if book.external_mib is None:
        return None
    card = book.card
    return card.total_mib - reserved_mib(card) - book.external_mib - book.releasing_mib - buffer_mib(card, book.policy)


def room_mib(book: Book) -> int | None:
    """What is left for a newcomer; negative on a card that is over-full; None when unmeasured."""
    return book.room_mib


def awake_count(book: Book) -> int:
    return book.awake


def asleep_count(book: Book) -> int:
    """Sleepers, and those on their way to sleep."""
    return sum(s.replica.phase is Phase.ASLEEP for s in book.seats)


def limit_pct(services: Iterable[Service | None], policy: Policy) -> int:
    """Oversell limit of a mix: tighter where all are online, whose peaks coincide."""
    return _limit_pct(all(s is not None and s.profile is Profile.ONLINE for s in services), policy)


def _limit_pct(online: bool, policy: Policy) -> int:
    return policy.oversell_online_pct if online else policy.oversell_mixed_pct


def book_limit_pct(book: Book) -> int:
    return _limit_pct(book.online, book.policy)


def kv_sums(book: Book) -> tuple[int, int]:
    """(sum of KV caps, sum of KV granted) over every replica of ours on the card, sleepers too."""
    return book.kv_sums


def oversell_pct(book: Book) -> float:
    """How far the KV caps exceed the KV memory that was granted, in percent; 0 is none."""
    caps, granted = kv_sums(book)
    if caps <= granted:
        return 0.0
    return caps * HUNDRED / granted - HUNDRED if granted else float("inf")


def within_oversell(caps: int, granted: int, limit: int) -> bool:
    """caps <= granted * (1 + limit), in integers."""
    return caps * HUNDRED <= granted * (HUNDRED + limit)


def least_start_mib(service: Service, limit: int) -> int:
    """The least room with which a start of this service can be allowed under an oversell limit (percent)."""
    return service.claim.fixed_mib + ceil_div(service.claim.kv_cap_mib * HUNDRED, HUNDRED + limit)


def start_grant(book: Book, service: Service, at_most: int | None = None) -> int | Refusal:
    """KV MiB a new replica would be granted on this card, or why it may not start there.

    `at_most`: one of its other cards has no more to grant, and all have the same.

    A card that is over its limit already (a neighbour left) stays; only the state with the newcomer is judged.
    """
    room = room_mib(book)
    if room is None:
        return Refusal(Code.UNMEASURED, {"card": book.card.id})
    limit = _limit_pct(service.profile is Profile.ONLINE and book.online, book.policy)
    short = least_start_mib(service, limit) - room
    if short > 0:
        return Refusal(Code.SHORT_OF_MEMORY, {"card": book.card.id, "short_mib": short, "room_mib": room})
    grant = min(service.claim.kv_cap_mib, room - service.claim.fixed_mib)
    if service.profile is Profile.LOWFREQ and book.squeezed:
        grant = min(grant, _least_grant(book, service, limit))
    grant = grant if at_most is None else min(grant, at_most)
    caps, granted = kv_sums(book)
    caps, granted = caps + service.claim.kv_cap_mib, granted + grant
    if not within_oversell(caps, granted, limit):
        numbers: Numbers = {"card": book.card.id, "kv_caps_mib": caps, "kv_granted_mib": granted, "limit_pct": limit}
        return Refusal(Code.OVERSELL, numbers)
    if grant < service.one_request_mib:
        numbers = {"card": book.card.id, "one_request_mib": service.one_request_mib, "kv_granted_mib": grant}
        return Refusal(Code.CONTEXT_TOO_LONG, numbers)
    return grant


def _squeezed(seat: Seat, policy: Policy) -> bool:
    service, replica = seat.service, seat.replica
    if service is None or service.profile is not Profile.ONLINE or not replica.awake or replica.external:
        return False
    return short_of_cap(service, replica.kv_granted_mib, policy)


def short_of_cap(service: Service, kv_granted_mib: int, policy: Policy) -> bool:
    """Was it granted so little of its KV cap that neighbours should give?"""
    return kv_granted_mib * HUNDRED < service.claim.kv_cap_mib * policy.regrant_below_pct


def _least_grant(book: Book, service: Service, limit: int) -> int:
    """The smallest KV grant of a newcomer that one request and the oversell limit of the card allow."""
    caps, granted = kv_sums(book)
    cap = service.claim.kv_cap_mib
    alone = ceil_div(cap * HUNDRED, HUNDRED + limit)
    together = ceil_div((caps + cap) * HUNDRED, HUNDRED + limit) - granted
    return min(cap, max(alone, together, service.one_request_mib))


def wake_fits(book: Book, replica: Replica, service: Service) -> Refusal | None:
    """None when this sleeper of the card may wake, else why not. Its KV counts in the mix already."""
    room = room_mib(book)
    if room is None:
        return Refusal(Code.UNMEASURED, {"card": book.card.id})
    awake = awake_count(book)
    if awake >= book.policy.max_replicas_per_card:
        return Refusal(Code.REPLICA_LIMIT, {"card": book.card.id, "awake": awake})
    more = service.claim.fixed_mib + replica.kv_granted_mib - held_mib(replica, service, book.policy)
    if more > room:
        return Refusal(Code.SHORT_OF_MEMORY, {"card": book.card.id, "short_mib": more - room, "room_mib": room})
    caps, granted = kv_sums(book)
    limit = book_limit_pct(book)
    if not within_oversell(caps, granted, limit):
        numbers: Numbers = {"card": book.card.id, "kv_caps_mib": caps, "kv_granted_mib": granted, "limit_pct": limit}
        return Refusal(Code.OVERSELL, numbers)
    return None
