"""Swapping back and forth: nearly every call costs a load. Found by the hour, with remedies and the price of each."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.memory import HUNDRED, ceil_div
from scheduler.policy import Policy
from scheduler.world import Service, Tier


@dataclass(frozen=True, slots=True)
class Hour:
    """Of one service: loads and wakes, calls that anti-swap made wait or refused, and all calls."""

    loads: int
    waits: int
    calls: float


@dataclass(frozen=True, slots=True)
class Remedy:
    """What would end it, and what that holds: `fen_h` of card-hour price for the MiB it keeps awake or asleep."""

    kind: str  # slot: room for one more of its kind; tier: one tier up
    mib: int
    fen_h: int
    tier: Tier | None = None


def thrashes(hour: Hour, policy: Policy) -> bool:
    """Are loads and anti-swap waits at least this share of the calls, and more than a few?"""
    swaps = hour.loads + hour.waits
    return swaps >= policy.thrash_least and swaps * HUNDRED >= hour.calls * policy.thrash_pct


def remedies(service: Service, policy: Policy, allocatable_mib: int, price_fen_h: int) -> list[Remedy]:
    """Cheapest first. Prices go by the share of the card's allocatable memory that would be held all day."""
    awake = service.claim.fixed_mib + service.claim.kv_cap_mib
    found = [Remedy("slot", awake, _fen_h(awake, allocatable_mib, price_fen_h))]
    if service.tier is Tier.COLD and service.can_sleep:
        residue = policy.default_residue_mib
        found.append(Remedy("tier", residue, _fen_h(residue, allocatable_mib, price_fen_h), Tier.WARM))
    elif service.tier is not Tier.HOT:
        found.append(Remedy("tier", awake, _fen_h(awake, allocatable_mib, price_fen_h), Tier.HOT))
    return sorted(found, key=lambda one: (one.fen_h, one.kind))


def _fen_h(mib: int, allocatable_mib: int, price_fen_h: int) -> int:
    return ceil_div(mib * price_fen_h, allocatable_mib) if allocatable_mib > 0 else 0
