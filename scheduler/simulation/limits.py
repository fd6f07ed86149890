"""How many batch calls may be in flight on a card: what the controller, the hours and pressure leave.

A batch call that finds its cards at their limit waits for its turn at the gateway, no longer than it would for a load.
"""

from __future__ import annotations

from scheduler import isolation
from scheduler.simulation.copies import Copy
from scheduler.simulation.state import Farm
from scheduler.world import Profile


def of_batch(copy: Copy) -> bool:
    return copy.service.profile is Profile.BATCH


def has_room(farm: Farm, copy: Copy) -> bool:
    """May one more batch call be in flight on its cards?"""
    return all(_room_on(farm, copy, card) for card in copy.seen.cards)


def _room_on(farm: Farm, copy: Copy, name: str) -> bool:
    most = most_calls(farm, copy, name)
    return most is None or sum([c.in_flight for c in farm.on_card[name] if of_batch(c)]) < most


def most_calls(farm: Farm, copy: Copy, name: str) -> int | None:
    """Batch calls that may be in flight on this card of the copy; None: as many as come."""
    card = farm.world.cards[name]
    if not isolation.governed(farm.world, card):
        return None
    cap = isolation.cap_of(card.batch_calls, stuck=name in farm.stuck)
    by_day = isolation.calls_now(farm.policy, copy.service, farm.site_minute, farm.now, card.pool)
    return min([calls for calls in (cap.calls if cap else None, by_day) if calls is not None], default=None)
