"""N-1: if this card died now, who of those on it would find no other home?"""

from __future__ import annotations

from itertools import islice

from scheduler.draft import Draft
from scheduler.fragmentation import usable
from scheduler.memory import least_start_mib
from scheduler.ranking import ranking
from scheduler.scores import Offer
from scheduler.sums import room_now, sums_on
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
    here, sums = offer.card, sums_on(draft)
    others = (
        sums[card.id].room_mib
        for card in ranking(draft, room_now).down(draft)
        if card.pool == here.pool and card.id != here.id and usable(card)
    )
    return list(islice(others, count))
