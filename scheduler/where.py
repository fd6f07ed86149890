"""Where room is looked for: on any card that is open to a service, or on these few."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from scheduler.draft import Draft
from scheduler.groups import by_host
from scheduler.potential import Potential, potential_of, potentials
from scheduler.ranking import Number, ranking
from scheduler.sieve import Sieve
from scheduler.world import Card


class Where(Protocol):
    """Cards, each of them a place for a copy on one card; `teams`: of which so many together are one for several."""

    def having(self, draft: Draft, number: Number, least: float) -> list[Card]:
        """Those whose number is not less, by id."""

    def later(self, draft: Draft, least: float) -> Iterable[Card]:
        """Those that can have so much only once somebody may go who must stay yet: the first of them first, then by id.

        Good until something is decided.
        """

    def teams(self, count: int) -> Sequence[list[Card]]:
        """Cards of one host each, at least so many."""


def left(draft: Draft, card: str) -> int:
    return potential_of(draft, card).left_mib


def now(draft: Draft, card: str) -> int:
    return potential_of(draft, card).now_mib


def _later(there: Potential, least: float) -> bool:
    return there.now_mib < least <= there.ever_mib


def _first(draft: Draft, card: str) -> float:
    """The sooner, the larger."""
    return -potential_of(draft, card).first_at


@dataclass(frozen=True, slots=True)
class Only:
    """These cards, grouped as teams."""

    cards: list[list[Card]]

    def having(self, draft: Draft, number: Number, least: float) -> list[Card]:
        return [card for card in chain(*self.cards) if number(draft, card.id) >= least]

    def later(self, draft: Draft, least: float) -> Iterable[Card]:
        known = potentials(draft)
        those = [card for card in chain(*self.cards) if _later(known[card.id], least)]
        return sorted(those, key=lambda card: known[card.id].first_at)

    def teams(self, count: int) -> Sequence[list[Card]]:
        return self.cards


@dataclass(frozen=True, slots=True)
class AnyOpen:
    """All cards that the sieve lets through, but those in `without`."""

    sieve: Sieve
    without: frozenset[str] = frozenset()

    def having(self, draft: Draft, number: Number, least: float) -> list[Card]:
        return [card for card in ranking(draft, number).at_least(draft, least) if self._lets(card)]

    def later(self, draft: Draft, least: float) -> Iterable[Card]:
        known = potentials(draft)
        for card in ranking(draft, _first).down(draft):
            if _later(known[card.id], least) and self._lets(card):
                yield card

    def teams(self, count: int) -> Sequence[list[Card]]:
        hosts = by_host(card for card in self.sieve.open() if card.id not in self.without)
        return [there for there in hosts.values() if len(there) >= count]

    def some(self, count: int) -> bool:
        """Is there any place at all for a copy over so many cards?"""
        return bool(self.teams(count)) if count > 1 else any(map(self._lets, self.sieve.draft.cards()))

    def _lets(self, card: Card) -> bool:
        return card.id not in self.without and self.sieve.lets(card.id)
