"""Before it happens: who is about to be reclaimed and when, and which pools are nearly full. Asked, not acted upon."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from scheduler.draft import Draft
from scheduler.kept import why_kept
from scheduler.memory import HUNDRED, Book, held_mib, reserved_mib
from scheduler.reclaim import idle_limit_s, idle_s, may_be_asked
from scheduler.world import Phase, Replica, Service


@dataclass(frozen=True, slots=True)
class Ahead:
    """A ready copy that may go: its memory is given back from `at` on, unless it is called or kept."""

    replica: Replica
    service: Service
    at: float
    idle_s: float
    held_mib: int
    noticed: bool  # a notice stands already


@dataclass(frozen=True, slots=True)
class Level:
    """How full a pool is, by the ledger; `over` the line of the policy."""

    pool: str
    used_mib: int
    total_mib: int
    over: bool

    @property
    def used_pct(self) -> float:
        return round(self.used_mib * HUNDRED / self.total_mib, 1) if self.total_mib else 0.0


def ahead(draft: Draft) -> list[Ahead]:
    """Copies that are noticed, or idle for long enough that the next minutes decide; the first to go first."""
    found = (_ahead(draft, replica) for replica in draft.replicas.values() if replica.phase is Phase.READY)
    return sorted((one for one in found if one is not None), key=lambda one: (one.at, one.replica.id))


def _ahead(draft: Draft, replica: Replica) -> Ahead | None:
    service = draft.services.get(replica.service)
    if service is None:
        return None
    rules = draft.rules_of(replica)
    held = held_mib(replica, service, rules)
    idle = idle_s(draft, replica, service)
    if replica.drain_at is not None:
        return Ahead(replica, service, replica.drain_at, idle, held, noticed=True)
    limit = idle_limit_s(rules, replica, service)
    wait_s = max(0.0, limit - idle, _stay_s(draft, replica)) + rules.grace_s
    young = idle * HUNDRED < limit * draft.policy.waterline_idle_pct
    if young or wait_s > rules.waterline_notice_s:
        return None
    if not may_be_asked(draft, replica) or why_kept(draft, replica) is not None:
        return None
    return Ahead(replica, service, draft.now + wait_s, idle, held, noticed=False)


def _stay_s(draft: Draft, replica: Replica) -> float:
    """What is left of its minimum stay."""
    loaded_at = replica.since if replica.loaded_at is None else replica.loaded_at
    return max(0.0, loaded_at + draft.rules_of(replica).min_loaded_s - draft.now)


def levels(draft: Draft) -> list[Level]:
    """Every pool with a card that can be measured, by name."""
    used: dict[str, int] = defaultdict(int)
    total: dict[str, int] = defaultdict(int)
    for card in draft.world.cards.values():
        book = draft.book(card.id)
        if book.external_mib is not None:
            used[card.pool] += used_mib(book)
            total[card.pool] += card.total_mib
    return [
        Level(
            pool,
            used[pool],
            total[pool],
            used[pool] * HUNDRED >= total[pool] * draft.policy.of_pool(pool).waterline_pct,
        )
        for pool in sorted(total)
    ]


def used_mib(book: Book) -> int:
    """Everything of the card that is not free, the buffer apart."""
    held = sum(held_mib(s.replica, s.service, book.policy) for s in book.seats)
    return reserved_mib(book.card) + (book.external_mib or 0) + book.releasing_mib + held
