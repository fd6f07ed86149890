"""The table of cases itself: none is left out, and whoever fails is named."""

from __future__ import annotations

import pytest

from tests.scheduler.cases import cases


def failing(test, **fixtures) -> list[str]:
    """The notes of the cases that failed."""
    with pytest.raises(BaseExceptionGroup) as caught:
        test(**fixtures)
    return [note for error in caught.value.exceptions for note in error.__notes__]


def test_all_are_tried_and_all_that_fail_are_told():
    tried = []

    @cases(("n", "even"), [(1, True), (2, True), (3, True)])
    def parity(n, even):
        tried.append(n)
        assert (n % 2 == 0) is even

    assert failing(parity) == ["case: {'n': 1, 'even': True}", "case: {'n': 3, 'even': True}"]
    assert tried == [1, 2, 3]


def test_what_does_not_raise_where_it_should_is_one_failure_among_others():
    @cases("number", ["x", "1", "y", "2"])
    def refused(number):
        with pytest.raises(ValueError, match="invalid"):
            int(number)

    assert failing(refused) == ["case: {'number': '1'}", "case: {'number': '2'}"]


def test_stacked_tables_are_multiplied():
    seen = []

    @cases("a", [1, 2])
    @cases("b", "xy")
    def pairs(a, b):
        seen.append((a, b))

    pairs()
    assert seen == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]


@cases("name", ["it", "them"])
def test_what_the_table_does_not_name_is_a_fixture(tmp_path, name):
    assert tmp_path.is_dir()
    assert name in {"it", "them"}


@cases(
    ("names", "table"),
    [("a", []), (("a", "b"), [(1,)]), (("a", "b"), [(1, 2, 3)]), ("other", [1])],
)
def test_a_table_that_would_try_nothing_is_refused(names, table):
    def of_two(a, b):
        pass

    with pytest.raises(ValueError, match=r"no case|argument|has no"):
        cases(names, table)(of_two)
