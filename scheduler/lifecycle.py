"""Want, phase and the legal steps between them: the one table everybody reads."""

from __future__ import annotations

from scheduler.decision import MAY_CUT, Decision, Reason, Verb
from scheduler.rows import changed as with_values
from scheduler.world import Phase, Replica, Want

WANT_AFTER: dict[Verb, Want] = {
    Verb.START: Want.READY,
    Verb.WAKE: Want.READY,
    Verb.DRAIN: Want.DRAINED,
    Verb.SLEEP: Want.ASLEEP,
    Verb.STOP: Want.STOPPED,
}

LEGAL_FROM: dict[Verb, frozenset[Phase]] = {
    Verb.START: frozenset({Phase.STOPPED, Phase.FAILED}),
    Verb.WAKE: frozenset({Phase.ASLEEP, Phase.DRAINING, Phase.READY}),  # ready: a call clears a notice
    Verb.DRAIN: frozenset({Phase.READY}),
    Verb.SLEEP: frozenset({Phase.DRAINING}),
    Verb.STOP: frozenset({Phase.STARTING, Phase.DRAINING, Phase.ASLEEP, Phase.FAILED}),
}

#: A drain for one of these is not taken back.
NO_WAY_BACK = frozenset({Reason.PRESSURE, Reason.FAULT, Reason.OPERATOR})


def legal(decision: Decision, replica: Replica | None) -> bool:
    """May this be done to this replica now? `None` is a copy that does not exist yet."""
    if replica is None:
        return decision.verb is Verb.START
    if replica.external:
        return False
    if decision.verb is Verb.STOP and replica.phase is Phase.READY:
        return decision.force or decision.reason in MAY_CUT
    if decision.verb is Verb.WAKE and replica.phase is Phase.DRAINING:
        return replica.want is Want.DRAINED and replica.reason not in NO_WAY_BACK
    if decision.verb is Verb.WAKE and replica.phase is Phase.READY:
        return replica.drain_at is not None or decision.reason is Reason.OPERATOR  # kept before any notice
    return replica.phase in LEGAL_FROM[decision.verb]


def moving(replica: Replica) -> bool:
    """Is its engine being started, woken, put asleep or stopped right now?"""
    if replica.phase is Phase.STARTING:
        return True
    if replica.phase is Phase.DRAINING:
        return replica.want in (Want.ASLEEP, Want.STOPPED)
    return replica.phase is Phase.ASLEEP and replica.want is Want.STOPPED


def goes_by(replica: Replica, at: float) -> bool:
    """Is it leaving, or under a notice that is due by then?"""
    if replica.phase is Phase.READY:
        return replica.want is Want.READY and replica.drain_at is not None and replica.drain_at <= at
    if replica.phase is Phase.ASLEEP:
        return replica.want is Want.STOPPED
    return replica.awake and replica.want is not Want.READY


def seen_phase(want: Want, attempt: int, phase: Phase, phase_attempt: int) -> Phase:
    """The phase that counts: what the host reported, read against what it was told since.

    A report of an earlier attempt says nothing about this one: the replica is as good as starting (or never was).
    """
    if want is Want.READY:
        if phase_attempt < attempt or phase is Phase.ASLEEP:
            return Phase.STARTING
        return Phase.READY if phase is Phase.DRAINING else phase
    if phase_attempt < attempt:
        return Phase.STARTING  # the host may have begun: its memory counts until it says otherwise
    if phase is Phase.READY:
        return Phase.DRAINING
    return phase


def begun(number: int, decision: Decision, now: float) -> Replica:
    """The copy that a start makes where there was none."""
    return Replica(
        number,
        decision.service,
        decision.cards,
        Want.READY,
        Phase.STARTING,
        kv_granted_mib=decision.kv_granted_mib,
        since=now,
        want_since=now,
        reason=decision.reason,
    )


def changed(replica: Replica, decision: Decision, now: float) -> Replica:
    """The replica as it counts once a legal decision about it is recorded."""
    reason = decision.reason
    match decision.verb:
        case Verb.START:
            return with_values(
                replica,
                want=Want.READY,
                phase=Phase.STARTING,
                attempt=replica.attempt + 1,
                cards=decision.cards or replica.cards,
                kv_granted_mib=decision.kv_granted_mib,
                measured_mib=None,
                since=now,
                want_since=now,
                reason=reason,
            )
        case Verb.WAKE if replica.phase is Phase.ASLEEP:
            return with_values(
                replica, want=Want.READY, phase=Phase.STARTING, waking=True, want_since=now, since=now, reason=reason
            )
        case Verb.WAKE:
            return with_values(
                replica, want=Want.READY, phase=Phase.READY, drain_at=None, want_since=now, reason=reason, quiet=False
            )
        case Verb.DRAIN if decision.not_before is not None:
            return with_values(replica, drain_at=decision.not_before, reason=reason)
        case Verb.DRAIN:
            return with_values(
                replica,
                want=Want.DRAINED,
                phase=Phase.DRAINING,
                drain_at=None,
                want_since=now,
                since=now,
                reason=reason,
                quiet=False,
            )
        case Verb.SLEEP:
            return with_values(replica, want=Want.ASLEEP, want_since=now, reason=reason)
        case Verb.STOP:
            phase = Phase.DRAINING if replica.phase is Phase.READY else replica.phase
            return with_values(replica, want=Want.STOPPED, phase=phase, want_since=now, reason=reason)
