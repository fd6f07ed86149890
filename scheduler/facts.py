"""What no plan changes, worked out once a plan for `Draft.fact`: cards in order, those on hosts that count, claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scheduler.fragmentation import Mixes
from scheduler.hosts import lost, silent
from scheduler.world import Card, Host

if TYPE_CHECKING:
    from scheduler.draft import Draft


def heard(draft: Draft) -> frozenset[str]:
    """Cards on hosts that may be given something new."""
    return _on(draft, lambda host: not silent(host, draft.policy, draft.now))


def not_lost(draft: Draft) -> frozenset[str]:
    return _on(draft, lambda host: not lost(host, draft.policy, draft.now))


def counting(draft: Draft) -> frozenset[str]:
    """Cards of which a copy counts (`hosts.counted`): on hosts that are neither lost nor being emptied."""
    return _on(draft, lambda host: not lost(host, draft.policy, draft.now) and host.leave_by is None)


def every_card(draft: Draft) -> list[Card]:
    """By id."""
    return [card for _, card in sorted(draft.world.cards.items())]


def mixes(draft: Draft) -> Mixes:
    """The claims expected on each kind of card."""
    return Mixes(draft.services.values(), draft.world.pools, draft.policy)


def _on(draft: Draft, holds: Callable[[Host], bool]) -> frozenset[str]:
    """Cards on hosts of which that holds; not those whose host is unknown."""
    hosts = {host.name for host in draft.world.hosts.values() if holds(host)}
    return frozenset(card.id for card in draft.world.cards.values() if card.host in hosts)
