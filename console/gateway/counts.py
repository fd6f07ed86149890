"""Calls and their tokens in flight per replica, and batch calls per card.

Up when a replica is granted, down in the same wrapper, whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Counts:
    """`emptied(replica)` is called whenever a count reaches zero, `freed()` whenever a call has ended."""

    def __init__(self, emptied: Callable[[int], None], freed: Callable[[], None] = lambda: None) -> None:
        self._in_flight: dict[int, int] = {}
        self._tokens: dict[int, int] = {}
        self._on_card: dict[str, int] = {}
        self._emptied, self._freed = emptied, freed

    @contextmanager
    def granted(self, replica: int, tokens: int = 0, batch_on: tuple[str, ...] = ()) -> Iterator[None]:
        """`tokens` that the call is expected to hold there; `batch_on`: cards where it counts as a batch call."""
        self._in_flight[replica] = self._in_flight.get(replica, 0) + 1
        self._tokens[replica] = self._tokens.get(replica, 0) + tokens
        for card in batch_on:
            self._on_card[card] = self._on_card.get(card, 0) + 1
        try:
            yield
        finally:
            for card in batch_on:
                self._on_card[card] -= 1
            self._tokens[replica] -= tokens
            left = self._in_flight[replica] - 1
            if left:
                self._in_flight[replica] = left
            else:
                del self._in_flight[replica], self._tokens[replica]
                self._emptied(replica)
            self._freed()

    def of(self, replica: int) -> int:
        return self._in_flight.get(replica, 0)

    def tokens_of(self, replica: int) -> int:
        return self._tokens.get(replica, 0)

    def of_card(self, card: str) -> int:
        """Batch calls in flight there."""
        return self._on_card.get(card, 0)

    def all(self) -> dict[int, int]:
        """Replica id → calls in flight; absent is zero."""
        return dict(self._in_flight)
