"""Pools whose engines take KV pages on demand: the rule as a formula. None of our engines can: such a pool refuses."""

from __future__ import annotations

from scheduler.memory import HUNDRED, Book, Seat, allocatable_mib, ceil_div, held_mib, kv_sums, limit_pct
from scheduler.policy import Policy
from scheduler.world import Phase, Service

#: `Pool.kv` of such a pool.
ELASTIC = "elastic"


def elastic_fits(book: Book, newcomer: Service) -> bool:
    """sum(fixed) + sum(kv_cap) / (1 + limit) <= allocatable, in MiB; sleepers with their residue and their caps."""
    allocatable = allocatable_mib(book)
    seats = [s for s in book.seats if s.replica.phase not in (Phase.STOPPED, Phase.FAILED)]
    ours = [s.service for s in seats if not s.replica.external]
    limit = limit_pct([newcomer, *ours], book.policy)
    caps = kv_sums(book)[0] + newcomer.claim.kv_cap_mib
    fixed = newcomer.claim.fixed_mib + sum(_fixed_mib(seat, book.policy) for seat in seats)
    return allocatable is not None and fixed + ceil_div(caps * HUNDRED, HUNDRED + limit) <= allocatable


def elastic_oversell_pct(book: Book, kv_pool_mib: int) -> float:
    """How far the caps exceed the KV memory that all of the card share, in percent; 0 is none."""
    caps = kv_sums(book)[0]
    if caps <= kv_pool_mib:
        return 0.0
    return caps * HUNDRED / kv_pool_mib - HUNDRED if kv_pool_mib > 0 else float("inf")


def _fixed_mib(seat: Seat, policy: Policy) -> int:
    replica, service = seat.replica, seat.service
    if replica.external or not replica.awake or service is None:
        return held_mib(replica, service, policy)
    return max(service.claim.fixed_mib, (replica.measured_mib or 0) - replica.kv_granted_mib)
