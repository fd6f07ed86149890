"""A card's memory as the board draws it: segments that add up to the card, exactly."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.memory import Book, Seat, buffer_mib, held_mib, oversell_pct, reserved_mib
from scheduler.world import Phase


@dataclass(frozen=True, slots=True)
class Segment:
    """One replica's part, in MiB. `drift_mib` is what it was measured to hold above its claim."""

    replica: int
    service: str
    phase: Phase
    weights_mib: int = 0
    kv_granted_mib: int = 0
    headroom_mib: int = 0
    overhead_mib: int = 0
    residue_mib: int = 0
    drift_mib: int = 0

    @property
    def held_mib(self) -> int:
        parts = self.weights_mib + self.kv_granted_mib + self.headroom_mib
        return parts + self.overhead_mib + self.residue_mib + self.drift_mib


@dataclass(frozen=True, slots=True)
class Bar:
    """All parts in MiB. When the card cannot be measured `external_mib` and `free_mib` are None, the rest unknown."""

    card: str
    total_mib: int
    driver_reserved_mib: int
    segments: tuple[Segment, ...]
    external_mib: int | None
    releasing_mib: int
    buffer_mib: int
    free_mib: int | None
    unknown_mib: int
    oversell_pct: float

    @property
    def sum_mib(self) -> int:
        known = self.driver_reserved_mib + sum(s.held_mib for s in self.segments) + (self.external_mib or 0)
        return known + self.releasing_mib + self.buffer_mib + (self.free_mib or 0) + self.unknown_mib


class _Left:
    """What is left of the card while parts are cut from it: none gets more than there is."""

    def __init__(self, total_mib: int) -> None:
        self.mib = total_mib

    def take(self, wanted_mib: int) -> int:
        taken = min(max(0, wanted_mib), self.mib)
        self.mib -= taken
        return taken


def _segment(seat: Seat, book: Book, left: _Left) -> Segment:
    replica, service = seat.replica, seat.service
    held = held_mib(replica, service, book.policy)
    if replica.phase is Phase.ASLEEP:
        return Segment(replica.id, replica.service, replica.phase, residue_mib=left.take(held))
    if not held or service is None or replica.external:
        return Segment(replica.id, replica.service, replica.phase, drift_mib=left.take(held))
    claim = service.claim
    return Segment(
        replica.id,
        replica.service,
        replica.phase,
        weights_mib=left.take(claim.weights_mib),
        kv_granted_mib=left.take(replica.kv_granted_mib),
        headroom_mib=left.take(claim.headroom_mib),
        overhead_mib=left.take(claim.overhead_mib),
        drift_mib=left.take(held - claim.fixed_mib - replica.kv_granted_mib),
    )


def bar_of(book: Book) -> Bar:
    """The card's bar: reserve, replicas, external, releasing, buffer, each at most what is left; free is the rest."""
    left = _Left(book.card.total_mib)
    reserved = left.take(reserved_mib(book.card))
    segments = tuple(_segment(s, book, left) for s in book.seats if s.replica.phase is not Phase.FAILED)
    external = None if book.external_mib is None else left.take(book.external_mib)
    releasing = left.take(book.releasing_mib)
    buffer = left.take(buffer_mib(book.card, book.policy))
    known = external is not None
    return Bar(
        book.card.id,
        book.card.total_mib,
        reserved,
        segments,
        external,
        releasing,
        buffer,
        left.mib if known else None,
        0 if known else left.mib,
        oversell_pct(book),
    )
