"""Finishing what was begun: a drained replica sleeps or stops, an endless drain is taken back, spare sleepers go."""

from __future__ import annotations

from scheduler.decision import CONVENIENCE, MAY_CUT, Code, Decision, Numbers, Reason, Verb
from scheduler.draft import Draft
from scheduler.estimate import drain_bound_s, pressure_bound_s
from scheduler.memory import after_leaving, room_mib
from scheduler.notices import reason_of
from scheduler.policy import Policy
from scheduler.sleep import gives_way, may_sleep, sleeps_idle, why_no_sleep
from scheduler.world import Phase, Replica, Tier, Want


def settle(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: the next step of each draining replica and of each sleeper that nobody can need."""
    for replica in draft.by_id(Phase.DRAINING, Phase.ASLEEP):
        if draft.silent(replica):
            continue
        if replica.phase is Phase.DRAINING and replica.want is Want.DRAINED:
            _drained(draft, replica)
        elif replica.phase is Phase.ASLEEP and replica.want is Want.ASLEEP:
            _asleep(draft, replica)


def _drained(draft: Draft, replica: Replica) -> None:
    """Quiet is said by the world, which has every count; nothing else ends a drain for our convenience."""
    service = draft.services.get(replica.service)
    lasted_s = draft.now - replica.want_since
    bound_s = pressure_bound_s if replica.reason == Reason.PRESSURE else drain_bound_s
    if replica.quiet:
        _end(draft, replica)
    elif replica.reason in MAY_CUT and lasted_s >= bound_s(draft.rules_of(replica), service):
        numbers: Numbers = {"lasted_s": lasted_s}
        draft.do(Decision(Verb.STOP, replica.service, reason_of(replica), replica.id, force=True, numbers=numbers))
    elif replica.reason in CONVENIENCE and lasted_s >= draft.rules_of(replica).drain_overdue_s:
        numbers = {"lasted_s": lasted_s, "left_alone_until": draft.now + draft.rules_of(replica).left_alone_s}
        draft.do(Decision(Verb.WAKE, replica.service, Reason.UNNEEDED, replica.id, numbers=numbers))


def _end(draft: Draft, replica: Replica) -> None:
    """Sleep or stop; waits while another engine of the card is on the move, unless the card is about to burst."""
    reason = reason_of(replica)
    if reason is not Reason.PRESSURE and any(draft.busy(card, but=replica.id) for card in replica.cards):
        return
    # a residue costs money, too; and what was moved serves elsewhere
    wakes_again = reason not in MAY_CUT and reason not in (Reason.BUDGET, Reason.REPACK, Reason.REGRANT)
    may = sleeps_idle if reason is Reason.IDLE else may_sleep
    sleeps = wakes_again and may(draft, replica) and not _promise_needs_all(draft, replica)
    if wakes_again and not sleeps and reason is Reason.IDLE and (older := gives_way(draft, replica)) is not None:
        numbers: Numbers = {"sleeps_instead": replica.service}
        draft.do(Decision(Verb.STOP, older.service, reason, older.id, numbers=numbers))
        return
    verb = Verb.SLEEP if sleeps else Verb.STOP
    numbers = _why_it_stops(draft, replica) if wakes_again and not sleeps else {}
    draft.do(Decision(verb, replica.service, reason, replica.id, numbers=numbers))


def _why_it_stops(draft: Draft, replica: Replica) -> Numbers:
    """One that ought to sleep and stops: its next call waits for a load, so the reason is said with its numbers."""
    service = draft.services.get(replica.service)
    if service is None or service.tier is Tier.COLD:
        return {}
    refusal = why_no_sleep(draft, replica)
    return {"no_sleep": Code.SHORT_OF_MEMORY} if refusal is None else {"no_sleep": refusal.code, **refusal.numbers}


def _promise_needs_all(draft: Draft, replica: Replica) -> bool:
    """Would its residue be in the way of a copy that was promised the card?"""
    for card in replica.cards:
        if not draft.promised[card]:
            continue
        leaving = {r.id for r in draft.on_card(card) if r.id in draft.relied_on and r.id != replica.id}
        room = room_mib(after_leaving(draft.book(card), leaving, {replica.id}))
        if room is not None and room < 0:
            return True
    return False


def _asleep(draft: Draft, replica: Replica) -> None:
    """A sleeper beyond max_replicas: it was started elsewhere because it could not wake here."""
    service = draft.services.get(replica.service)
    if service is None:
        return
    most = max(service.max_replicas, 1)
    if draft.copies(service.name) <= most or len(draft.staying(service.name)) < most:  # it is a copy itself
        return
    if not any(draft.busy(card, but=replica.id) for card in replica.cards):
        draft.do(Decision(Verb.STOP, replica.service, Reason.SURPLUS, replica.id))
