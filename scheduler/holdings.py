"""What each tenant holds of each pool, kept up as a plan goes on: asked for every card by every wish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from scheduler.draft import Draft
from scheduler.facts import counting
from scheduler.lifecycle import goes_by
from scheduler.memory import held_mib

#: MiB by tenant on one card: in all, and of those that leave anyway, and soon.
Part = tuple[Mapping[str, int], Mapping[str, int]]
NONE: Mapping[str, int] = MappingProxyType({})
NOTHING: Part = (NONE, NONE)


@dataclass(slots=True)
class Holdings:
    """MiB by (tenant, pool): in all, and of those that leave anyway, and soon."""

    held: Counter[tuple[str, str]] = field(default_factory=Counter)
    going: Counter[tuple[str, str]] = field(default_factory=Counter)
    parts: dict[str, Part] = field(default_factory=dict)  # by card, as they are in the sums


def held_there(draft: Draft) -> Holdings:
    """As of now: only cards on which something changed since the last question are looked at again."""
    now, sums = draft.table(_part, of_book=True), draft.fact(_nothing_summed)
    cards = draft.world.cards
    if len(now) < len(cards):  # a table forgets what changed, and nobody else asks this one
        for card in cards.keys() - now.keys():
            _put(sums, card, cards[card].pool, now[card])
    return sums


def _nothing_summed(draft: Draft) -> Holdings:
    return Holdings()


def _put(sums: Holdings, card: str, pool: str, part: Part) -> None:
    """The card's part in place of the one before."""
    before = sums.parts.get(card, NOTHING)
    for total, old, new in ((sums.held, before[0], part[0]), (sums.going, before[1], part[1])):
        for tenant, mib in old.items():
            total[tenant, pool] -= mib
        for tenant, mib in new.items():
            total[tenant, pool] += mib
    sums.parts[card] = part


def _part(draft: Draft, card: str) -> Part:
    """Nothing on a host that is lost or being emptied: what is there is had elsewhere anew, and must find room."""
    if card not in draft.fact(counting):
        return NOTHING
    held: dict[str, int] = {}
    going: dict[str, int] = {}
    soon, policy = draft.now + draft.policy.grace_room_s, draft.policy
    for replica, service in draft.book(card).seats:
        if service is not None and (mib := held_mib(replica, service, policy)):
            tenant = service.tenant
            held[tenant] = held.get(tenant, 0) + mib
            if goes_by(replica, soon):
                going[tenant] = going.get(tenant, 0) + mib
    return held, going or NONE
