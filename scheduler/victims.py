"""Who may go from a card for a waiting caller, and in which order."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from scheduler import two_hosts
from scheduler.decision import Reason
from scheduler.draft import Draft
from scheduler.kept import why_kept
from scheduler.notices import last_call_at
from scheduler.quota import Right, right_of
from scheduler.wishes import needs, waited_for
from scheduler.world import Phase, Replica, Service, Want


class Kind(IntEnum):
    """In the order in which they go."""

    SLEEPER = 0
    UNWANTED_LOAD = 1  # a load nobody waits for any more
    IDLE = 2
    IN_USE = 3  # only for strictly higher priority, and never cut


class Victim(NamedTuple):
    """`rest_s`: how long it may still stay; `owes_mib`: what its company borrows of what the caller's was promised."""

    kind: Kind
    replica: Replica
    priority: int
    used_at: float
    rest_s: float
    owes_mib: int = 0

    @property
    def order(self) -> tuple[int, int, float, int]:
        return self.kind, self.priority, self.used_at, self.replica.id


class Candidate(NamedTuple):
    """Who could go for some caller. Until `stays_until` it does for none; until `near_until` not for an equal.

    `answer_s`: the mean time of an answer of one in use, None where unknown. `held_mib`: what is back once it stopped.
    """

    kind: Kind
    replica: Replica
    priority: int
    used_at: float
    stays_until: float
    near_until: float
    answer_s: float | None = None
    held_mib: int = 0


def victims(draft: Draft, card: str, caller: Service, lacks_mib: int = 0) -> list[Victim]:
    """All on the card that could go for the caller, first to go first; nobody where all hold less than that.

    Where quotas speak they are not added up.
    """
    each = candidates(draft, card)
    right = right_of(draft, caller, card)
    if right is None:
        able = [c for c in each if _may_go_for(draft, c, caller)]
        if sum([c.held_mib for c in able]) < lacks_mib:
            return []
        return [_victim(draft, c, caller) for c in able]
    owing = right.owing(c.replica for c in each)
    able = [c for c in each if c.replica.id in owing or (_may_go_for(draft, c, caller) and not _spared(right, c))]
    return [_victim(draft, c, caller, owes_mib=owing.get(c.replica.id, 0)) for c in able]


def _may_go_for(draft: Draft, candidate: Candidate, caller: Service) -> bool:
    return _goes_for(candidate, caller) or _soon_idle(draft, candidate, caller)


def _spared(right: Right, candidate: Candidate) -> bool:
    return candidate.kind is Kind.IN_USE and right.spares(candidate.replica)


def candidates(draft: Draft, card: str) -> list[Candidate]:
    """All on the card that could go for somebody, first to go first: whoever asks, the order is the same."""
    return draft.table(_candidates)[card]


def _candidates(draft: Draft, card: str) -> list[Candidate]:
    held = draft.book(card).held
    each = [_candidate(draft, replica, held.get(replica.id, 0)) for replica in draft.on_card(card)]
    return sorted([c for c in each if c is not None], key=in_order)


def in_order(candidate: Candidate) -> tuple[int, int, float, int]:
    """The order in which they go: a key to sort by."""
    return candidate.kind, candidate.priority, candidate.used_at, candidate.replica.id


def _candidate(draft: Draft, replica: Replica, held: int) -> Candidate | None:
    service = draft.services.get(replica.service)
    if service is None or replica.external or replica.id in draft.touched:
        return None
    kind = _kind(draft, replica, service)
    if kind is None or not draft.known(replica.id) or why_kept(draft, replica, for_room=True):
        return None
    stays = near = 0.0
    rules = draft.rules_of(replica)
    if kind in (Kind.IDLE, Kind.IN_USE) and not loaded_in_vain(draft, replica):
        stays = (replica.since if replica.loaded_at is None else replica.loaded_at) + rules.min_loaded_s
    called = last_call_at(draft, replica)
    if kind is Kind.IDLE and called is not None:
        near = called + rules.grace_room_s
    answer_s = service.generation_s if kind is Kind.IN_USE else None
    return Candidate(kind, replica, service.priority, used(draft, replica), stays, near, answer_s, held)


def _goes_for(candidate: Candidate, caller: Service) -> bool:
    """Not its own copy; a load or an idle one for equals too; one in use only for strictly higher priority."""
    if candidate.replica.service == caller.name:
        return False
    if candidate.kind is Kind.SLEEPER:
        return True
    if candidate.kind is Kind.IN_USE:
        return candidate.priority < caller.priority
    return candidate.priority <= caller.priority


def _soon_idle(draft: Draft, candidate: Candidate, caller: Service) -> bool:
    """An equal in use when the caller came: is it still likely to be idle before he has waited for one answer?"""
    if candidate.kind is not Kind.IN_USE or candidate.replica.service == caller.name:
        return False
    return candidate.priority == caller.priority and draft.now < _answered_by(draft, candidate, caller)


def _answered_by(draft: Draft, candidate: Candidate, caller: Service) -> float:
    """When what it answered as the caller came is answered, and no other call has come since."""
    since = caller.demand.held_since
    if since is None or candidate.answer_s is None:
        return 0.0
    return since + candidate.answer_s + draft.rules_of(candidate.replica).grace_room_s


def _victim(draft: Draft, candidate: Candidate, caller: Service, *, owes_mib: int = 0) -> Victim:
    """With the rest of its minimum stay, of the pair's last swap, and of a call so recent that the next is near.

    The last is for equals only: a caller of higher priority, or who was promised what it sits on, would take it in
    use. An equal in use is waited for: it goes as an idle one, once it is.
    """
    kind, until = candidate.kind, candidate.stays_until
    if candidate.priority >= caller.priority and not owes_mib:
        until = max(until, candidate.near_until)
        if kind is Kind.IN_USE:
            kind, until = Kind.IDLE, max(until, _answered_by(draft, candidate, caller))
    for swap in draft.swapped_out(caller.name):
        if swap.came == candidate.replica.service:
            until = max(until, swap.at + draft.rules_of(candidate.replica).min_loaded_s)
    rest_s = max(0.0, until - draft.now)
    return Victim(kind, candidate.replica, candidate.priority, candidate.used_at, rest_s, owes_mib)


def used(draft: Draft, replica: Replica) -> float:
    """When it was last of use: called, or made ready."""
    loaded_at = replica.since if replica.loaded_at is None else replica.loaded_at
    called = last_call_at(draft, replica)
    return loaded_at if called is None else max(loaded_at, called)


def _kind(draft: Draft, replica: Replica, service: Service) -> Kind | None:
    if replica.phase is Phase.ASLEEP and replica.want is Want.ASLEEP:
        return None if waited_for(service, draft.now) else Kind.SLEEPER
    if replica.want is not Want.READY:
        return None
    if replica.phase is Phase.STARTING:
        return None if needs(draft, service) else Kind.UNWANTED_LOAD
    if replica.phase is not Phase.READY or not two_hosts.may_go(draft, replica):
        return None
    if replica.left_alone_until is not None and replica.left_alone_until > draft.now:
        return None
    return Kind.IDLE if is_idle(draft, replica, service) else Kind.IN_USE


def is_idle(draft: Draft, replica: Replica, service: Service) -> bool:
    """Nothing in flight (unknown is not nothing), and nobody waits."""
    return replica.in_flight == 0 and not waited_for(service, draft.now)


def loaded_in_vain(draft: Draft, replica: Replica) -> bool:
    """Loaded ahead, and nobody came yet: no caller of another service shall wait for its minimum stay."""
    return replica.reason == Reason.FORECAST and used(draft, replica) == replica.loaded_at
