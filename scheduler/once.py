"""`functools.cached_property` without its lock, which costs more than most sums of a ledger: a plan is one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801  the name that readers know
    """Worked out when it is first asked for, then an attribute of the object. Not for classes with slots."""

    def __init__(self, worked_out: Callable[[Any], Value]) -> None:
        self.worked_out, self.__doc__ = worked_out, worked_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, one: None, owner: type) -> cached_property[Value]: ...
    @overload
    def __get__(self, one: object, owner: type) -> Value: ...
    def __get__(self, one: object | None, owner: type) -> cached_property[Value] | Value:
        if one is None:
            return self
        found = one.__dict__[self.name] = self.worked_out(one)
        return found
