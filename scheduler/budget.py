"""Card budgets: who spent a month's money shrinks, announced, lowest priority first; nobody's call is refused for it.

Up to 100 % of what was really spent nothing moves (a forecast only warns). Then all services of the budget may have
no more than their minimum and count one tier lower; copies beyond that go first, then those of batch and lowfreq
services, one service after the other, each with notice. Online services keep their minimum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum

from scheduler import two_hosts
from scheduler.decision import Decision, Numbers, Reason, Verb
from scheduler.draft import Draft
from scheduler.kept import last_of_minimum, whitelisted
from scheduler.memory import HUNDRED
from scheduler.policy import Policy
from scheduler.rows import changed
from scheduler.world import Budget, Phase, Profile, Replica, Service, Tier, Want

ONE_DOWN = {Tier.HOT: Tier.WARM, Tier.WARM: Tier.COLD, Tier.COLD: Tier.COLD}


class Standing(StrEnum):
    FINE = "fine"
    WARNED = "warned"  # 80 % spent, or more than all foreseen
    SPENT = "spent"


def standing(budget: Budget, policy: Policy) -> Standing:
    """How a budget stands; only what was really spent shrinks anything."""
    if budget.spent_fen >= budget.limit_fen:
        return Standing.SPENT
    early = budget.spent_fen * HUNDRED >= budget.limit_fen * policy.budget_warn_pct
    foreseen = budget.forecast_fen is not None and budget.forecast_fen > budget.limit_fen
    return Standing.WARNED if early or foreseen else Standing.FINE


def forecast_fen(spent_fen: int, recent_fen: int, recent_h: int, left_h: int) -> int | None:
    """What the month will have cost if it goes on as in the last `recent_h` booked hours. None: none are booked."""
    return spent_fen + recent_fen * left_h // recent_h if recent_h else None


def covers(budget: Budget, service: Service) -> bool:
    return service.name == budget.service if budget.service else service.tenant == budget.tenant


def spent(budgets: Iterable[Budget]) -> list[Budget]:
    return [budget for budget in budgets if budget.spent_fen >= budget.limit_fen]


def tighten(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: services of spent budgets count as smaller ones for the rest of the plan.

    All of them are named in `draft.tightened`; those that hold nothing and ask for nothing are as small as can be.
    """
    if not (over := spent(draft.world.budgets)):
        return
    tenants, names = {b.tenant for b in over if not b.service}, {b.service for b in over}
    mine = [s for s in draft.services.values() if s.tenant in tenants or s.name in names]
    there = {replica.service for replica in draft.replicas.values()}
    smaller = {s.name: tightened(s) for s in mine if s.name in there or _wants_itself(s)}
    draft.world = replace(draft.world, services={**draft.services, **smaller})
    draft.tightened |= {s.name for s in mine}


def _wants_itself(service: Service) -> bool:
    """Would it be loaded without anybody calling?"""
    return service.tier is Tier.HOT or service.min_replicas > 0 or bool(service.resident)


def tightened(service: Service) -> Service:
    """No more than its minimum (one where that is none: a call is still served), one tier down.

    Only online services have a minimum, or resident hours, in which they are awake for nobody.
    """
    most = min(service.max_replicas, max(service.min_replicas, 1))
    online = service.profile is Profile.ONLINE
    least, hours = (service.min_replicas, service.resident) if online else (0, ())
    values = (most, least, hours, ONE_DOWN[service.tier])
    if values == (service.max_replicas, service.min_replicas, service.resident, service.tier):
        return service
    return changed(service, max_replicas=most, min_replicas=least, resident=hours, tier=ONE_DOWN[service.tier])


def budget(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: for each spent budget, the notices that come next; none while an earlier one of it is being obeyed."""
    if not (over := spent(draft.world.budgets)):
        return
    there = {r.service for r in draft.replicas.values()} & draft.services.keys()
    by_tenant: dict[str, list[Service]] = defaultdict(list)
    for service in sorted((draft.services[name] for name in there), key=lambda s: (s.priority, s.name)):
        by_tenant[service.tenant].append(service)
    for one in over:
        held = by_tenant.values() if one.service else [by_tenant[one.tenant]]
        mine = [service for services in held for service in services if covers(one, service)]
        if not any(_leaving(draft, service) for service in mine):
            going = next(_turns(draft, mine), [])
            for replica in going:
                _notice(draft, one, replica)


def _leaving(draft: Draft, service: Service) -> bool:
    """Is a copy of it under notice, or draining, for its budget?"""
    return any(
        r.reason == Reason.BUDGET and (r.drain_at is not None or r.phase is Phase.DRAINING)
        for r in draft.of_service(service.name)
    )


def _turns(draft: Draft, services: list[Service]) -> Iterator[list[Replica]]:
    """Copies that go together, in the order of turns: those beyond the maximum, then all of batch and lowfreq."""
    for service in services:
        beyond = len(draft.staying(service.name)) - service.max_replicas
        if beyond > 0 and (askable := _askable(draft, service)):
            yield askable[:beyond]
    for service in services:
        if service.profile is not Profile.ONLINE and (askable := _askable(draft, service)):
            yield askable


def _askable(draft: Draft, service: Service) -> list[Replica]:
    """Copies that may be given notice now, least lately used first."""
    found = [r for r in draft.staying(service.name) if _may_be_asked(draft, r)]
    return sorted(found, key=lambda r: (r.last_call_at or _loaded_at(r), r.id))


def _loaded_at(replica: Replica) -> float:
    return max(replica.want_since, replica.since if replica.loaded_at is None else replica.loaded_at)


def _may_be_asked(draft: Draft, replica: Replica) -> bool:
    if replica.want is not Want.READY or replica.external or replica.id in draft.touched or draft.silent(replica):
        return False
    if replica.left_alone_until is not None and replica.left_alone_until > draft.now:
        return False
    if draft.now - _loaded_at(replica) < draft.rules_of(replica).min_loaded_s:
        return False
    return spared(draft, replica) is None and two_hosts.may_go(draft, replica)


def spared(draft: Draft, replica: Replica) -> str | None:
    """Why this copy need not go for its budget, or None: it is not spent (any more), or the copy is safe from it."""
    service = draft.services.get(replica.service)
    if service is None:
        return None
    if service.name not in draft.tightened:
        return "within_budget"
    if whitelisted(draft, replica, service):
        return "whitelisted"
    return "minimum" if last_of_minimum(draft, replica, service) else None


def _notice(draft: Draft, budget: Budget, replica: Replica) -> None:
    numbers: Numbers = {
        "spent_fen": budget.spent_fen,
        "limit_fen": budget.limit_fen,
        "spent_pct": budget.spent_fen * HUNDRED // budget.limit_fen if budget.limit_fen else HUNDRED,
        "grace_s": draft.rules_of(replica).grace_s,
    }
    drain_at = draft.now + draft.rules_of(replica).grace_s
    draft.do(Decision(Verb.DRAIN, replica.service, Reason.BUDGET, replica.id, not_before=drain_at, numbers=numbers))
