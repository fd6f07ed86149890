"""What room for a copy would take: the ask, and on each card who leaves anyway and who would have to go besides."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.decision import Refusal
from scheduler.memory import Book, awake_count, start_grant, wake_fits
from scheduler.victims import Kind, Victim
from scheduler.world import Card, Replica, Service


@dataclass(frozen=True, slots=True)
class Ask:
    """Room for a start of the service, or for a wake of `sleeper`. `gentle`: nobody in use goes for it."""

    service: Service
    sleeper: Replica | None = None
    gentle: bool = False

    @property
    def need(self) -> int:
        """Cards that it takes together."""
        return self.service.cards_per_replica if self.sleeper is None else len(self.sleeper.cards)

    def fits(self, book: Book) -> bool:
        if self.sleeper is not None:
            return wake_fits(book, self.sleeper, self.service) is None
        roomy = awake_count(book) < book.policy.max_replicas_per_card
        return roomy and not isinstance(start_grant(book, self.service), Refusal)


@dataclass(frozen=True, slots=True)
class Room:
    """One card's way to the room: who leaves already and is needed, who would have to go besides.

    `sleep`: who may sleep goes to sleep, else all are stopped. Nobody in it: the card fits as it is.
    """

    card: Card
    leaving: tuple[Replica, ...] = ()
    victims: tuple[Victim, ...] = ()
    sleep: bool = False

    @property
    def rest_s(self) -> float:
        return max([v.rest_s for v in self.victims], default=0.0)

    @property
    def cost(self) -> tuple[int, int, int, float, int, str]:
        """Those in use count most, then idle ones, their priority, how lately they were used, and the rest."""
        kinds = [v.kind for v in self.victims]
        awake = [v for v in self.victims if v.kind in (Kind.IDLE, Kind.IN_USE)]
        return (
            kinds.count(Kind.IN_USE),
            kinds.count(Kind.IDLE),
            max([v.priority for v in awake], default=0),
            max([v.used_at for v in awake], default=0.0),
            len(kinds),
            self.card.id,
        )


@dataclass(frozen=True, slots=True)
class Rooms:
    """The rooms that one copy needs, one a card."""

    each: tuple[Room, ...]

    @property
    def first(self) -> Card:
        """The cheapest of its cards."""
        return self.each[0].card

    @property
    def leaving(self) -> list[Replica]:
        return list({r.id: r for room in self.each for r in room.leaving}.values())

    @property
    def victims(self) -> list[Victim]:
        return list({v.replica.id: v for room in self.each for v in room.victims}.values())

    @property
    def rest_s(self) -> float:
        return max([room.rest_s for room in self.each])

    @property
    def cost(self) -> tuple[int, int, int, float, int, str]:
        """The same order as of one room: more that are in use count before everything else."""
        if len(self.each) == 1:
            return self.each[0].cost
        in_use, idle, priority, used_at, count, card = zip(*(room.cost for room in self.each), strict=True)
        return sum(in_use), sum(idle), max(priority), max(used_at), sum(count), min(card)
