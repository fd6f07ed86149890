"""Who may have a call now: a ready replica with room for it. What has none makes the call wait for its turn.

Two bounds, both over all gateways, of which each process takes its share: tokens in flight at one replica, below what
its KV memory holds; batch calls in flight on one card, for the sake of its online neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from console.gateway.call import Call
from console.gateway.counts import Counts
from console.gateway.holds import TOKENS
from console.gateway.routes import Blob, Replica, Service


class Bound(StrEnum):
    """What a call waits for at a service that is ready."""

    BATCH = "batch"
    TOKENS = TOKENS


def share(total: int, gateways: int) -> int:
    """This process's part of a bound, rounded up: none of several gateways may starve while calls are let in at all."""
    return -(-total // max(1, gateways))


def lane(service: Service, call: Call) -> Sequence[Replica]:
    """Replicas for calls of this length: long ones keep to those reserved for them, where there are any."""
    return [r for r in service.replicas if r.long == call.long] or service.replicas


def batch_most(blob: Blob, replica: Replica, card: str) -> int | None:
    """Batch calls that may be in flight on the card for one more of this replica; None: as many as come."""
    cap = blob.batch.get(card)
    if cap is None or (replica.batch_calls is not None and replica.batch_calls < cap.calls):
        return replica.batch_calls
    return cap.calls


def bound(blob: Blob, counts: Counts, replica: Replica, call: Call) -> Bound | None:
    """What keeps the call from this replica now; None: it has room. One call fits any replica that is empty."""
    for card in replica.batch:
        most = batch_most(blob, replica, card)
        if most is not None and counts.of_card(card) >= share(most, blob.gateways):
            return Bound.BATCH
    there = counts.tokens_of(replica.id)
    full = replica.tokens is not None and there + call.tokens > share(replica.tokens, blob.gateways)
    return Bound.TOKENS if full and there else None
