"""Operators' orders: each becomes a legal decision with reason `operator`, waits for its moment, or is refused.

A preload is a wish, and the growth stage serves it; here it only ends. Nothing is remembered between plans: an order
stays open until the world is as it asks, or it lapses.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler import two_hosts
from scheduler.decision import Code, Decision, Numbers, Reason, Refusal, Verb
from scheduler.draft import Draft
from scheduler.estimate import drain_bound_s
from scheduler.lifecycle import legal
from scheduler.memory import wake_fits
from scheduler.policy import Policy
from scheduler.pressed import no_newcomers
from scheduler.quota import no_wake
from scheduler.turns import waits_for
from scheduler.world import Act, Order, Phase, Replica, Want

VERB_OF: dict[Act, Verb] = {
    Act.PRELOAD: Verb.START,
    Act.WAKE: Verb.WAKE,
    Act.KEEP: Verb.WAKE,
    Act.DRAIN: Verb.DRAIN,
    Act.STOP: Verb.STOP,
}
#: None: it is under way or was done, the order says no more for now.
Step = Callable[[Draft, Order, Replica], Refusal | None]

ALREADY_SO = Refusal(Code.ALREADY_SO)


def orders(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: the next step of every open order, oldest first."""
    for order in sorted(draft.world.orders, key=lambda o: o.id):
        refused = _at_once(draft, order) or _step(draft, order)
        if refused is not None:
            _answer(draft, order, refused)


def _answer(draft: Draft, order: Order, refused: Refusal) -> None:
    verb = VERB_OF[order.act]
    draft.decisions.append(
        Decision(verb, order.service, Reason.OPERATOR, order.replica, refusal=refused, order=order.id)
    )


def _at_once(draft: Draft, order: Order) -> Refusal | None:
    """What ends an order whatever it asks."""
    if order.until <= draft.now:
        return Refusal(Code.LAPSED)
    return Refusal(Code.FROZEN) if draft.world.frozen else None


def _step(draft: Draft, order: Order) -> Refusal | None:
    service = draft.services.get(order.service)
    if service is None:
        return ALREADY_SO
    if order.act is Act.PRELOAD:
        return ALREADY_SO if len(draft.in_hand(order.service)) >= order.count else None
    copies = [r for r in draft.of_service(order.service) if order.replica in (None, r.id)]
    mine = [r for r in copies if not r.external and r.want is not Want.STOPPED]
    if not mine:
        return Refusal(Code.IMPORTED) if any(r.external for r in copies) else ALREADY_SO
    if order.replica is None and _breaks_two_hosts(draft, mine):
        return Refusal(Code.TWO_HOSTS, {"min_replicas": service.min_replicas})
    for replica in mine:
        refused = Refusal(Code.HOST_LOST) if draft.silent(replica) else STEPS[order.act](draft, order, replica)
        if refused is not None:
            return refused
    return None


def _breaks_two_hosts(draft: Draft, copies: list[Replica]) -> bool:
    """All go: the rule would let some go and keep the last; an order is obeyed whole or not at all."""
    ready = [r for r in copies if r.phase is Phase.READY]
    return len(ready) > 1 and two_hosts.bound(draft.services.get(ready[0].service))


def _do(draft: Draft, order: Order, decision: Decision, *, last: bool) -> None:
    """`last`: with it the order is fulfilled; one for a whole service ends when no copy is left to tell."""
    numbers: Numbers = {"order_no": order.id}
    number = order.id if last and order.replica is not None else None
    draft.do(
        Decision(
            decision.verb,
            decision.service,
            Reason.OPERATOR,
            decision.replica,
            force=decision.force,
            numbers={**numbers, **decision.numbers},
            order=number,
        )
    )


def _drain(draft: Draft, order: Order, replica: Replica) -> Refusal | None:
    if replica.want is not Want.READY:
        return ALREADY_SO
    if replica.phase is not Phase.READY:
        return Refusal(Code.WRONG_PHASE, {"phase": replica.phase})
    return _drain_ready(draft, order, replica, last=True)


def _drain_ready(draft: Draft, order: Order, replica: Replica, *, last: bool) -> Refusal | None:
    if not two_hosts.may_go(draft, replica):
        return Refusal(Code.TWO_HOSTS)
    numbers: Numbers = {} if replica.in_flight is None else {"in_flight": replica.in_flight}
    decision = Decision(Verb.DRAIN, replica.service, Reason.OPERATOR, replica.id, numbers=numbers)
    _do(draft, order, decision, last=last)
    return None


def _stop(draft: Draft, order: Order, replica: Replica) -> Refusal | None:
    """Drained first, always; with force not longer than the bound of a drain."""
    if replica.phase is Phase.READY:
        return _drain_ready(draft, order, replica, last=False)
    stop = Decision(Verb.STOP, replica.service, Reason.OPERATOR, replica.id)
    if replica.phase is not Phase.DRAINING:
        # A load may be called off at any moment; a sleeper waits for whoever moves on its card.
        if replica.phase is not Phase.ASLEEP or not _others_move(draft, replica):
            _do(draft, order, stop, last=True)
        return None
    lasted_s = draft.now - replica.want_since
    if replica.want is Want.DRAINED and replica.quiet and not _others_move(draft, replica):
        _do(draft, order, stop, last=True)
    elif order.force and lasted_s >= drain_bound_s(draft.rules_of(replica), draft.services.get(replica.service)):
        forced = Decision(
            stop.verb, stop.service, stop.reason, stop.replica, force=True, numbers={"lasted_s": lasted_s}
        )
        _do(draft, order, forced, last=True)
    return None


def _others_move(draft: Draft, replica: Replica) -> bool:
    return any(draft.busy(card, but=replica.id) for card in replica.cards)


def _keep(draft: Draft, order: Order, replica: Replica) -> Refusal | None:
    """Else the next plan would find it as idle as before, and give the same notice. Before a notice it gets none."""
    if replica.phase is not Phase.READY or replica.want is not Want.READY:
        return ALREADY_SO
    if replica.drain_at is None and (replica.left_alone_until or 0.0) > draft.now:
        return ALREADY_SO
    numbers: Numbers = {"left_alone_until": draft.now + draft.rules_of(replica).left_alone_s}
    decision = Decision(Verb.WAKE, replica.service, Reason.OPERATOR, replica.id, numbers=numbers)
    _do(draft, order, decision, last=True)
    return None


def _wake(draft: Draft, order: Order, replica: Replica) -> Refusal | None:
    wake = Decision(Verb.WAKE, replica.service, Reason.OPERATOR, replica.id)
    if replica.phase is Phase.DRAINING and replica.want is Want.ASLEEP:
        return None  # falling asleep: it can be woken when it is
    if replica.want is Want.READY and replica.drain_at is None:
        return ALREADY_SO
    if not legal(wake, replica):
        return Refusal(Code.WRONG_PHASE, {"phase": replica.phase})
    if replica.phase is Phase.ASLEEP and (refused := _no_waking_here(draft, replica)) is not None:
        return None if refused.passing else refused
    _do(draft, order, wake, last=True)
    return None


def _no_waking_here(draft: Draft, sleeper: Replica) -> Refusal | None:
    """Of several cards the first that says no for good, else the first that says not yet."""
    refusals = [_no_waking_on(draft, sleeper, card) for card in sleeper.cards]
    found = [refusal for refusal in refusals if refusal is not None]
    return min(found, key=lambda refusal: refusal.passing, default=None)


def _no_waking_on(draft: Draft, sleeper: Replica, card_id: str) -> Refusal | None:
    card, service = draft.world.cards.get(card_id), draft.services[sleeper.service]
    if card is None or not card.healthy:
        return Refusal(Code.CARD_UNHEALTHY, {"card": card_id})
    if card.cordoned:
        return Refusal(Code.CORDONED, {"card": card.id})
    pressed = no_newcomers(card, draft.policy)
    pressed = pressed or no_wake(draft, sleeper, service)
    return pressed or wake_fits(draft.book(card.id), sleeper, service) or waits_for(draft, card)


STEPS: dict[Act, Step] = {Act.DRAIN: _drain, Act.STOP: _stop, Act.KEEP: _keep, Act.WAKE: _wake}
