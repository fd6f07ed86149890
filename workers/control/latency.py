"""Gateways' slots of latencies in, one picture for everybody out: P99 of each service and replica, disturbance.

A leader's memory of ten minutes, filled again from the streams by the next leader.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from console import wire
from console.wire import Gateways, Latencies, ReplicaLatency, ServiceLatency
from scheduler.histogram import SLOT_S, Histogram, unpacked
from scheduler.p99 import Slots, disturbance_pct, p99
from scheduler.policy import Policy
from scheduler.world import Phase, World

log = logging.getLogger(__name__)

KEPT_S = 600


class Slot(msgspec.Struct):
    """As a gateway sends it: replica → (metric, first bucket, counts, the same of the gaps between chunks)."""

    slot: int
    replicas: dict[int, tuple[str, int, bytes, int, bytes]] = {}


@dataclass(slots=True)
class Measured:
    """One replica's histograms by slot; `calls` are of `metric` only."""

    metric: str = ""
    calls: dict[int, Histogram] = field(default_factory=dict)
    gaps: dict[int, Histogram] = field(default_factory=dict)


@dataclass(slots=True)
class Latency:
    """What this leader has read: cursors of the gateways' streams, histograms of the replicas."""

    cursors: dict[str, str] = field(default_factory=dict)
    replicas: dict[int, Measured] = field(default_factory=lambda: defaultdict(Measured))
    told_at: float = 0.0

    def read(self, gateways: Gateways) -> bool:
        """Take in what is new; whether there was anything."""
        entries = wire.read_slots(self.cursors, [gateway.name for gateway in gateways.gateways])
        for name, body in entries:
            try:
                self.take(msgspec.msgpack.decode(body, type=Slot))
            except (msgspec.MsgspecError, ValueError) as error:
                log.warning("latencies of %s refused: %s", name, error)
        return bool(entries)

    def take(self, told: Slot) -> None:
        """Add one gateway's slot. Raises ValueError for counts that are none."""
        for number, (metric, first, calls, first_gap, gaps) in told.replicas.items():
            measured = self.replicas[number]
            if calls and measured.metric != metric:
                measured.metric, measured.calls = metric, {}
            _add(measured.calls, told.slot, unpacked(first, calls))
            _add(measured.gaps, told.slot, unpacked(first_gap, gaps))

    def forget(self, now: float) -> None:
        """Drop what no window reaches any more."""
        oldest = int(now - KEPT_S) // SLOT_S
        for number, measured in list(self.replicas.items()):
            for slots in (measured.calls, measured.gaps):
                for slot in [slot for slot in slots if slot < oldest]:
                    del slots[slot]
            if not measured.calls and not measured.gaps:
                del self.replicas[number]

    def picture(self, world: World, since: Mapping[str, float], policy: Policy, now: float) -> Latencies:
        """`since`: when each service's live copies last changed; P99 does not look back behind it."""
        services: dict[str, list[Slots]] = defaultdict(list)
        replicas: dict[int, ReplicaLatency] = {}
        for number, measured in self.replicas.items():
            replica = world.replicas.get(number)
            if replica is None:
                continue
            own, _ = p99([measured.calls], policy, now, replica.loaded_at or 0.0)
            replicas[number] = ReplicaLatency(_tenth(own), _tenth(disturbance_pct(measured.gaps, policy, now)))
            services[replica.service].append(measured.calls)
        told = {
            name: ServiceLatency(_tenth(ms), samples)
            for name, copies in services.items()
            for ms, samples in [p99(copies, policy, now, since.get(name, 0.0))]
        }
        return Latencies(now, told, replicas)

    def tell(self, gateways: Gateways, world: World, policy: Policy, now: float) -> None:
        """Publish a new picture when there are new slots, or the last one grows old."""
        if self.read(gateways) or now - self.told_at >= SLOT_S:
            self.told_at = now
            self.forget(now)
            wire.publish_latencies(self.picture(world, live_changed_at(world), policy, now))


def _add(slots: dict[int, Histogram], slot: int, histogram: Histogram) -> None:
    if histogram.samples:
        slots[slot] = slots.get(slot, Histogram()).plus(histogram)


def _tenth(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def live_changed_at(world: World) -> dict[str, float]:
    """When a copy of each service last began to start, became ready or was sent away: seen now, or at a look."""
    changed = {name: known.changed_at for name, service in world.services.items() if (known := service.scaling)}
    for replica in world.replicas.values():
        if replica.phase not in (Phase.ASLEEP, Phase.STOPPED):
            at = max(replica.want_since, replica.loaded_at or 0.0)
            changed[replica.service] = max(changed.get(replica.service, 0.0), at)
    return changed
