"""A card's ledger in the course of a plan: as the host saw it, with what was decided and promised since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scheduler.memory import Book, book_of, with_seats
from scheduler.world import Replica

if TYPE_CHECKING:
    from scheduler.draft import Draft


def book_on(draft: Draft, card: str) -> Book:
    """What others took is known only against what the host saw: decisions of this very plan hold nothing yet."""
    there = draft.on_card(card)
    if card not in draft.altered:
        return _seen(draft, card, there)  # nothing was decided here yet: so it is on nearly all cards
    known, promised = draft.world.replicas, draft.promised.get(card)
    before = [known[r.id] for r in there if r.id in known]
    return with_seats(_seen(draft, card, before), [*there, *(promised or {}).values()], draft.services)


def _seen(draft: Draft, card: str, before: Sequence[Replica]) -> Book:
    """With those that are still there, as they were when the plan began."""
    kept = draft.fact(_nothing_seen)
    if card not in kept or len(kept[card].seats) != len(before):
        kept[card] = book_of(draft.world.cards[card], before, draft.services, draft.policy)
    return kept[card]


def _nothing_seen(draft: Draft) -> dict[str, Book]:
    return {}
