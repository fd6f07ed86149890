"""Notices: a call takes one back, time makes it a drain.

A notice is told to owner and callers before a replica goes; until `drain_at` it is routed as ever.
"""

from __future__ import annotations

from scheduler import two_hosts
from scheduler.budget import spared
from scheduler.decision import CONVENIENCE, Decision, Numbers, Reason, Verb
from scheduler.draft import Draft
from scheduler.kept import why_kept
from scheduler.policy import Policy
from scheduler.wishes import waited_for
from scheduler.world import Phase, Replica, Want

#: Notices that a call takes back: those given because nobody called.
ANSWERED_BY_A_CALL = frozenset({Reason.IDLE, Reason.ROOM})


def notices(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: each standing notice is taken back, or is left standing, or becomes a drain."""
    for replica in draft.by_id(Phase.READY):
        if replica.drain_at is None or replica.want is not Want.READY:
            continue
        if replica.reason in ANSWERED_BY_A_CALL and called_since(draft, replica):
            draft.do(Decision(Verb.WAKE, replica.service, Reason.CALL, replica.id))
        elif replica.drain_at <= now and not draft.silent(replica):
            _due(draft, replica)


def last_call_at(draft: Draft, replica: Replica) -> float | None:
    """When this copy was last called; where it is not counted for the copy, when its service was."""
    service = draft.services.get(replica.service)
    if replica.last_call_at is not None or service is None:
        return replica.last_call_at
    return service.demand.last_call_at


def called_since(draft: Draft, replica: Replica) -> bool:
    """Was it called since the notice, or is it in use, or does a caller wait for it right now?"""
    service = draft.services.get(replica.service)
    if replica.in_flight or (service is not None and waited_for(service, draft.now)):
        return True
    rules = draft.rules_of(replica)
    grace = rules.grace_room_s if replica.reason == Reason.ROOM else rules.grace_s
    called = last_call_at(draft, replica)
    return called is not None and replica.drain_at is not None and called > replica.drain_at - grace


def _due(draft: Draft, replica: Replica) -> None:
    """A convenience drain is looked at once more: the world has moved on since the notice."""
    if replica.reason in CONVENIENCE:
        kept = why_kept_from(draft, replica)
        if kept is not None or not two_hosts.may_go(draft, replica):
            numbers: Numbers = {"kept": kept or "two_hosts"}
            draft.do(Decision(Verb.WAKE, replica.service, Reason.UNNEEDED, replica.id, numbers=numbers))
            return
        if replica.in_flight is None:  # unknown is not idle
            return
    draft.do(Decision(Verb.DRAIN, replica.service, reason_of(replica), replica.id))


def why_kept_from(draft: Draft, replica: Replica) -> str | None:
    """What speaks against the drain that its notice announced; a spent budget asks no more than that it is spent."""
    if replica.reason == Reason.BUDGET:
        return spared(draft, replica)
    return why_kept(draft, replica, for_room=replica.reason == Reason.ROOM)


def reason_of(replica: Replica) -> Reason:
    """The reason that stands on a replica, for the steps that finish what it began."""
    return Reason(replica.reason) if replica.reason in set(Reason) else Reason.OPERATOR
