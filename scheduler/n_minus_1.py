"""N-1: if this card died now, who of those on it would find no other home?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from heapq import nlargest

from scheduler.draft import Draft
from scheduler.fragmentation import usable
from scheduler.memory import least_start_mib
from scheduler.scores import Offer
from scheduler.sums import sums_on
from scheduler.world import Phase, Service


def homeless_share(draft: Draft, service: Service, offer: Offer) -> float:
    """Of the copies on the card, the newcomer with them, the share that would serve nobody until room is made.

    Who has another copy elsewhere still serves. The rest take the largest rooms of the pool's other cards, the largest
    claim first: a lower bound that needs no trial of every pair.
    """
    alone = [service, *_alone_on(draft, offer)]
    needs = sorted((least_start_mib(s, draft.policy.oversell_mixed_pct) for s in alone), reverse=True)
    rooms = _rooms_elsewhere(draft, offer, len(needs))
    lost = 0
    for need in needs:
        best = max(range(len(rooms)), key=rooms.__getitem__, default=None)
        if best is None or rooms[best] < need:
            lost += 1
        else:
            rooms[best] -= need
    return lost / len(needs)


def _alone_on(draft: Draft, offer: Offer) -> list[Service]:
    """Services on the card that are ready, or will be, nowhere else."""
    found = []
    for seat in offer.book.seats:
        if seat.service is None or seat.replica.phase not in (Phase.STARTING, Phase.READY):
            continue
        if not any(offer.card.id not in r.cards for r in draft.in_hand(seat.service.name)):
            found.append(seat.service)
    return found


def _rooms_elsewhere(draft: Draft, offer: Offer, count: int) -> list[int]:
    """The largest rooms of the other cards of the pool: as many as there are claims, more are of no use."""
    sums, here = sums_on(draft), offer.card.id
    return nlargest(count, [sums[card].room_mib for card in draft.fact(_usable)[offer.card.pool] if card != here])


def _usable(draft: Draft) -> Mapping[str, list[str]]:
    """Usable cards by pool."""
    found: dict[str, list[str]] = defaultdict(list)
    for card in draft.cards():
        if usable(card):
            found[card.pool].append(card.id)
    return found
