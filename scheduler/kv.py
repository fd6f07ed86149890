"""KV memory of running engines: one whose KV is full while calls wait has outgrown its grant.

A static pool cannot grow and evicting a neighbour would give the engine nothing. So, in this order: another copy if
the service may have one; else a start with a larger grant elsewhere, the old copy going when the new one is ready
(make before break); else the gateways send it less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from scheduler import two_hosts
from scheduler.decision import Code, Decision, Numbers, Reason, Refusal, Verb
from scheduler.draft import Draft
from scheduler.memory import HUNDRED
from scheduler.placement import Placement, place
from scheduler.policy import Policy
from scheduler.world import Phase, Replica, Service, Want


def samples_after(used_pct: float | None, waiting: int | None, before: int, policy: Policy) -> int:
    """The new count of samples with full KV and calls waiting; `before` is the count until then.

    From `kv_full_samples` on the engine counts as outgrown until its KV is below `kv_relief_pct`.
    """
    most = policy.kv_full_samples
    if used_pct is None or waiting is None:
        return before
    if used_pct >= policy.kv_full_pct and waiting > 0:
        return min(before + 1, most)
    return before if before >= most and used_pct >= policy.kv_relief_pct else 0


def outgrown(replica: Replica, policy: Policy) -> bool:
    """Is its KV full, and has been for long enough to act?"""
    return replica.phase is Phase.READY and replica.kv_full_samples >= policy.kv_full_samples


def admitted_tokens(kv_tokens: int, policy: Policy, *, tight: bool) -> int:
    """Tokens of calls that may be in flight at an engine with room for `kv_tokens`; at least one."""
    return max(1, kv_tokens * (policy.kv_tight_pct if tight else policy.kv_admit_pct) // HUNDRED)


def tightened(decisions: Iterable[Decision]) -> frozenset[str]:
    """Services whose outgrown copies are sent less, for want of anything better."""
    return frozenset(d.service for d in decisions if d.refusal is not None and d.refusal.code is Code.KV_FULL)


def kv_growth(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: more KV for services all of whose copies have outgrown theirs; ends what it began before."""
    copies: dict[str, list[Replica]] = defaultdict(list)
    for replica in [r for r in draft.replicas.values() if r.phase is Phase.READY]:
        if outgrown(replica, policy):
            copies[replica.service].append(replica)
        elif replica.reason == Reason.REGRANT and replica.want is Want.READY:
            _replace_smallest(draft, replica)
    asking = [n for n in sorted(copies) if n in draft.services and not _help_is_there(draft, n, copies[n])]
    turn = int(now) * policy.kv_placements % len(asking) if asking else 0
    for place_in_turn, name in enumerate(asking[turn:] + asking[:turn]):
        _grow(draft, draft.services[name], copies[name], look=place_in_turn < policy.kv_placements)


def _help_is_there(draft: Draft, service: str, full: list[Replica]) -> bool:
    """Another copy is coming, or one has room left and will be sent the calls."""
    known = {r.id for r in full}
    return any(r.id not in known and r.drain_at is None for r in draft.in_hand(service))


def _grow(draft: Draft, service: Service, full: list[Replica], *, look: bool) -> None:
    """`look`: it is its turn to ask all cards; until then the gateways send it less."""
    smallest = min(full, key=lambda r: (r.kv_granted_mib, r.id))
    numbers: Numbers = {
        "kv_used_pct": max(r.kv_used_pct or 0.0 for r in full),
        "waiting": sum(r.waiting or 0 for r in full),
        "kv_now_mib": smallest.kv_granted_mib,
    }
    found = place(draft, draft.policy, service, draft.now) if look else Refusal(Code.KV_FULL)
    if isinstance(found, Placement):
        if len(draft.in_hand(service.name)) < service.max_replicas:
            _start(draft, service, found, Reason.QUEUE, numbers)
            return
        if _worth_it(draft, smallest, service, found):
            _start(draft, service, found, Reason.REGRANT, {**numbers, "instead_of": smallest.id})
            return
    elif found.passing:
        return
    refusal = Refusal(Code.KV_FULL, {**numbers, "admit_pct": draft.policy.kv_tight_pct})
    draft.decisions.append(Decision(Verb.START, service.name, Reason.QUEUE, smallest.id, refusal=refusal))


def _worth_it(draft: Draft, old: Replica, service: Service, found: Placement) -> bool:
    """Is the grant elsewhere larger by enough, and may the old copy go for it?"""
    least = old.kv_granted_mib * (HUNDRED + draft.policy.regrant_gain_pct)
    return found.kv_granted_mib * HUNDRED >= least and two_hosts.may_go(draft, old) and not old.external


def _start(draft: Draft, service: Service, found: Placement, reason: Reason, numbers: Numbers) -> None:
    decision = Decision(Verb.START, service.name, reason, cards=found.cards, kv_granted_mib=found.kv_granted_mib)
    draft.do(replace(decision, numbers={**found.numbers, **numbers}))


def _replace_smallest(draft: Draft, new: Replica) -> None:
    """The larger copy is ready: of the others the one with the smallest grant goes, cutting nothing."""
    service = draft.services.get(new.service)
    staying = draft.staying(new.service)
    if service is None or len(staying) <= max(service.max_replicas, service.min_replicas):
        return
    smaller = [r for r in staying if r.kv_granted_mib < new.kv_granted_mib and not r.external]
    smaller = [r for r in smaller if two_hosts.may_go(draft, r) and not _left_alone(draft, r)]
    if smaller:
        old = min(smaller, key=lambda r: (r.kv_granted_mib, r.id))
        numbers: Numbers = {"kv_now_mib": old.kv_granted_mib, "kv_granted_mib": new.kv_granted_mib}
        draft.do(Decision(Verb.DRAIN, service.name, Reason.REGRANT, old.id, numbers=numbers))


def _left_alone(draft: Draft, replica: Replica) -> bool:
    return replica.left_alone_until is not None and replica.left_alone_until > draft.now
