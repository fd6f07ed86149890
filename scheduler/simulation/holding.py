"""Who held how much of which card for how long, and what that costs at the card's price. By service."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.cost import HOUR_S
from scheduler.seats import held_mib
from scheduler.simulation.state import Farm


def note(farm: Farm, cards: Iterable[str]) -> None:
    """Adds up what was held on these cards since the last note, and takes down what is held from here on."""
    for name in cards:
        since, held = farm.holding.get(name, (farm.now, ()))
        if held and farm.now > since:
            _add(farm, name, held, farm.now - since)
        there = farm.on_card[name]
        farm.holding[name] = (
            farm.now,
            tuple((c.seen.service, held_mib(c.seen, c.service, farm.policy)) for c in there),
        )


def _add(farm: Farm, card: str, held: Iterable[tuple[str, int]], seconds: float) -> None:
    """A price of 0 is one that nobody set: what it would cost is not known."""
    on = farm.world.cards[card]
    for service, mib in held:
        own = farm.measures.of[service]
        own.held_mib_s += mib * seconds
        own.unpriced |= bool(mib) and not on.price_fen_h
        own.fen += on.price_fen_h * mib * seconds / (on.total_mib * HOUR_S) if on.total_mib else 0.0
