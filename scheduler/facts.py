"""What no plan changes, worked out once a plan for `Draft.fact`: which hosts count, by the cards on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scheduler.hosts import lost, silent
from scheduler.world import Host

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


def _on(draft: Draft, holds: Callable[[Host], bool]) -> frozenset[str]:
    """Cards on hosts of which that holds; not those whose host is unknown."""
    hosts = {host.name for host in draft.world.hosts.values() if holds(host)}
    return frozenset(card.id for card in draft.world.cards.values() if card.host in hosts)
