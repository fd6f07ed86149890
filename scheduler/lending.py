"""Who lent what to whom, pool by pool: sums for the pages, and what may be promised in all. Integer MiB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from scheduler.allotment import Quota, Quotas
from scheduler.cost import apportioned
from scheduler.draft import Draft
from scheduler.memory import buffer_mib, held_mib, reserved_mib
from scheduler.policy import Policy
from scheduler.victims import Candidate, candidates, in_order
from scheduler.world import Replica, World


@dataclass(frozen=True, slots=True)
class Share:
    """A tenant in a pool. `quota` None: nothing was set. `lent_mib`: of its guarantee, in use by others right now."""

    tenant: str
    pool: str
    quota: Quota | None
    used_mib: int
    lent_mib: int = 0

    @property
    def promised_mib(self) -> int:
        return 0 if self.quota is None else self.quota.guaranteed_mib

    @property
    def borrowed_mib(self) -> int:
        """Beyond its guarantee; of who was promised nothing, all that it uses."""
        return max(0, self.used_mib - self.promised_mib)

    @property
    def unused_mib(self) -> int:
        """Of its guarantee."""
        return max(0, self.promised_mib - self.used_mib)


def plannable_mib(world: World, policy: Policy, pool: str) -> int:
    """All that claims could ever use of the pool: its cards without driver and buffer; a gone host has none."""
    cards = (card for card in world.cards.values() if card.pool == pool and card.host in world.hosts)
    return sum(max(0, c.total_mib - reserved_mib(c) - buffer_mib(c, policy)) for c in cards)


def promised_mib(quotas: Quotas, pool: str, but: str | None = None) -> int:
    """The sum of the guarantees there, `but` one tenant's."""
    return sum(q.guaranteed_mib for (tenant, name), q in quotas.items() if name == pool and tenant != but)


def short_mib(world: World, policy: Policy, tenant: str, pool: str, guaranteed_mib: int) -> int:
    """By how much the pool would be promised twice if the tenant were promised this; 0 or less: it is there."""
    others = promised_mib(world.quotas, pool, but=tenant)
    return others + guaranteed_mib - plannable_mib(world, policy, pool)


def held_by_tenant(world: World, policy: Policy) -> Counter[tuple[str, str]]:
    """MiB by (tenant, pool), as `quota.used_mib` has it before a plan."""
    found: Counter[tuple[str, str]] = Counter()
    for replica in world.replicas.values():
        service = world.services.get(replica.service)
        if service is None:
            continue
        held = held_mib(replica, service, policy)
        for card in replica.cards:
            if held and card in world.cards:
                found[service.tenant, world.cards[card].pool] += held
    return found


def shares(world: World, policy: Policy) -> list[Share]:
    """Each tenant that uses a pool or has a quota there, by pool and tenant.

    What is borrowed comes first from what nobody was promised; the rest is lent by those who leave some of their
    guarantee unused, each in proportion to that.
    """
    used = held_by_tenant(world, policy)
    found: list[Share] = []
    for pool in sorted({pool for _, pool in used.keys() | world.quotas.keys()}):
        tenants = sorted(tenant for tenant, name in used.keys() | world.quotas.keys() if name == pool)
        there = [Share(t, pool, world.quotas.get((t, pool)), used[t, pool]) for t in tenants]
        free = plannable_mib(world, policy, pool) - promised_mib(world.quotas, pool)
        found += _lent(there, max(0, free))
    return found


def first_to_go(draft: Draft, tenant: str, pool: str) -> tuple[list[Replica], int]:
    """(copies, MiB): who would be asked if the tenant wanted all that it was promised now, and what of it would not
    come back today: it sits under copies that are always kept, or must stay a while yet.

    Of each borrower as much as it borrowed, in the order in which they go.
    """
    there = {share.tenant: share for share in shares(draft.world, draft.policy) if share.pool == pool}
    owing = there[tenant].lent_mib if tenant in there else 0
    left = {name: share.borrowed_mib for name, share in there.items()}
    going: dict[int, Replica] = {}
    for candidate in sorted(_candidates(draft, pool), key=in_order):
        replica, service = candidate.replica, draft.services[candidate.replica.service]
        if owing > 0 and left.get(service.tenant, 0) > 0 and replica.id not in going:
            held = held_mib(replica, service, draft.policy) * len(replica.cards)
            going[replica.id] = replica
            owing, left[service.tenant] = owing - held, left[service.tenant] - held
    return list(going.values()), max(0, owing)


def _candidates(draft: Draft, pool: str) -> Iterator[Candidate]:
    for card in draft.cards():
        if card.pool == pool:
            yield from candidates(draft, card.id)


def _lent(there: list[Share], unpromised_mib: int) -> list[Share]:
    unused = [share.unused_mib for share in there]
    borrowed = sum(share.borrowed_mib for share in there)
    lent = min(max(0, borrowed - unpromised_mib), sum(unused))
    each = apportioned(lent, unused) if lent else [0] * len(there)
    return [Share(s.tenant, s.pool, s.quota, s.used_mib, mib) for s, mib in zip(there, each, strict=True)]
