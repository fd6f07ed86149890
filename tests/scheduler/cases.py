"""A table of cases as one test: each is tried, and all that fail are told.

A test of pytest's own costs half a millisecond, most cases of the core a tenth of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from inspect import Parameter, Signature, signature
from typing import Any

import pytest

Test = Callable[..., None]


def cases(names: str | Sequence[str], table: Iterable[Any]) -> Callable[[Test], Test]:
    """Written as `pytest.mark.parametrize` is, and stacked likewise; what the table does not name stays a fixture.

    Raises ValueError for a table without rows or a row of another length: such a test would test nothing.
    """
    keys = [names] if isinstance(names, str) else list(names)
    rows = [dict(zip(keys, [row] if isinstance(names, str) else row, strict=True)) for row in table]
    if not rows:
        raise ValueError(f"no case of {', '.join(keys)}")

    def of(test: Test) -> Test:
        def tried(**fixtures: Any) -> None:
            failures = [e for row in rows if (e := _failure(partial(test, **fixtures, **row), row)) is not None]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(rows)} cases", failures)

        tried.__name__, tried.__doc__, tried.__module__ = test.__name__, test.__doc__, test.__module__
        tried.__signature__ = Signature(_left(test, keys))  # what pytest asks for the fixtures' names
        return tried

    return of


def _failure(case: Callable[[], None], row: dict[str, Any]) -> BaseException | None:
    try:
        case()
    except (Exception, pytest.fail.Exception) as error:
        error.add_note(f"case: {row}")
        return error
    return None


def _left(test: Test, keys: Sequence[str]) -> list[Parameter]:
    asked = signature(test).parameters
    if strange := set(keys) - set(asked):
        raise ValueError(f"{test.__name__} has no {', '.join(sorted(strange))}")
    return [parameter for name, parameter in asked.items() if name not in keys]
