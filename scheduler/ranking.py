"""Cards in the order of one of their numbers: who asks for room looks at the few that have it, not at all of a farm."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from math import inf
from operator import itemgetter

from scheduler.draft import Draft
from scheduler.world import Card

#: One number of a card, by its id: as a `Draft.table` may say it.
Number = Callable[[Draft, str], float]


class Ranking:
    """Every card with its number, the largest first, equals by id. Brought up to date whenever it is asked."""

    def __init__(self, draft: Draft, number: Number) -> None:
        self.number, self.cards = number, draft.cards()
        self.places = {card.id: place for place, card in enumerate(self.cards)}
        self.known = [-number(draft, card.id) for card in self.cards]
        self.order = sorted(zip(self.known, range(len(self.cards)), strict=True))
        self.heard = len(draft.changes)

    def at_least(self, draft: Draft, least: float) -> list[Card]:
        """Cards whose number is not less, by id."""
        self._refresh(draft)
        count = bisect_right(self.order, (-least, inf))
        return [self.cards[place] for place in sorted([place for _, place in self.order[:count]])]

    def down(self, draft: Draft) -> Iterator[Card]:
        """The largest first. Not to be gone on with once something was decided."""
        self._refresh(draft)
        return map(self.cards.__getitem__, map(itemgetter(1), self.order))

    def _refresh(self, draft: Draft) -> None:
        """Puts the cards in their places about which something changed since."""
        for card in {*draft.changes[self.heard :]}:
            place = self.places.get(card)
            if place is None:
                continue
            old, new = self.known[place], -self.number(draft, card)
            if new != old:
                del self.order[bisect_left(self.order, (old, place))]
                insort(self.order, (new, place))
                self.known[place] = new
        self.heard = len(draft.changes)


def ranking(draft: Draft, number: Number) -> Ranking:
    """The cards by that number, as they stand in the draft now."""
    found = draft.rankings.get(number)
    if found is None:
        found = draft.rankings[number] = Ranking(draft, number)
    return found
