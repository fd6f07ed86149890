"""What a quota would do, before it is set: what is promised in sum, who would have to go, what the next plan does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from console.filters import gib
from console.requests import weigh
from console.requests.colder import OWES, Colder
from console.services import fit
from scheduler.allotment import Quota
from scheduler.draft import Draft
from scheduler.lending import first_to_go, held_by_tenant, plannable_mib, promised_mib
from scheduler.policy import Policy
from scheduler.world import World


def weighed(seen: weigh.Look, tenant: str, pool: str, new: Quota | None) -> weigh.Weighed:
    """`new` None: the quota is ended."""
    after = with_quota(seen.world, tenant, pool, new)
    going, kept_mib = first_to_go(Draft(after, seen.rules, seen.now), tenant, pool)
    waits = [(one.service, *fit.back_s(after, seen.rules, one, asleep=False)) for one in going]
    kept = [("kept_from", {"gib": gib(kept_mib)})] if kept_mib else []
    return weigh.Weighed(
        cards=tuple(dict.fromkeys(card for one in going for card in one.cards)),
        colder=[Colder(service, OWES, wait_s, rough) for service, wait_s, rough in waits],
        effects=weigh.difference(seen, after, seen.rules),
        facts=[*sums(seen.world, seen.rules, tenant, pool, new), *kept],
    )


def with_quota(world: World, tenant: str, pool: str, new: Quota | None) -> World:
    others = {key: quota for key, quota in world.quotas.items() if key != (tenant, pool)}
    return replace(world, quotas=others if new is None else {**others, (tenant, pool): new})


def sums(world: World, rules: Policy, tenant: str, pool: str, new: Quota | None) -> list[tuple[str, dict[str, Any]]]:
    """What is promised in sum, and how the company stands: facts of `words.FACTS`."""
    there, after = plannable_mib(world, rules, pool), with_quota(world, tenant, pool, new)
    was, will = promised_mib(world.quotas, pool), promised_mib(after.quotas, pool)
    used = held_by_tenant(world, rules)[tenant, pool]
    facts: list[tuple[str, dict[str, Any]]] = [
        ("promised", {"was": gib(was), "will": gib(will), "of": gib(there)}),
    ]
    if will > there:
        facts.append(("over_promised", {"mib": f"{will - there:,}"}))
    if new is None:
        return [*facts, ("no_limit", {"used": gib(used)})]
    facts.append(("quota_use", {"used": gib(used), "limit": gib(new.limit_mib)}))
    if used > new.limit_mib:
        facts.append(("over_quota", {"gib": gib(used - new.limit_mib)}))
    return facts
