"""What replicas hold of one card: each by itself, and all seats together. MiB, integers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from scheduler.policy import Policy
from scheduler.world import Phase, Profile, Replica, Service


class Seat(NamedTuple):
    """A replica on a card with its service; `service` is None when the service is no longer known."""

    replica: Replica
    service: Service | None


class Taken(NamedTuple):
    """Of all seats of a card: MiB held, KV caps and grants of ours, who is awake, and ours that are no online service.

    Sleepers count for the mix; failed ones and imported engines do not.
    """

    held_mib: int = 0
    caps_mib: int = 0
    granted_mib: int = 0
    awake: int = 0
    mixed: int = 0


def held_mib(replica: Replica, service: Service | None, policy: Policy) -> int:
    """What a replica holds by the ledger, or by measurement where that is more; failed and stopped hold nothing."""
    phase, measured = replica.phase, replica.measured_mib or 0
    if phase is Phase.STOPPED or phase is Phase.FAILED:
        return 0
    if replica.external:
        return measured
    if phase is Phase.ASLEEP:
        residue = policy.default_residue_mib if replica.residue_mib is None else replica.residue_mib
        return max(residue, measured)
    return max((service.claim.fixed_mib if service else 0) + replica.kv_granted_mib, measured)


def taken(seats: Iterable[Seat], policy: Policy) -> Taken:
    """One look at each seat for all sums: they are asked for of every card in every plan."""
    held = caps = granted = awake = mixed = 0
    for replica, service in seats:
        phase = replica.phase
        if phase is Phase.STOPPED or phase is Phase.FAILED:
            continue
        held += held_mib(replica, service, policy)
        awake += phase is not Phase.ASLEEP
        if replica.external:
            continue
        if service is None:
            mixed += 1
            continue
        caps += service.claim.kv_cap_mib
        granted += replica.kv_granted_mib
        mixed += service.profile is not Profile.ONLINE
    return Taken(held, caps, granted, awake, mixed)


def ours_mib(seats: Iterable[Seat], policy: Policy) -> int:
    """Measured process memory of our replicas; where unmeasured, the ledger value without headroom."""
    total = 0
    for replica, service in seats:
        if replica.measured_mib is not None and replica.phase not in (Phase.STOPPED, Phase.FAILED):
            total += replica.measured_mib
        elif held := held_mib(replica, service, policy):
            spare = service.claim.headroom_mib if service is not None and replica.awake else 0
            total += max(0, held - spare)
    return total
