"""Where weights are read from, how fast, and what it would gain to have them on a local disk."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.memory import HUNDRED
from scheduler.policy import Policy
from scheduler.world import Host, Reads, Service, World

GIB_MIB = 1024
LOCAL, NETWORK = "local", "network"
#: How weights are read: one file after the other, or several files side by side.
STREAM, PARALLEL = "stream", "parallel"


def loader_of(storage: str, service: Service) -> str:
    """Several streams of a network share are no faster than one, and disturb everybody else on it."""
    return PARALLEL if storage == LOCAL and service.shards > 1 else STREAM


@dataclass(frozen=True, slots=True)
class Line:
    """Loads on a host: `fixed_s` whatever the size (init, warm-up), the rest by size. `mib_s` None: nobody knows."""

    mib_s: float | None
    fixed_s: float

    def seconds(self, weights_mib: int) -> float:
        return self.fixed_s + (weights_mib / self.mib_s if self.mib_s else 0.0)


def speed_up(policy: Policy, service: Service, storage: str) -> float:
    """How much faster than one stream this service's weights are read there, until it was measured."""
    if loader_of(storage, service) is STREAM:
        return 1.0
    streams = min(service.shards, policy.load_streams)
    return 1.0 + (streams - 1) * policy.load_stream_gain_pct / HUNDRED


def line(world: World, policy: Policy, service: Service, host: str) -> Line:
    """How long loads by this service's loader take on the host, by size.

    What the host says of its storage, with the policy's init and warm-up, counts as a few loads; real ones move the
    line through them (least squares).
    """
    there = world.hosts.get(host)
    said_mib_s = there.bandwidth_mib_s * speed_up(policy, service, there.storage) if there else 0.0
    fixed_s = policy.load_init_s + policy.load_warm_up_s
    said = Line(said_mib_s or None, fixed_s)
    seen = world.reads.get((host, loader_of(there.storage, service))) if there else None
    if seen is None or said.mib_s is None:
        return said
    large = policy.hold_large_mib / GIB_MIB
    weight = policy.load_prior_loads
    whole = _plus(_plus(seen, 0.0, fixed_s, weight), large, said.seconds(policy.hold_large_mib), weight)
    spread = whole.n * whole.gib_gib - whole.gib**2
    s_per_gib = (whole.n * whole.gib_s - whole.gib * whole.s) / spread if spread > 0 else 0.0
    starts_s = (whole.s - s_per_gib * whole.gib) / whole.n
    if starts_s < 0:  # nothing starts before it began: all by size
        return Line(GIB_MIB / (whole.gib_s / whole.gib_gib), 0.0)
    if s_per_gib <= 0:  # no larger model loads sooner: the disk as it was said, all else is the start
        return Line(said.mib_s, max(0.0, (whole.s - whole.gib * GIB_MIB / said.mib_s) / whole.n))
    return Line(GIB_MIB / s_per_gib, starts_s)


def reading_s(world: World, policy: Policy, service: Service, host: str) -> float:
    """Seconds to read all weights of one copy, alone; 0 where the bandwidth is not known."""
    mib_s = line(world, policy, service, host).mib_s
    return service.weights_mib / mib_s if mib_s else 0.0


def learned(policy: Policy, known: Reads | None, weights_mib: int, took_s: float) -> Reads:
    """With one more load that took so long, start to ready; all before it count a little less."""
    keep = 1.0 - policy.load_learns_pct / HUNDRED
    old = known or Reads()
    faded = Reads(old.n * keep, old.gib * keep, old.s * keep, old.gib_gib * keep, old.gib_s * keep)
    return _plus(faded, weights_mib / GIB_MIB, took_s, 1.0)


def _plus(reads: Reads, gib: float, s: float, weight: float) -> Reads:
    return Reads(
        reads.n + weight,
        reads.gib + weight * gib,
        reads.s + weight * s,
        reads.gib_gib + weight * gib * gib,
        reads.gib_s + weight * gib * s,
    )


@dataclass(frozen=True, slots=True)
class LocalGain:
    """Seconds of a load now, and with the weights on a local disk of `mib_s` (one stream) of the same host."""

    now_s: float
    local_s: float
    mib_s: float

    @property
    def saves_s(self) -> float:
        return self.now_s - self.local_s


def local_gain(world: World, policy: Policy, service: Service, host: Host, now_s: float) -> LocalGain | None:
    """What copying the weights to the host would gain; `now_s` is its load estimate there. None: they are local.

    The disk is taken to be as fast as the fastest local storage of the farm, or the policy's where there is none.
    """
    if host.storage == LOCAL:
        return None
    local = [h.bandwidth_mib_s for h in world.hosts.values() if h.storage == LOCAL and h.bandwidth_mib_s > 0]
    mib_s = float(max(local, default=policy.load_local_mib_s))
    read_now_s = reading_s(world, policy, service, host.name)
    read_local_s = service.weights_mib / (mib_s * speed_up(policy, service, LOCAL))
    return LocalGain(now_s, max(0.0, now_s - read_now_s) + read_local_s, mib_s)
