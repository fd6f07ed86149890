"""What pools are for, and who may enter which.

resident: services that are always kept, nobody else; on-demand: anybody; elastic: empty by default, lent to further
copies and to repack, given back first; pilot: those who were chosen for it. Whoever names pools lives there only.
"""

from __future__ import annotations

from scheduler.draft import Draft
from scheduler.world import Pool, Replica, Service, Tier

RESIDENT, ONDEMAND, ELASTIC, PILOT = "resident", "ondemand", "elastic", "pilot"
#: Purposes of pools that a service enters only when it names the pool.
BY_NAME_ONLY = frozenset({RESIDENT, PILOT})


def may_enter(draft: Draft, service: Service, pool: Pool) -> bool:
    """May a new copy of the service start in the pool?"""
    if pool.tenants and service.tenant not in pool.tenants:
        return False
    named = pool.name in service.pools
    if service.pools and not named:
        return False
    if pool.purpose == RESIDENT:
        return named and always_kept(draft, service)
    if pool.purpose == ELASTIC:
        return named or may_borrow(draft, service)
    return named or pool.purpose not in BY_NAME_ONLY


def resident_only(draft: Draft, service: Service) -> bool:
    """It lives in resident pools and nowhere else: it is ready before anybody calls."""
    purposes = {draft.world.pools[name].purpose for name in service.pools if name in draft.world.pools}
    return purposes == {RESIDENT}


def always_kept(draft: Draft, service: Service) -> bool:
    """Would it be kept wherever it is? Else a copy that comes for a while would take the room paid for by others."""
    whitelisted = service.whitelisted_until is not None and service.whitelisted_until > draft.now
    fast = service.first_token_s is not None and service.first_token_s < draft.policy.fast_first_token_s
    kept = service.tier is Tier.HOT or service.min_replicas > 0 or whitelisted or fast
    return kept or service.weights_mib < draft.policy.small_model_mib or resident_only(draft, service)


def may_borrow(draft: Draft, service: Service) -> bool:
    """A further copy, or one that is being moved: what it must have at least is somewhere else already."""
    return len(draft.in_hand(service.name)) >= max(1, service.min_replicas)


def lent_to(draft: Draft, replica: Replica) -> bool:
    """Does it sit on a card that was only lent to it?"""
    return any(draft.pool(card).purpose == ELASTIC for card in replica.cards if card in draft.world.cards)
