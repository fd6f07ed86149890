"""What was built from the same values last time is taken again: from second to second most of a farm stands still.

Only for frozen things. Everything a thing is built from is compared, nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
#: More than any farm has of one kind; past it all is forgotten and built anew.
MOST = 16384


class Unchanged(Generic[T]):
    """Things of one kind by their key, each with the values it was built from. Shared by the threads of a process."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Any, T]] = {}

    def of(self, key: Hashable, values: Any, build: Callable[[], T]) -> T:
        """The thing of these values: the one of last time, or what `build` makes of them."""
        known = self._known.get(key)
        if known is not None and known[0] == values:
            return known[1]
        return self._keep(key, values, build())

    def each(self, asked: Iterable[tuple[Hashable, tuple[Any, ...]]], build: Callable[..., T]) -> list[T]:
        """The things of many (key, values), in their order; `build` takes the values. A call less for each."""
        found, known = [], self._known
        for key, values in asked:
            old = known.get(key)
            found.append(old[1] if old is not None and old[0] == values else self._keep(key, values, build(*values)))
        return found

    def _keep(self, key: Hashable, values: Any, built: T) -> T:
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[key] = values, built
        return built
