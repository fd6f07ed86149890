"""Quotas: what a tenant was promised of a pool, and how far beyond it may go while others leave theirs unused.

Used is what its copies hold on the pool's cards by the ledger, asleep and promised ones too. A start is judged by its
whole claim, a wake by what it takes beyond its residue: neither brings a tenant beyond guarantee and borrowable.
What was promised and lies unused is lent to whoever calls. It comes back as any room does, by drains that cut nothing:
for a caller within its guarantee copies of those beyond theirs may go, whatever their priority; and nobody beyond its
own takes in use what others hold within theirs. Who is always kept, or whitelisted, is so here, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.decision import Code, Numbers, Refusal
from scheduler.draft import Draft
from scheduler.holdings import held_there
from scheduler.leaving import leave_s
from scheduler.lifecycle import goes_by
from scheduler.memory import held_mib
from scheduler.world import Quota, Replica, Service


def limited(draft: Draft, tenant: str) -> bool:
    """Has it a quota anywhere?"""
    return bool(draft.world.quotas) and tenant in draft.fact(_tenants)


def _tenants(draft: Draft) -> frozenset[str]:
    return frozenset(tenant for tenant, _ in draft.world.quotas)


def asked_mib(service: Service) -> int:
    """Of one start, on all its cards: the whole claim, for so much it may be granted."""
    return (service.claim.fixed_mib + service.claim.kv_cap_mib) * service.cards_per_replica


def used_mib(draft: Draft, tenant: str, pool: str) -> int:
    """Held there by its copies with what was decided and promised so far."""
    return held_there(draft).held[tenant, pool]


def no_start(draft: Draft, service: Service, pool: str) -> Refusal | None:
    """Why one more copy in the pool would be too much for its tenant."""
    return _beyond(draft, service, pool, asked_mib(service))


def no_wake(draft: Draft, sleeper: Replica, service: Service) -> Refusal | None:
    """The same of a wake on the sleeper's own cards."""
    if not draft.world.quotas:
        return None
    more = service.claim.fixed_mib + sleeper.kv_granted_mib - held_mib(sleeper, service, draft.policy)
    return _beyond(draft, service, draft.world.cards[sleeper.cards[0]].pool, more * len(sleeper.cards))


def by_quota(refused: Refusal) -> bool:
    """Is it a refusal of these two?"""
    return refused.code is Code.QUOTA_EXCEEDED or (refused.code is Code.NOT_NOW and "pool" in refused.numbers)


def _beyond(draft: Draft, service: Service, pool: str, asked: int) -> Refusal | None:
    """Numbers: what is used, promised, borrowable and asked, and how much more of either would be needed."""
    quota = draft.world.quotas.get((service.tenant, pool))
    if quota is None:
        return None
    used = used_mib(draft, service.tenant, pool)
    needed = used + asked - quota.limit_mib
    if needed <= 0:
        return None
    if needed <= _going_mib(draft, service.tenant, pool):
        return _soon(draft, service.tenant, pool)
    return Refusal(
        Code.QUOTA_EXCEEDED,
        {
            "tenant": service.tenant,
            "pool": pool,
            "holds_mib": used,
            "guaranteed_mib": quota.guaranteed_mib,
            "borrowable_mib": quota.borrowable_mib,
            "asked_mib": asked,
            "needed_mib": needed,
        },
    )


def _soon(draft: Draft, tenant: str, pool: str) -> Refusal:
    """It will do once those of its own are gone that leave already."""
    going = leaving(draft, tenant, pool)
    waits = [leave_s(draft, replica) for replica in going]
    card = going[0].cards[0]
    numbers: Numbers = {
        "pool": pool,
        "card": card,
        "host": draft.world.cards[card].host,
        "wait_s": max(wait for wait, _ in waits),
        "wait_low_s": max(low for _, low in waits),
        "leaving": ", ".join(replica.service for replica in going),
    }
    return Refusal(Code.NOT_NOW, numbers)


def leaving(draft: Draft, tenant: str, pool: str) -> list[Replica]:
    """Its copies there that go anyway, and soon, by id."""
    soon = draft.now + draft.policy.grace_room_s
    books = (draft.book(card) for card in cards_of(draft, pool))
    seats = (
        seat for book in books for seat in book.seats if seat.service is not None and seat.service.tenant == tenant
    )
    found = {seat.replica.id: seat.replica for seat in seats if goes_by(seat.replica, soon)}
    return [found[i] for i in sorted(found)]


def owed(draft: Draft, service: Service) -> bool:
    """Would one more copy be within its tenant's guarantee in some pool that it may be in?"""
    asked = asked_mib(service)
    return any(
        used_mib(draft, tenant, pool) + asked <= quota.guaranteed_mib
        for (tenant, pool), quota in draft.world.quotas.items()
        if tenant == service.tenant and (not service.pools or pool in service.pools)
    )


@dataclass(frozen=True, slots=True)
class Right:
    """What quotas say to a caller's wish for others' room in a pool. `within`: its guarantee covers the new copy."""

    draft: Draft
    tenant: str
    pool: str
    within: bool

    def owing(self, copies: Iterable[Replica]) -> Mapping[int, int]:
        """Copies that sit on what others were promised, by id, with the MiB that their tenant borrows until then.

        Of each tenant, in this order, as much as it borrowed: nobody loses more than what it has beyond its guarantee,
        but for the rest of the last copy.
        """
        if not self.within:
            return {}
        found, borrowed = dict[int, int](), dict[str, int]()
        for replica in copies:
            service = self.draft.services.get(replica.service)
            if service is None or service.tenant == self.tenant:
                continue
            left = borrowed.get(service.tenant)
            left = borrowed_mib(self.draft, service.tenant, self.pool) if left is None else left
            if left > 0:
                found[replica.id] = left
                left -= held_mib(replica, service, self.draft.policy) * len(replica.cards)
            borrowed[service.tenant] = left
        return found

    def spares(self, replica: Replica) -> bool:
        """One that is in use stays: its tenant is within its guarantee there, and the caller's would not be."""
        service = self.draft.services.get(replica.service)
        if self.within or service is None or service.tenant == self.tenant:
            return False
        quota = self.draft.world.quotas.get((service.tenant, self.pool))
        return quota is not None and used_mib(self.draft, service.tenant, self.pool) <= quota.guaranteed_mib


def right_of(draft: Draft, caller: Service, card: str) -> Right | None:
    """None where nobody was promised anything: then no quota speaks for or against who goes."""
    pool = draft.world.cards[card].pool
    if not draft.world.quotas or pool not in draft.fact(_pools):
        return None
    quota = draft.world.quotas.get((caller.tenant, pool))
    used = 0 if quota is None else used_mib(draft, caller.tenant, pool) + asked_mib(caller)
    return Right(draft, caller.tenant, pool, quota is not None and used <= quota.guaranteed_mib)


def borrowed_mib(draft: Draft, tenant: str, pool: str) -> int:
    """What it holds beyond its guarantee, without what leaves anyway, and soon; all of it where it has none."""
    promised = draft.world.quotas.get((tenant, pool), Quota(0, 0)).guaranteed_mib
    return max(0, used_mib(draft, tenant, pool) - _going_mib(draft, tenant, pool) - promised)


def _going_mib(draft: Draft, tenant: str, pool: str) -> int:
    return held_there(draft).going[tenant, pool]


def _pools(draft: Draft) -> frozenset[str]:
    return frozenset(pool for _, pool in draft.world.quotas)


def cards_of(draft: Draft, pool: str) -> Sequence[str]:
    """Ids of its cards."""
    return draft.fact(_by_pool).get(pool, ())


def _by_pool(draft: Draft) -> dict[str, list[str]]:
    """Card ids."""
    found: dict[str, list[str]] = defaultdict(list)
    for card in draft.world.cards.values():
        found[card.pool].append(card.id)
    return found
