"""Silence of a host: when it gets nothing new, and when its replicas count as lost."""

from __future__ import annotations

from scheduler.policy import Policy
from scheduler.world import Host, Phase, Replica, Want, World

#: What wants to be ready, also when it is tried again after a failure.
COMING = (Phase.STARTING, Phase.READY, Phase.FAILED)


def silence_s(host: Host | None, now: float) -> float:
    """Seconds since the host was heard; infinite for one that never reported."""
    return float("inf") if host is None or host.seen_at is None else max(0.0, now - host.seen_at)


def silent(host: Host | None, policy: Policy, now: float) -> bool:
    """Too quiet to be given anything new."""
    return silence_s(host, now) > policy.silent_s


def lost(host: Host | None, policy: Policy, now: float) -> bool:
    """Silent for so long that its replicas are rebuilt elsewhere; not while its engines still answer the gateways."""
    return silence_s(host, now) > policy.lost_s and not (host is not None and host.serving)


def leaving(world: World, replica: Replica) -> bool:
    """Is it on a host that is being emptied? Then nobody counts on it."""
    host = host_of(world, replica)
    return host is not None and host.leave_by is not None


def counted(world: World, replica: Replica, policy: Policy, now: float) -> bool:
    """Is it, or will it be without further decision, ready, on a host that is neither lost nor being emptied?"""
    if replica.want is not Want.READY or replica.phase not in COMING:
        return False
    return not lost(host_of(world, replica), policy, now) and not leaving(world, replica)


def host_of(world: World, replica: Replica) -> Host | None:
    """The host of a replica's first card; None when the card is not known."""
    card = world.cards.get(replica.cards[0]) if replica.cards else None
    return world.hosts.get(card.host) if card else None
