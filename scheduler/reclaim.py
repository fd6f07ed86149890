"""Giving memory back: who has been idle long enough gets a notice; who is beyond the maximum drains."""

from __future__ import annotations

from scheduler import two_hosts
from scheduler.decision import Decision, Numbers, Reason, Verb
from scheduler.draft import Draft
from scheduler.kept import WHITELISTED, why_kept
from scheduler.policy import Policy
from scheduler.pools import lent_to
from scheduler.victims import used
from scheduler.wishes import waited_for
from scheduler.world import Phase, Replica, Service, Tier, Want


def reclaim(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: notices for idleness, drains of surplus copies."""
    services = draft.services
    for replica in draft.by_id(Phase.READY):
        service = services.get(replica.service)
        if service is None or replica.drain_at is not None:
            continue
        idle = replica.in_flight == 0 and _idle(draft, replica, service)
        if not (idle or _crowded(draft, service)) or not may_be_asked(draft, replica):
            continue  # nearly all
        if _surplus(draft, replica, service):
            numbers: Numbers = {"ready": len(draft.staying(service.name)), "max_replicas": service.max_replicas}
            draft.do(Decision(Verb.DRAIN, service.name, Reason.SURPLUS, replica.id, numbers=numbers))
        elif idle:
            _notice(draft, replica, service)


def _idle(draft: Draft, replica: Replica, service: Service) -> bool:
    """For long enough to be asked?"""
    rules, called = draft.rules_of(replica), replica.last_call_at
    if called is not None and draft.now - called < rules.idle_unload_s:
        return False
    return idle_s(draft, replica, service) >= idle_limit_s(rules, replica, service)


def _crowded(draft: Draft, service: Service) -> bool:
    """Has it more copies than it may have, whatever they do?"""
    return draft.copies(service.name) > max(service.max_replicas, service.min_replicas)


def idle_limit_s(policy: Policy, replica: Replica, service: Service) -> int:
    """How long this copy may be idle; longer where it ought to sleep and cannot."""
    ought = service.tier is not Tier.COLD
    cannot = not (service.can_sleep and replica.can_sleep)
    return policy.idle_unload_s * (policy.no_sleep_idle_factor if ought and cannot else 1)


def idle_s(draft: Draft, replica: Replica, service: Service) -> float:
    """Seconds without a call; 0 while anything is, or may be, in flight. A wish to have it ready counts as use."""
    if replica.in_flight != 0 or waited_for(service, draft.now):
        return 0.0
    return max(0.0, draft.now - max(used(draft, replica), service.wished_at or 0.0))


def may_be_asked(draft: Draft, replica: Replica) -> bool:
    """Is it ready, ours, undisturbed by this plan or an earlier drain, and does another host serve as well?"""
    if replica.phase is not Phase.READY or replica.want is not Want.READY or replica.drain_at is not None:
        return False
    if replica.external or replica.id in draft.touched or draft.silent(replica):
        return False
    if replica.left_alone_until is not None and replica.left_alone_until > draft.now:
        return False
    return two_hosts.may_go(draft, replica)


def _surplus(draft: Draft, replica: Replica, service: Service) -> bool:
    """More ready than the maximum, as after a lost host came back: what is lent goes first, then who is used least."""
    if service.name in draft.tightened:  # announced ahead by the stage before
        return False
    most = max(service.max_replicas, service.min_replicas)
    if not _crowded(draft, service) or len(staying := draft.staying(service.name)) <= most:
        return False
    if why_kept(draft, replica) == WHITELISTED:
        return False
    first = min(staying, key=lambda r: (not lent_to(draft, r), used(draft, r), r.id))
    return first.id == replica.id


def _notice(draft: Draft, replica: Replica, service: Service) -> None:
    rules = draft.rules_of(replica)
    loaded_at = replica.since if replica.loaded_at is None else replica.loaded_at
    if draft.now - loaded_at < rules.min_loaded_s or why_kept(draft, replica) is not None:
        return
    drain_at = draft.now + rules.grace_s
    numbers: Numbers = {"idle_s": idle_s(draft, replica, service), "tier": service.tier}
    draft.do(Decision(Verb.DRAIN, service.name, Reason.IDLE, replica.id, not_before=drain_at, numbers=numbers))
