"""Which replica gets the call: the less busy of two drawn at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence

from console.gateway.routes import Replica


def choose(
    replicas: Sequence[Replica],
    tried: Collection[int],
    usable: Callable[[int], bool],
    in_flight: Callable[[int], int],
) -> Replica | None:
    """None when every replica was tried or is unusable. Two choices keep gateways from all running to the emptiest."""
    candidates = [replica for replica in replicas if replica.id not in tried and usable(replica.id)]
    if len(candidates) > 2:
        candidates = random.sample(candidates, 2)
    else:
        random.shuffle(candidates)
    return min(candidates, key=lambda replica: in_flight(replica.id), default=None)
