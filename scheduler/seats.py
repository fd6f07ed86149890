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

    Sleepers count for the mix; failed ones and imported engines do not. `shown_mib`: what the driver shows of ours:
    measured process memory; where it is unmeasured, the ledger's value without headroom.
    """

    held_mib: int = 0
    caps_mib: int = 0
    granted_mib: int = 0
    awake: int = 0
    mixed: int = 0
    shown_mib: int = 0


def residue_mib(replica: Replica, policy: Policy) -> int:
    """What it holds while asleep, unless it is measured to hold more."""
    return policy.default_residue_mib if replica.residue_mib is None else replica.residue_mib


def held_mib(replica: Replica, service: Service | None, policy: Policy) -> int:
    """What a replica holds by the ledger, or by measurement where that is more; failed and stopped hold nothing."""
    phase, measured = replica.phase, replica.measured_mib or 0
    if phase is Phase.STOPPED or phase is Phase.FAILED:
        return 0
    if replica.external:
        return measured
    if phase is Phase.ASLEEP:
        return max(residue_mib(replica, policy), measured)
    return max((service.claim.fixed_mib if service else 0) + replica.kv_granted_mib, measured)


def taken(seats: Iterable[Seat], policy: Policy) -> Taken:
    """One look at each seat for all sums: they are asked for of every card in every plan."""
    held = caps = granted = awake = mixed = shown = 0
    for replica, service in seats:
        phase = replica.phase
        if phase is Phase.STOPPED or phase is Phase.FAILED:
            continue
        measured, awoken = replica.measured_mib, phase is not Phase.ASLEEP
        if awoken and measured is None and service is not None and not replica.external:  # as `held_mib` has it: most
            mine = service.claim.fixed_mib + replica.kv_granted_mib
        else:
            mine = held_mib(replica, service, policy)
        held += mine
        awake += awoken
        if measured is not None:
            shown += measured
        else:
            shown += max(0, mine - service.claim.headroom_mib) if awoken and service is not None else mine
        if replica.external:
            continue
        if service is None:
            mixed += 1
            continue
        caps += service.claim.kv_cap_mib
        granted += replica.kv_granted_mib
        mixed += service.profile is not Profile.ONLINE
    return Taken(held, caps, granted, awake, mixed, shown)


def ours_mib(seats: Iterable[Seat], policy: Policy) -> int:
    """What the driver shows of these."""
    return taken(seats, policy).shown_mib
