"""One start, sleep or wake at a time on a card: who has the turn.

Two engines that take memory at once spoil each other's measuring, so the others queue. A stop never holds a turn.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable


class Turns:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: dict[str, int] = {}

    def take(self, replica: int, cards: Iterable[str]) -> bool:
        """All of the cards or none. True also when the replica has them already."""
        wanted = list(cards)
        with self._lock:
            if any(self._holder.get(card, replica) != replica for card in wanted):
                return False
            self._holder.update(dict.fromkeys(wanted, replica))
            return True

    def free(self, replica: int) -> None:
        with self._lock:
            for card in [card for card, holder in self._holder.items() if holder == replica]:
                del self._holder[card]

    def busy(self, replica: int, cards: Iterable[str]) -> bool:
        """Does another replica have the turn on one of these cards?"""
        with self._lock:
            return any(self._holder.get(card, replica) != replica for card in cards)
