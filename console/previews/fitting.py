"""What thresholds fitted to the farm would be, with the numbers they come from: a proposal, nothing more."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from console import state
from console.catalog.models import Service as ServiceRow
from scheduler.draft import Draft
from scheduler.fitted import fitted_to_farm, sleeping_room_mib, used
from scheduler.memory import allocatable_mib
from scheduler.policy import Policy
from scheduler.tiers import RANK, tier_of


@dataclass(frozen=True, slots=True)
class Proposal:
    """`values`: what would be set, by name. `up`, `down`: labels of services whose tier would rise or fall by it."""

    values: dict[str, int]
    now: dict[str, int]
    hot: int
    warm: int
    hot_mib: int
    pool_mib: int
    host_mib: int
    pct: int
    up: list[str]
    down: list[str]


def proposal(rules: Policy) -> Proposal | None:
    """None: nothing would change, or nobody called anything yet, or fitted ones hold already."""
    now = time.time()
    world = state.world(now, rules=rules)
    if rules.tiers_fitted or not any(s.demand.calls_7d for s in world.services.values()):
        return None
    draft = Draft(world, rules, now)
    weeks = [used(service) for service in world.services.values()]
    fitted = fitted_to_farm(draft, weeks)
    values = {"hot_calls_7d": max(1, fitted.hot_calls_7d), "warm_calls_7d": fitted.warm_calls_7d}
    there = {name: getattr(rules, name) for name in values}
    if values == there:
        return None
    then = replace(rules, hot_calls_7d=values["hot_calls_7d"], warm_calls_7d=values["warm_calls_7d"])
    labels = dict(ServiceRow.objects.values_list("name", "label"))
    steps = {w.name: RANK[tier_of(w.calls_7d, then)] - RANK[tier_of(w.calls_7d, rules)] for w in weeks}
    sizes: dict[str, int] = {w.name: w.awake_mib for w in weeks}
    return Proposal(
        values=values,
        now=there,
        hot=len(fitted.hot),
        warm=len(fitted.warm),
        hot_mib=sum(sizes[name] for name in fitted.hot),
        pool_mib=sum(allocatable_mib(draft.book(card)) or 0 for card in world.cards),
        host_mib=sleeping_room_mib(world.hosts.values(), rules),
        pct=rules.hot_memory_pct,
        up=[labels[name] for name, step in sorted(steps.items()) if step > 0],
        down=[labels[name] for name, step in sorted(steps.items()) if step < 0],
    )
