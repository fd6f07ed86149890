"""A host that is to be empty by a time: its copies leave, each after its replacement where one is owed.

Nothing new comes to it (it is cordoned) and its copies no longer count as in hand, so growth starts their replacements
by the rules it has anyway. Shortly before the deadline who still waits goes without one; at the deadline calls are cut.
"""

from __future__ import annotations

from scheduler import two_hosts
from scheduler.decision import Decision, Numbers, Reason, Verb
from scheduler.draft import Draft
from scheduler.estimate import drain_bound_s
from scheduler.hosts import leaving
from scheduler.policy import Policy
from scheduler.world import Host, Phase, Replica, Tier, Want


def maintenance(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: the next step of each copy on a host that is being emptied; back to work where that was called off."""
    for host in sorted(draft.world.hosts.values(), key=lambda h: h.name):
        if host.leave_by is not None:
            for replica in _on(draft, host):
                if not replica.external and not draft.silent(replica):
                    _leave(draft, replica, host.leave_by)
    for replica in _called_off(draft):
        numbers: Numbers = {"lasted_s": now - replica.want_since}
        draft.do(Decision(Verb.WAKE, replica.service, Reason.UNNEEDED, replica.id, numbers=numbers))


def _on(draft: Draft, host: Host) -> list[Replica]:
    found = {r.id: r for card in draft.cards_of(host.name) for r in draft.on_card(card)}
    return [found[i] for i in sorted(found)]


def _called_off(draft: Draft) -> list[Replica]:
    """Still draining for the maintenance of a host that stays."""
    found = [
        r
        for r in draft.replicas.values()
        if r.phase is Phase.DRAINING and r.want is Want.DRAINED and r.reason == Reason.MAINTENANCE
    ]
    return [r for r in sorted(found, key=lambda r: r.id) if not leaving(draft.world, r) and not draft.silent(r)]


def _leave(draft: Draft, replica: Replica, leave_by: float) -> None:
    if replica.want is Want.STOPPED:
        return
    if replica.phase is Phase.READY:
        _drain(draft, replica, leave_by)
    elif replica.phase is Phase.DRAINING:
        _drained(draft, replica, leave_by)
    elif replica.phase is not Phase.ASLEEP or not _others_move(draft, replica):
        draft.do(_decision(Verb.STOP, replica, {"left_s": max(0.0, leave_by - draft.now)}))


def _drain(draft: Draft, replica: Replica, leave_by: float) -> None:
    """Its own drain bound before the deadline it goes without a replacement, so that its calls have that long."""
    last_moment = leave_by - drain_bound_s(draft.rules_of(replica), draft.services.get(replica.service))
    if draft.now >= last_moment or _may_go(draft, replica):
        draft.do(_decision(Verb.DRAIN, replica, {"left_s": max(0.0, leave_by - draft.now)}))


def _may_go(draft: Draft, replica: Replica) -> bool:
    """Are as many ready elsewhere as are owed, and on two hosts where that is the rule?"""
    service = draft.services.get(replica.service)
    if service is None:
        return True
    owed = max(service.min_replicas, 1 if service.tier is Tier.HOT else 0)
    return len(draft.staying(replica.service)) >= owed and two_hosts.may_go(draft, replica)


def _drained(draft: Draft, replica: Replica, leave_by: float) -> None:
    lasted_s = draft.now - replica.want_since
    if replica.want is not Want.DRAINED:
        return  # falling asleep: stopped once it is
    if replica.quiet and not _others_move(draft, replica):
        draft.do(_decision(Verb.STOP, replica, {"lasted_s": lasted_s}))
    elif draft.now >= leave_by:
        draft.do(_decision(Verb.STOP, replica, {"lasted_s": lasted_s, "left_s": 0.0}, force=True))


def _decision(verb: Verb, replica: Replica, numbers: Numbers, *, force: bool = False) -> Decision:
    return Decision(verb, replica.service, Reason.MAINTENANCE, replica.id, numbers=numbers, force=force)


def _others_move(draft: Draft, replica: Replica) -> bool:
    return any(draft.busy(card, but=replica.id) for card in replica.cards)
