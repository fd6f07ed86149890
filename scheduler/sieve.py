"""The lasting filters for one service on many cards: each is asked as seldom as what it reads allows.

Good while nothing is decided: make a new sieve for each question. A filter that stands in none of the lists here is
asked of every card.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from scheduler import two_hosts
from scheduler.decision import Refusal
from scheduler.draft import Draft
from scheduler.elastic import ELASTIC
from scheduler.filters import (
    LASTING,
    Filter,
    card_class,
    compute_capability,
    cordoned,
    elastic,
    evicted_here,
    failed_here,
    family,
    fast_enough,
    healthy,
    host_heard,
    image,
    large_and_fast,
    measured,
    on_two_hosts,
    pool,
    preflight,
    pressed,
    quota,
    same_service,
    sliced,
    tenants_apart,
    weights,
)
from scheduler.once import cached_property
from scheduler.quota import limited
from scheduler.world import Card, Host, Service

Kind = tuple[str, float, frozenset[str], bool, bool]

#: What they say depends on the card, its host and `kind` alone: no plan changes it.
BY_KIND = frozenset(
    {
        family,
        compute_capability,
        card_class,
        sliced,
        fast_enough,
        host_heard,
        preflight,
        healthy,
        cordoned,
        measured,
        pressed,
    }
)

_ASKED_OF_ONE = [(place, question) for place, question in enumerate(LASTING) if question not in BY_KIND]
_ASKED_BY_KIND = [(place, question) for place, question in enumerate(LASTING) if question in BY_KIND]

#: What they let in, or keep out, they let onto every card of the pool, or onto none.
BY_POOL = [pool, elastic, quota]

#: Filters that have nothing against any card but these.
ONLY_ON: dict[Filter, Callable[[Draft, Service], Collection[str]]] = {
    failed_here: lambda draft, service: {card for f in service.failures for card in (f.card, *f.beside)},
    same_service: lambda draft, service: draft.seats_of(service.name),
    evicted_here: lambda draft, service: {e.card for e in draft.world.evictions if e.service == service.name},
}


def _some_elastic(draft: Draft) -> bool:
    return any(pool.kv == ELASTIC for pool in draft.world.pools.values())


def _images_everywhere(draft: Draft) -> bool:
    return all(host.images is None for host in draft.world.hosts.values())


def _weights_everywhere(draft: Draft) -> bool:
    return all(host.weights is None for host in draft.world.hosts.values())


def _some_apart(draft: Draft) -> bool:
    """Are there tenants at all that may not share a card?"""
    return any(service.apart_from for service in draft.services.values())


#: Filters that can say without a look at any card that they let a service onto all of them.
LETS_ALL: dict[Filter, Callable[[Draft, Service], bool]] = {
    quota: lambda draft, service: not limited(draft, service.tenant),
    on_two_hosts: lambda draft, service: not two_hosts.bound(service),
}
#: And those that can say it of every service.
LETS_EVERYBODY: dict[Filter, Callable[[Draft], bool]] = {
    elastic: lambda draft: not _some_elastic(draft),
    image: _images_everywhere,
    weights: _weights_everywhere,
    tenants_apart: lambda draft: not _some_apart(draft),
}


def _asked_here(draft: Draft) -> list[tuple[int, Filter]]:
    """With their places: the filters that are not by kind and have something against somebody on this farm."""
    silent = {question for question, lets in LETS_EVERYBODY.items() if lets(draft)}
    return [(place, question) for place, question in _ASKED_OF_ONE if question not in silent]


def kind(draft: Draft, service: Service) -> Kind:
    """All that the filters in BY_KIND read of a service."""
    demanding = large_and_fast(draft, service)
    return service.family, service.min_compute_cap, service.card_classes, service.slice_required, demanding


class Sieve:
    """`refusal` says why not of one card, `open` which cards nothing lasting speaks against."""

    def __init__(self, draft: Draft, service: Service) -> None:
        self.draft, self.service = draft, service
        self.kept = _kept(draft, service)
        self.rest = [(place, question) for place, question in draft.fact(_asked_here) if self._asks(question)]
        self.pools = draft.fact(_pools)
        self.let_in: set[tuple[int, str]] = set()  # (place of a filter by pool, pool that it lets into)

    def _asks(self, question: Filter) -> bool:
        """Must it be asked of any card at all?"""
        if question in ONLY_ON:
            return bool(ONLY_ON[question](self.draft, self.service))
        return not (question in LETS_ALL and LETS_ALL[question](self.draft, self.service))

    def refusal(self, card: Card, host: Host) -> tuple[int, Refusal] | None:
        """The first lasting filter that refuses, with its place in the list."""
        kept = self.kept.get(card.id)
        if kept is not None and (not self.rest or kept[0] < self.rest[0][0]):
            return kept
        for place, question in self.rest:
            if kept is not None and place > kept[0]:
                return kept
            if (place, card.pool) in self.let_in:
                continue
            refusal = question(self.draft, self.service, card, host)
            if refusal is not None:
                return place, refusal
            if question in BY_POOL:
                self.let_in.add((place, card.pool))
        return kept

    def open(self) -> list[Card]:
        """The cards that none refuses, by id. Not to be changed: it may be the answer to others, too."""
        cards, _ = self._by_kind
        return [card for card in cards if self.lets(card.id)] if self._shut or self._questions else cards

    def lets(self, card: str) -> bool:
        """Is it one of them?"""
        if card in self._shut or card not in self._by_kind[1]:
            return False
        return not self._questions or not any(self._refused(question, card) for question in self._questions)

    @cached_property
    def _questions(self) -> list[Filter]:
        """That are to be asked of each card."""
        return [question for _, question in self.rest if question not in BY_POOL and question not in ONLY_ON]

    @cached_property
    def _shut(self) -> set[str]:
        """The few cards that filters have something against which have nothing against any other."""
        some = [question for _, question in self.rest if question in ONLY_ON]
        return {i for q in some for i in ONLY_ON[q](self.draft, self.service) if self._refused(q, i)}

    def _refused(self, question: Filter, card_id: str) -> bool:
        card = self.draft.world.cards.get(card_id)
        host = None if card is None else self.draft.world.hosts.get(card.host)
        return card is None or host is None or question(self.draft, self.service, card, host) is not None

    def _may_enter(self, name: str) -> bool:
        return not any(self._refused(q, self.pools[name]) for _, q in self.rest if q in BY_POOL)

    @cached_property
    def _by_kind(self) -> tuple[list[Card], frozenset[str]]:
        """Cards, and their ids, which the filters by kind and by pool let in: the same for many services."""
        pools = frozenset(name for name in self.pools if self._may_enter(name))
        key, hosts = (kind(self.draft, self.service), pools), self.draft.world.hosts
        if key not in self.draft.facts:
            mine = (c for c in self.draft.cards() if c.pool in pools and c.host in hosts)
            cards = [card for card in mine if card.id not in self.kept]
            self.draft.facts[key] = cards, frozenset(card.id for card in cards)
        found: tuple[list[Card], frozenset[str]] = self.draft.facts[key]
        return found


def _pools(draft: Draft) -> dict[str, str]:
    """A card of each pool."""
    return {card.pool: card.id for card in draft.cards() if card.host in draft.world.hosts}


def _kept(draft: Draft, service: Service) -> dict[str, tuple[int, Refusal]]:
    """What the filters in BY_KIND say, by card; they have nothing against the cards that are not in it."""
    key = kind(draft, service)
    if key not in draft.facts:
        found: dict[str, tuple[int, Refusal]] = {}
        for card in draft.cards():
            host = draft.world.hosts.get(card.host)
            refusal = None if host is None else _first(draft, service, card, host)
            if refusal is not None:
                found[card.id] = refusal
        draft.facts[key] = found
    kept: dict[str, tuple[int, Refusal]] = draft.facts[key]
    return kept


def _first(draft: Draft, service: Service, card: Card, host: Host) -> tuple[int, Refusal] | None:
    for place, question in _ASKED_BY_KIND:
        if (refusal := question(draft, service, card, host)) is not None:
            return place, refusal
    return None
