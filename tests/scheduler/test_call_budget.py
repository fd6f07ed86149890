"""Who may call, and until when not."""

from __future__ import annotations

from scheduler.call_budget import Barred, CallBudget, Unit, barred
from tests.scheduler.build import NOW
from tests.scheduler.cases import cases

LATER = NOW + 1000


def a_budget(used: int, limit: int = 100, **more) -> CallBudget:
    more.setdefault("resets_at", LATER)
    return CallBudget("t", limit, used, **more)


@cases(
    ("budget", "until"),
    [
        (a_budget(99), None),
        (a_budget(100), LATER),
        (a_budget(101), LATER),
        (a_budget(0, limit=0), LATER),
        (a_budget(500, resets_at=NOW), None),
        (a_budget(500, resets_at=NOW + 1), NOW + 1),
        (a_budget(100, unit=Unit.FEN), LATER),
    ],
)
def test_a_tenants_budget_bars_all_its_keys_until_the_month_is_over(budget, until):
    found = barred([budget], NOW)
    assert found.until("t", 1) == found.until("t", 2) == until
    assert found.until("other", 1) is None


def test_a_keys_budget_bars_that_key():
    found = barred([a_budget(100, key=7)], NOW)
    assert found.until("t", 7) == LATER
    assert found.until("t", 8) is None


def test_of_several_the_one_that_ends_last_counts():
    found = barred([a_budget(100), a_budget(100, key=7, resets_at=NOW + 9), a_budget(100, resets_at=NOW + 5)], NOW)
    assert found.until("t", 7) == LATER
    assert found == Barred({"t": LATER}, {7: NOW + 9})
