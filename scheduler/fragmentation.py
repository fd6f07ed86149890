"""Fragmentation: the share of free memory that those who are expected to come cannot use.

The expected mix is what was started in the last 28 days, and every cold service once more: each a claim on one card.
After B. Weng et al., "Beware of Fragmentation" (USENIX ATC 2023), with memory in place of shares of a chip: what is
stranded on a card is its room times the share of the mix that does not fit into it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from scheduler.memory import HUNDRED, Book, awake_count, least_start_mib, room_mib
from scheduler.policy import Policy
from scheduler.world import Card, Pool, Service, Tier


@dataclass(frozen=True, slots=True)
class Mix:
    """`sizes_mib` ascending, each the least room of some claims; `fit`: the weight of all up to each."""

    sizes_mib: tuple[int, ...] = ()
    fit: tuple[int, ...] = ()

    def unfit_share(self, room_mib: int) -> float:
        """Of the expected claims, the share that does not fit into the room; 0 when nobody is expected."""
        if not self.sizes_mib:
            return 0.0
        place = bisect_right(self.sizes_mib, room_mib)
        return 1.0 - (self.fit[place - 1] if place else 0) / self.fit[-1]


@dataclass(frozen=True, slots=True)
class Stranded:
    """MiB of a pool: free in all, and of it what the mix cannot use. `cards` were looked at."""

    free_mib: int = 0
    stranded_mib: float = 0.0
    cards: int = 0

    @property
    def share(self) -> float:
        """F, 0 to 1; 0 when nothing is free."""
        return self.stranded_mib / self.free_mib if self.free_mib else 0.0

    @property
    def pct(self) -> float:
        return HUNDRED * self.share

    def plus(self, free_mib: int, stranded_mib: float) -> Stranded:
        return Stranded(self.free_mib + free_mib, self.stranded_mib + stranded_mib, self.cards + 1)


def weight_of(service: Service) -> int:
    """How often it is expected: its starts of the last 28 days, a cold one at least once more."""
    return service.starts_28d + (service.tier is Tier.COLD)


def mix_of(services: Iterable[Service], policy: Policy) -> Mix:
    """The expected mix of these services; where nobody started and nobody is cold, each counts once."""
    known = list(services)
    counts: dict[int, int] = defaultdict(int)
    nobody = not any(weight_of(service) for service in known)
    for service in known:
        if weight := weight_of(service) + nobody:
            counts[least_start_mib(service, policy.oversell_mixed_pct)] += weight
    sizes = sorted(counts)
    return Mix(tuple(sizes), tuple(accumulate(counts[size] for size in sizes)))


def kind_of(card: Card) -> tuple[str, str, float, str]:
    """Cards of one kind are open to the same services."""
    return card.pool, card.card_class, card.compute_cap, card.family


def open_to(service: Service, card: Card, pool: Pool) -> bool:
    """May the service live on cards of this kind, as far as never changes: pool, class, capability, software?"""
    if service.pools and pool.name not in service.pools:
        return False
    if pool.tenants and service.tenant not in pool.tenants:
        return False
    classes = not service.card_classes or card.card_class in service.card_classes
    return classes and card.compute_cap >= service.min_compute_cap and card.family == service.family


def unusable_mib(book: Book, mix: Mix) -> float:
    """Of the card's room, what the mix cannot use: all of it on a card that takes no more replicas."""
    room = max(0, room_mib(book) or 0)
    full = awake_count(book) >= book.policy.max_replicas_per_card
    return float(room) if full else room * mix.unfit_share(room)


def usable(card: Card) -> bool:
    """A card that takes nobody for other reasons has no free memory to strand."""
    return card.healthy and not card.cordoned and card.unavailable_mib is not None


def stranded(books: Iterable[Book], mixes: Mapping[tuple[str, str, float, str], Mix]) -> dict[str, Stranded]:
    """By pool. `mixes` by kind of card (`kind_of`)."""
    found: dict[str, Stranded] = {}
    for book in books:
        if usable(book.card):
            mix = mixes.get(kind_of(book.card), Mix())
            pool = book.card.pool
            room = max(0, room_mib(book) or 0)
            found[pool] = found.get(pool, Stranded()).plus(room, unusable_mib(book, mix))
    return found


def together(parts: Iterable[Stranded]) -> Stranded:
    """The sum over pools."""
    known = list(parts)
    return Stranded(sum(p.free_mib for p in known), sum(p.stranded_mib for p in known), sum(p.cards for p in known))
