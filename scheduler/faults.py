"""Failed replicas: tried again on the same card after growing pauses, then given up for another card.

After too many cards, or when another card would not help, the service is down and its callers are told why.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.decision import Code, Decision, Numbers, Reason, Refusal, Verb
from scheduler.draft import Draft
from scheduler.filters import LASTING, awake_limit, evicted_here, failed_here, on_two_hosts, same_service
from scheduler.memory import start_grant
from scheduler.policy import Policy
from scheduler.turns import waits_for
from scheduler.wishes import needs
from scheduler.world import Card, Failure, Phase, Replica, Service, Want

#: A new try keeps its card: these judge newcomers only.
FOR_NEWCOMERS = frozenset({failed_here, same_service, on_two_hosts, evicted_here})


def faults(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: each failed replica is tried again when its pause is over, or stopped when it is given up."""
    failed = [r for r in draft.replicas.values() if r.phase is Phase.FAILED and r.want is not Want.STOPPED]
    for replica in sorted(failed, key=lambda r: _order(draft, r)):
        if draft.silent(replica):
            continue
        service = draft.services.get(replica.service)
        if service is None or replica.want is not Want.READY or given_up(policy, replica):
            _give_up(draft, replica)
        elif retry_in_s(policy, replica, now) <= 0:
            _try_again(draft, replica, service)


def _order(draft: Draft, replica: Replica) -> tuple[bool, int, int]:
    """Whom somebody needs loads first: after a power cut a whole farm has failed at once."""
    service = draft.services.get(replica.service)
    if service is None:
        return True, 0, replica.id
    return not needs(draft, service), -service.priority, replica.id


def pauses_s(policy: Policy) -> tuple[int, int, int]:
    return policy.retry_first_s, policy.retry_second_s, policy.retry_third_s


def given_up(policy: Policy, replica: Replica) -> bool:
    """No further try on this card."""
    return replica.fatal or replica.failures_here > len(pauses_s(policy))


def retry_in_s(policy: Policy, replica: Replica, now: float) -> float:
    """Seconds until the next try on the same card; 0 when it is due."""
    pause = pauses_s(policy)[max(0, min(replica.failures_here, len(pauses_s(policy))) - 1)]
    failed_at = replica.since if replica.failed_at is None else replica.failed_at
    return max(0.0, failed_at + pause - now)


def down(draft: Draft, service: Service) -> Refusal | None:
    """Why the service is down, and for how long it is not tried: nothing while a copy is still being tried."""
    failures = service.failures
    if not failures or any(r.phase is Phase.FAILED for r in draft.in_hand(service.name)):
        return None
    last = tried_out(failures, draft.policy, draft.now)
    if last is None:
        return None
    rest, cards = last.at + draft.policy.down_retry_s - draft.now, len({f.card for f in failures})
    numbers: Numbers = {"fault": last.code, "message": last.message, "cards": cards, "retry_after_s": rest}
    return Refusal(Code.LOAD_FAILED, numbers)


def tried_out(failures: Sequence[Failure], policy: Policy, now: float) -> Failure | None:
    """The last failure where no card is tried until a rest is over: one that no card would help, or too many cards."""
    if len({f.card for f in failures}) < policy.max_failed_cards and not any(f.fatal for f in failures):
        return None
    last = max(failures, key=lambda f: f.at)
    return last if last.at + policy.down_retry_s > now else None


def _give_up(draft: Draft, replica: Replica) -> None:
    """The card counts as tried at once: the same plan may not already begin on one card too many."""
    numbers: Numbers = {"fault": replica.fault, "failures": replica.failures_here}
    if replica.cards:
        first, *rest = replica.cards
        failure = Failure(first, draft.now, replica.fault, "", replica.fatal, tuple(rest))
        draft.given_up(failure, replica.service)
    draft.do(Decision(Verb.STOP, replica.service, Reason.FAULT, replica.id, numbers=numbers))


def _try_again(draft: Draft, replica: Replica, service: Service) -> None:
    """On its card if it still fits there; waits its turn like any load."""
    cards = draft.cards_under(replica)
    grant = None if cards is None else _still_fit(draft, service, cards)
    if cards is None or grant is None:
        _give_up(draft, replica)
    elif all(waits_for(draft, card) is None for card in cards):
        numbers: Numbers = {"failures": replica.failures_here, "fault": replica.fault}
        draft.do(
            Decision(
                Verb.START,
                replica.service,
                Reason.FAULT,
                replica.id,
                cards=replica.cards,
                kv_granted_mib=grant,
                numbers=numbers,
            )
        )


def _still_fit(draft: Draft, service: Service, cards: list[Card]) -> int | None:
    """KV MiB of a new try on all of its cards, the same on each; None when it may not be there any more."""
    grants = [_still_fits(draft, service, card) for card in cards]
    least = min((grant for grant in grants if grant is not None), default=0)
    if None in grants or any(start_grant(draft.book(card.id), service, least) != least for card in cards):
        return None
    return least


def _still_fits(draft: Draft, service: Service, card: Card) -> int | None:
    """KV MiB of a new try on the card; None when it may not be there any more."""
    host = draft.world.hosts.get(card.host)
    if host is None or awake_limit(draft, service, card, host):
        return None
    questions = (q for q in LASTING if q not in FOR_NEWCOMERS)
    if any(question(draft, service, card, host) for question in questions):
        return None
    grant = start_grant(draft.book(card.id), service)
    return None if isinstance(grant, Refusal) else grant
