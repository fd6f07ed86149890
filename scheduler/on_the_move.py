"""Copies on the move, by card, for `Draft.table`: whoever starts, wakes, falls asleep or stops there."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from scheduler.lifecycle import moving
from scheduler.world import Phase, Replica

if TYPE_CHECKING:
    from scheduler.draft import Draft


def moving_on(draft: Draft, card: str) -> list[Replica]:
    """Of one card, by id."""
    return [r for r in draft.on_card(card) if moving(r)]


def loading_beside(draft: Draft, card: str) -> list[Replica]:
    """Of all cards of its host, by id: loads share the way from the storage."""
    cards = draft.cards_of(draft.world.cards[card].host)
    on_the_move = draft.table(moving_on, of_book=True)
    found = {r.id: r for c in cards for r in on_the_move[c] if r.phase is Phase.STARTING}
    return sorted(found.values(), key=attrgetter("id"))
