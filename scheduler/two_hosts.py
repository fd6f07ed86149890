"""A service with min_replicas >= 2 has ready replicas on at least two hosts (two racks where racks are set)."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.draft import Draft
from scheduler.hosts import host_of
from scheduler.world import Host, Phase, Replica, Service

#: The rule's own number: "two hosts". Not a policy, for with another value it would be another rule.
TWO = 2


def _domain(host: Host) -> str:
    return host.rack or host.name


def _domains(draft: Draft, replicas: Iterable[Replica]) -> set[str]:
    hosts = (host_of(draft.world, r) for r in replicas)
    return {_domain(h) for h in hosts if h is not None}


def bound(service: Service | None) -> bool:
    """Does the rule bind this service?"""
    return service is not None and service.min_replicas >= TWO


def may_come(draft: Draft, service: Service, host: Host) -> bool:
    """False where a second or later replica would leave all on one host. Copies on lost hosts do not count."""
    if not bound(service):
        return True
    others = [r for r in draft.in_hand(service.name) if r.phase is not Phase.FAILED and r.drain_at is None]
    there = _domains(draft, others)
    return not there or len(there | {_domain(host)}) >= TWO


def may_move(draft: Draft, replica: Replica, host: Host | None) -> bool:
    """False where ready copies are on two hosts now and would not be with this one on `host` instead."""
    if host is None or not bound(draft.world.services.get(replica.service)):
        return host is not None
    others = [r for r in draft.staying(replica.service) if r.id != replica.id]
    before = _domains(draft, [*others, replica])
    return len(before) < TWO or len(_domains(draft, others) | {_domain(host)}) >= TWO


def may_go(draft: Draft, replica: Replica) -> bool:
    """False where ready copies are on two hosts now and would not be without this one."""
    if not bound(draft.world.services.get(replica.service)):
        return True
    staying = draft.staying(replica.service)
    others = [r for r in staying if r.id != replica.id]
    before = _domains(draft, [*others, replica])
    return len(before) < TWO or len(_domains(draft, others)) >= TWO
