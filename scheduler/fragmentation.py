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
from typing import NamedTuple

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
    claims: Claims = defaultdict(list)
    for service in services:
        claims[least_start_mib(service, policy.oversell_mixed_pct)].append(weight_of(service))
    return _mix([claims])


#: Least room: how often each claim of it is expected.
Claims = dict[int, list[int]]


def _mix(parts: Iterable[Claims]) -> Mix:
    weights: Claims = defaultdict(list)
    for claims in parts:
        for least, each in claims.items():
            weights[least] += each
    counts = {least: sum(each) for least, each in weights.items()}
    if not any(counts.values()):
        counts = {least: len(each) for least, each in weights.items()}
    sizes = sorted(least for least, count in counts.items() if count)
    return Mix(tuple(sizes), tuple(accumulate(counts[size] for size in sizes)))


#: (pool, class, compute capability, software): cards of one kind are open to the same services.
Kind = tuple[str, str, float, str]


def kind_of(card: Card) -> Kind:
    return card.pool, card.card_class, card.compute_cap, card.family


class Home(NamedTuple):
    """All that `open_to` reads of a service."""

    pools: frozenset[str]
    tenant: str
    card_classes: frozenset[str]
    min_compute_cap: float
    family: str


def open_to(home: Home, kind: Kind, pool: Pool) -> bool:
    """May such services live on cards of this kind, as far as never changes: pool, class, capability, software?"""
    _, card_class, compute_cap, family = kind
    if home.pools and pool.name not in home.pools:
        return False
    if pool.tenants and home.tenant not in pool.tenants:
        return False
    classes = not home.card_classes or card_class in home.card_classes
    return classes and compute_cap >= home.min_compute_cap and family == home.family


class Mixes(dict[Kind, Mix]):
    """The expected mix on each kind of card, of these services; worked out when it is first asked for."""

    def __init__(self, services: Iterable[Service], pools: Mapping[str, Pool], policy: Policy) -> None:
        limit, self.pools = policy.oversell_mixed_pct, pools
        self.claims: dict[Home, Claims] = defaultdict(lambda: defaultdict(list))
        for s in services:
            home = Home(s.pools, s.tenant, s.card_classes, s.min_compute_cap, s.family)
            self.claims[home][least_start_mib(s, limit)].append(weight_of(s))

    def __missing__(self, kind: Kind) -> Mix:
        pool = self.pools.get(kind[0], Pool(kind[0]))
        found = self[kind] = _mix(claims for home, claims in self.claims.items() if open_to(home, kind, pool))
        return found


def unusable_mib(book: Book, mix: Mix) -> float:
    """Of the card's room, what the mix cannot use: all of it on a card that takes no more replicas."""
    room = max(0, room_mib(book) or 0)
    full = awake_count(book) >= book.policy.max_replicas_per_card
    return float(room) if full else room * mix.unfit_share(room)


def usable(card: Card) -> bool:
    """A card that takes nobody for other reasons has no free memory to strand."""
    return card.healthy and not card.cordoned and card.unavailable_mib is not None


def stranded(books: Iterable[Book], mixes: Mixes) -> dict[str, Stranded]:
    """By pool."""
    found: dict[str, Stranded] = {}
    for book in books:
        if usable(book.card):
            mix = mixes[kind_of(book.card)]
            pool = book.card.pool
            room = max(0, room_mib(book) or 0)
            found[pool] = found.get(pool, Stranded()).plus(room, unusable_mib(book, mix))
    return found


def together(parts: Iterable[Stranded]) -> Stranded:
    """The sum over pools."""
    known = list(parts)
    return Stranded(sum(p.free_mib for p in known), sum(p.stranded_mib for p in known), sum(p.cards for p in known))
