"""Loads that nobody waits for give way: a preload that slows a neighbour is called off, further ones wait.

A load with waiters, or one that an operator insists on, is never slowed.
"""

from __future__ import annotations

from math import inf

from scheduler.decision import Code, Decision, Numbers, Reason, Refusal, Verb
from scheduler.draft import Draft
from scheduler.policy import Policy
from scheduler.wishes import preloads, waited_for
from scheduler.world import Card, Phase, Replica, Want

#: Loads that somebody wanted ahead of a call.
AHEAD = frozenset({Reason.FORECAST, Reason.OPERATOR})


def throttle(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: calls off each preload beside which a neighbour's disturbance rose."""
    for replica in draft.by_id(Phase.STARTING):
        if replica.want is not Want.READY or not _patient(draft, replica):
            continue
        if now - replica.since < policy.throttle_after_s or draft.silent(replica):
            continue
        numbers = next((n for card in replica.cards if (n := disturbed(draft, card)) is not None), None)
        if numbers is not None:
            numbers = {**numbers, "card": replica.cards[0], "lasted_s": now - replica.since}
            draft.do(Decision(Verb.STOP, replica.service, Reason.THROTTLE, replica.id, numbers=numbers))


def _patient(draft: Draft, replica: Replica) -> bool:
    """Was it started ahead of calls, and does still nobody wait for it?"""
    service = draft.services.get(replica.service)
    if service is None or replica.reason not in AHEAD or waited_for(service, draft.now):
        return False
    return not any(order.force for order in preloads(draft, service))


def disturbed(draft: Draft, card: str) -> Numbers | None:
    """The neighbour on the card whose chunks come most unevenly beyond the line; None: all is well or unknown."""
    least = draft.policy.throttle_rise_pct
    found = [r for r in draft.on_card(card) if r.phase is Phase.READY and (r.disturbance_pct or 0.0) >= least]
    worst = max(found, key=lambda r: (r.disturbance_pct or 0.0, -r.id), default=None)
    if worst is None:
        return None
    return {"neighbour": worst.service, "disturbance_pct": round(worst.disturbance_pct or 0.0, 1)}


def _called_off_s(draft: Draft, host: str) -> float:
    """How long nothing begins there since a preload was called off on one of its cards; 0 or less: it may."""
    if not draft.world.throttled:
        return 0.0
    cards = draft.cards_of(host)
    last = max((t.at for t in draft.world.throttled if t.card in cards), default=-inf)
    return last + draft.policy.throttle_pause_s - draft.now


def throttled(draft: Draft, card: Card) -> Refusal | None:
    """Why a load that nobody waits for may not begin on this card now; None: it may.

    While a neighbour is disturbed on a card of the host that loads (loads share storage and bus), and for a while
    after one was called off there: else it would begin and end in turn.
    """
    if (rest_s := _called_off_s(draft, card.host)) > 0:
        return Refusal(Code.THROTTLED, {"card": card.id, "host": card.host, "retry_after_s": rest_s})
    loading = {c for r in draft.loading_on(card.host) for c in r.cards}
    for one in sorted({card.id} | loading):
        if (numbers := disturbed(draft, one)) is not None:
            return Refusal(Code.THROTTLED, {**numbers, "card": card.id, "host": card.host})
    return None
