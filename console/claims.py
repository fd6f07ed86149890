"""A World of claims and seats: what fragmentation is measured on. No traffic, no load times; a few queries."""

from __future__ import annotations

from dataclasses import replace

from console import machines, reading, state
from console.catalog.models import Service as ServiceRow
from console.fleet.foreign import taken
from console.seats import standing
from console.wire import UNKNOWN
from scheduler.policy import Policy
from scheduler.world import Claim, Profile, Service, Tier, World

COLUMNS = (
    "pk", "name", "tenant__slug", "weights_mib", "kv_cap_mib", "headroom_mib", "overhead_mib", "profile", "tier",
    "card_classes", "model__min_compute_cap", "cards_per_replica", "starts_28d",
)  # fmt: skip


def world(now: float, rules: Policy) -> World:
    """Cards, replicas, pools, and of every service its claim, where it may live, and how often it was started."""
    world = standing(UNKNOWN, rules, taken(state.moment(now)))
    pools_of = reading.pools_of()
    services = {}
    for row in ServiceRow.objects.order_by("pk").values_list(*COLUMNS, named=True):
        overhead = rules.default_overhead_mib if row.overhead_mib is None else row.overhead_mib
        services[row.name] = Service(
            name=row.name,
            tenant=row.tenant__slug,
            claim=Claim(row.weights_mib, row.kv_cap_mib, row.headroom_mib, overhead),
            profile=Profile(row.profile),
            tier=Tier(row.tier),
            pools=frozenset(pools_of.get(row.pk, ())),
            card_classes=frozenset(row.card_classes),
            min_compute_cap=row.model__min_compute_cap,
            cards_per_replica=row.cards_per_replica,
            starts_28d=row.starts_28d,
        )
    return replace(world, services=services, pools=machines.pools())
