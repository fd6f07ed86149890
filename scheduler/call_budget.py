"""Call budgets: tokens or fen a month, of a company or of one of its keys. Spent, every further call is refused.

Unlike a card budget this is a hard stop, at one gate, until the month is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum


class Unit(StrEnum):
    TOKENS = "tokens"
    FEN = "fen"


@dataclass(frozen=True, slots=True)
class CallBudget:
    """`key` None: of the whole tenant. `used` and `limit` in `unit`; `resets_at`: when the month is over (seconds)."""

    tenant: str
    limit: int
    used: int
    resets_at: float
    unit: Unit = Unit.TOKENS
    key: int | None = None

    def spent(self, now: float) -> bool:
        """A budget of a month that is over bars nobody, even where nobody has counted anew yet."""
        return self.used >= self.limit and now < self.resets_at


@dataclass(frozen=True, slots=True)
class Barred:
    """Who may not call, and until when (seconds): tenants by name, keys by id. A tenant bars all of its keys."""

    tenants: dict[str, float] = field(default_factory=dict)
    keys: dict[int, float] = field(default_factory=dict)

    def until(self, tenant: str, key: int) -> float | None:
        """When this key may call again; None: it may now."""
        ends = [end for end in (self.tenants.get(tenant), self.keys.get(key)) if end is not None]
        return max(ends, default=None)


def barred(budgets: Iterable[CallBudget], now: float) -> Barred:
    """Who is barred at `now`: of several spent budgets the one that resets last counts."""
    found = Barred()
    for budget in budgets:
        if not budget.spent(now):
            continue
        if budget.key is None:
            found.tenants[budget.tenant] = max(budget.resets_at, found.tenants.get(budget.tenant, 0.0))
        else:
            found.keys[budget.key] = max(budget.resets_at, found.keys.get(budget.key, 0.0))
    return found
