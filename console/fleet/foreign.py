"""The foreign-use calendar: which cards somebody else has now, and until when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from console.fleet.models import Card, ForeignUse


@dataclass(frozen=True, slots=True)
class Taken:
    """End of the present foreign use by card id and by host id (then all its cards)."""

    cards: Mapping[int, datetime] = field(default_factory=dict)
    hosts: Mapping[int, datetime] = field(default_factory=dict)

    def until(self, card: Card) -> datetime | None:
        """None: nobody else has it now."""
        if not self.cards and not self.hosts:
            return None
        ends = [end for end in (self.cards.get(card.pk), self.hosts.get(card.host_id)) if end is not None]
        return max(ends, default=None)


def taken(now: datetime) -> Taken:
    """One query."""
    cards: dict[int, datetime] = {}
    hosts: dict[int, datetime] = {}
    running = ForeignUse.objects.filter(starts_at__lte=now, ends_at__gt=now).order_by("ends_at")
    for host, card, ends_at in running.values_list("host_id", "card_id", "ends_at"):
        if card is None:
            hosts[host] = ends_at
        else:
            cards[card] = ends_at
    return Taken(cards, hosts)
