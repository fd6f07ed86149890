"""Control's side: send what changed since the last publication to the one group all web processes listen to."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer

from console.board import rows
from console.board.messages import GROUP, MAX_BYTES, Delta, pack
from console.board.picture import CardNumbers
from console.wire import Gateways
from scheduler.policy import Policy
from scheduler.world import World

#: A Redis that does not answer holds the loop up no longer than this.
SEND_S = 1.0
log = logging.getLogger(__name__)


class Publisher:
    """Remembers what it sent. Losing it is harmless: a fresh one sends everything, and its version jumps."""

    def __init__(self) -> None:
        self.sent: dict[int, tuple[object, ...]] = {}
        self.version = int(time.time() * 1000)  # above any version of an earlier life

    def deltas(self, now: rows.Now) -> Iterator[Delta]:
        """One message, or several of at most MAX_BYTES: also when nothing changed, since silence means disconnected."""
        latest = {card.id: _drawn(card) for card in now.cards}
        changed = [card for card in now.cards if self.sent.get(card.id) != latest[card.id]]
        self.sent = latest
        order = [card.id for card in now.cards]
        held = None if now.held is None else {str(tenant): one for tenant, one in now.held.items()}
        size = 100  # the most cards whose numbers stay below MAX_BYTES, found by halving
        while size > 1 and any(
            len(pack(Delta(0, 0.0, order, changed[i : i + size], held, now.stranded_pct))) > MAX_BYTES
            for i in range(0, len(changed), size)
        ):
            size //= 2
        for start in range(0, max(1, len(changed)), size):
            self.version += 1
            yield Delta(self.version, now.at, order, changed[start : start + size], held, now.stranded_pct)


_said = attrgetter(*(field.name for field in fields(CardNumbers) if field.name != "sampled_at"))


def _drawn(card: CardNumbers) -> tuple[object, ...]:
    """Every sample has a new time; it is drawn only when it is old."""
    return _said(card), card.sampled_at if card.stale else None


_publisher = Publisher()


def publish(
    world: World | None = None,
    gateways: Gateways | None = None,
    *,
    at: float | None = None,
    policy: Policy | None = None,
) -> bool:
    """Send the board as it is now; false when the channel layer does not take it. Never raises for a silent Redis.

    Without arguments everything is read. The control loop hands in the World it just planned from.
    """
    now = rows.now(at, world, gateways, policy)
    try:
        async_to_sync(_send)([pack(delta) for delta in _publisher.deltas(now)])
    except Exception as error:  # whatever it is: the board is for eyes, and may not stop the loop that plans
        log.warning("board not published: %s", type(error).__name__)
        return False
    return True


async def _send(bodies: list[bytes]) -> None:
    layer = get_channel_layer()
    assert layer is not None
    async with asyncio.timeout(SEND_S):
        for body in bodies:
            await layer.group_send(GROUP, {"type": "board.numbers", "body": body})
