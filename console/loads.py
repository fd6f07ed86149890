"""How busy each service is: what its ready copies' engines run and queue, what gateways hold, and its P99."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from console.wire import Gateways
from scheduler.world import Phase, Profile, Replica


class Load(NamedTuple):
    """`running` None: a copy cannot be counted. `waiting` None: the gateways are not heard. `p99_ms` None: too few."""

    running: int | None = 0
    waiting: int | None = 0
    p99_ms: float | None = None
    p99_samples: int = 0
    queued: int = 0  # at the gateways, for a turn at ready copies; not among `waiting`

    def fields(self, profile: str) -> dict[str, Any]:
        """As the core's Service has them. A batch service's turns are kept short on purpose: they ask for no copy."""
        known = self._asdict()
        queued = known.pop("queued")
        if profile == Profile.BATCH or self.waiting is None:
            return known
        return known | {"waiting": self.waiting + queued}


def loads(replicas: Iterable[Replica], gateways: Gateways) -> Mapping[str, Load]:
    """By service name; absent: nothing runs or waits, nothing is measured."""
    running: dict[str, int | None] = {}
    waiting: dict[str, int] = defaultdict(int)
    queued: dict[str, int] = {}
    for replica in replicas:
        if replica.phase is Phase.READY:
            so_far, more = running.get(replica.service, 0), _running(replica)
            running[replica.service] = None if so_far is None or more is None else so_far + more
            waiting[replica.service] += replica.waiting or 0
    for gateway in gateways.gateways:
        for name, count in gateway.services.items():
            waiting[name] += count.held
            queued[name] = queued.get(name, 0) + count.queued
    measured = gateways.latencies.services
    unmeasured = Load()
    found = {}
    for name in running.keys() | waiting.keys() | measured.keys():
        p99_ms, samples = (measured[name].p99_ms, measured[name].samples) if name in measured else (None, 0)
        waits = waiting.get(name, 0) if gateways.known else None
        load = Load(running.get(name, 0), waits, p99_ms, samples, queued.get(name, 0))
        if load != unmeasured:
            found[name] = load
    return found


def _running(replica: Replica) -> int | None:
    """The engine's own word, else what the gateways sent it beyond its queue."""
    if replica.running is not None:
        return replica.running
    return None if replica.in_flight is None else max(0, replica.in_flight - (replica.waiting or 0))
