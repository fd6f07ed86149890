"""What an object works out once: the same value again, of each object its own, and a field of the class in its docs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scheduler.once import cached_property


@dataclass(frozen=True)
class Square:
    side: int

    @cached_property
    def area(self) -> list[int]:
        """In squares of one."""
        return [self.side * self.side]


def test_it_is_worked_out_once() -> None:
    square = Square(3)
    assert square.area == [9]
    assert square.area is square.area


def test_each_object_has_its_own() -> None:
    square = Square(3)
    assert (square.area, replace(square, side=4).area) == ([9], [16])
    assert square == Square(3), "what was worked out is no part of what it is"


def test_the_class_still_says_what_it_is() -> None:
    assert Square.area.__doc__ == "In squares of one."
