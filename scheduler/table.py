"""An answer about each card, worked out when it is first asked for, and again once it may not hold any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from scheduler.draft import Draft

Answer = TypeVar("Answer")


class Table(dict[str, Answer]):
    """By card: `table[card]` asks, `table.pop(card, None)` forgets. Kept by the draft that it asks."""

    def __init__(self, draft: Draft, answer: Callable[[Draft, str], Answer]) -> None:
        self.draft, self.answer = ref(draft), answer

    def __missing__(self, card: str) -> Answer:
        draft = self.draft()
        assert draft is not None
        found = self[card] = self.answer(draft, card)
        return found
