"""Repack, move by move: each approved move is looked at again on the live world, then done make-before-break.

A copy starts on the new cards, and when it is ready the old one is drained; it never cuts a call. One move at a time
in a pool, in the window, while nothing else is pending there. Nothing is remembered between plans: the row of a move
says which copy was started for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler import two_hosts
from scheduler.decision import Code, Decision, Numbers, Reason, Refusal, Verb
from scheduler.draft import Draft, moving
from scheduler.memory import start_grant
from scheduler.move import Move
from scheduler.placement import verdicts
from scheduler.policy import Policy
from scheduler.pools import ELASTIC
from scheduler.turns import waits_for
from scheduler.wishes import waited_for
from scheduler.world import Card, Phase, Replica, Service, Want

ALREADY_SO = Refusal(Code.ALREADY_SO)


def moves_on(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: the next step of each move that has begun."""
    for move in draft.world.moves:
        if move.copy is not None:
            _go_on(draft, move, draft.replicas.get(move.copy))


def moves_begin(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: in the window the first open move of each proposal begins, when nothing is pending in its pool."""
    seen: set[int] = set()
    for move in sorted(draft.world.moves, key=lambda m: (m.proposal, m.number)):
        first = move.proposal not in seen
        seen.add(move.proposal)
        rules = policy.of_pool(_pool(draft, move))
        if first and move.copy is None and in_window(rules, draft.world.site_minute) and not pending(draft, move):
            _begin(draft, move)


def in_window(policy: Policy, minute: int | None) -> bool:
    """Is it the time of day for moves? `minute` of the day in site time; unknown is no."""
    if minute is None:
        return False
    begins, ends = policy.repack_from_min, policy.repack_until_min
    return begins <= minute < ends if begins <= ends else minute >= begins or minute < ends


def _begin(draft: Draft, move: Move) -> None:
    grant = admits(draft, move.replica, move.cards)
    if isinstance(grant, Refusal):
        _answer(draft, move, Verb.START, grant)
    elif all(waits_for(draft, draft.world.cards[card]) is None for card in move.cards):
        numbers: Numbers = {"move": move.number, "from": ",".join(draft.replicas[move.replica].cards)}
        draft.do(
            Decision(
                Verb.START,
                move.service,
                Reason.REPACK,
                cards=move.cards,
                kv_granted_mib=grant,
                numbers=numbers,
                move=move.id,
            )
        )


def _go_on(draft: Draft, move: Move, copy: Replica | None) -> None:
    """The copy was started: when it is ready the old one goes, when it failed it goes itself."""
    if copy is None or copy.want is not Want.READY:
        _answer(draft, move, Verb.START, Refusal(Code.LOAD_FAILED, {"fault": copy.fault if copy else "gone"}))
    elif copy.phase is Phase.FAILED:
        draft.do(Decision(Verb.STOP, copy.service, Reason.REPACK, copy.id, numbers={"fault": copy.fault}))
        _answer(draft, move, Verb.START, Refusal(Code.LOAD_FAILED, {"fault": copy.fault, "card": copy.cards[0]}))
    elif copy.phase is Phase.READY:
        _let_go(draft, move, draft.replicas.get(move.replica))


def _let_go(draft: Draft, move: Move, old: Replica | None) -> None:
    """Drained without haste; one that cannot end its calls in time is ready again, and the move has failed."""
    if old is None or old.phase in (Phase.STOPPED, Phase.ASLEEP) or old.want is Want.STOPPED:
        _answer(draft, move, Verb.DRAIN, ALREADY_SO)
    elif old.left_alone_until is not None and old.left_alone_until > draft.now:
        _answer(draft, move, Verb.DRAIN, Refusal(Code.STAYS, {"replica": old.id}))
    elif old.phase is Phase.READY and not draft.silent(old) and two_hosts.may_go(draft, old):
        numbers: Numbers = {"move": move.number, "to": ",".join(move.cards)}
        draft.do(Decision(Verb.DRAIN, old.service, Reason.REPACK, old.id, numbers=numbers, move=move.id))


def _answer(draft: Draft, move: Move, verb: Verb, refusal: Refusal) -> None:
    """Ends the move: done, or why not."""
    draft.decisions.append(
        Decision(verb, move.service, Reason.REPACK, move.replica, cards=move.cards, refusal=refusal, move=move.id)
    )


def pending(draft: Draft, move: Move) -> bool:
    """Does anybody wait, or is anything on its way, that a move would be in the way of?"""
    if any(waited_for(service, draft.now) for service in draft.services.values()):
        return True
    pool = _pool(draft, move)
    there = (card.id for card in draft.world.cards.values() if card.pool == pool)
    return any(moving(r) or r.phase is Phase.DRAINING for card in there for r in draft.on_card(card))


def _pool(draft: Draft, move: Move) -> str:
    card = draft.world.cards.get(move.cards[0]) if move.cards else None
    return card.pool if card is not None else ""


def admits(draft: Draft, replica: int, cards: Iterable[str]) -> int | Refusal:
    """KV MiB on each of these cards for a copy that takes the replica's place, or which rule the move would break.

    Whose turn it is to load is not asked. The copy gets no less KV than the old one has.
    """
    old, targets = draft.replicas.get(replica), [draft.world.cards.get(card) for card in cards]
    known = [card for card in targets if card is not None]
    if old is None or (service := draft.services.get(old.service)) is None:
        return Refusal(Code.WRONG_PHASE, {"phase": "gone"})
    if (stays := _stays(draft, old, service)) is not None:
        return stays
    if len(known) != len(targets) or len(known) != len(old.cards) or len({card.host for card in known}) != 1:
        return Refusal(Code.NO_CAPACITY, {"cards": len(known)})
    if not {draft.pool(card.id).name for card in known} <= _pools_for(draft, old):
        return Refusal(Code.WRONG_POOL, {"card": known[0].id, "pool": known[0].pool})
    if not two_hosts.may_move(draft, old, draft.world.hosts.get(known[0].host)):
        return Refusal(Code.TWO_HOSTS, {"card": known[0].id, "host": known[0].host})
    return _grant(draft, old, service, known)


def _pools_for(draft: Draft, old: Replica) -> set[str]:
    """Its own pool; what was lent may go back to any pool that takes it, but not from one loan to the next."""
    own = {draft.pool(card).name for card in old.cards if card in draft.world.cards}
    if any(draft.world.pools[name].purpose == ELASTIC for name in own if name in draft.world.pools):
        return {card.pool for card in draft.world.cards.values() if draft.pool(card.id).purpose != ELASTIC}
    return own


def _stays(draft: Draft, old: Replica, service: Service) -> Refusal | None:
    """Who is not moved for our convenience."""
    if old.external:
        return Refusal(Code.IMPORTED)
    if old.phase is not Phase.READY or old.want is not Want.READY or old.drain_at is not None:
        return Refusal(Code.WRONG_PHASE, {"phase": old.phase})
    if draft.silent(old):
        return Refusal(Code.HOST_LOST, {"replica": old.id})
    whitelisted = service.whitelisted_until is not None and service.whitelisted_until > draft.now
    if whitelisted or (old.left_alone_until is not None and old.left_alone_until > draft.now):
        return Refusal(Code.STAYS, {"replica": old.id})
    return None


def _grant(draft: Draft, old: Replica, service: Service, cards: list[Card]) -> int | Refusal:
    answers = verdicts(draft, service, cards)
    for answer in answers:
        if answer.offer is None:
            return answer.refusal or Refusal(Code.NO_CAPACITY)
    grant = min(answer.offer.kv_granted_mib for answer in answers if answer.offer is not None)
    if grant < old.kv_granted_mib:
        return Refusal(Code.SHORT_OF_MEMORY, {"card": cards[0].id, "short_mib": old.kv_granted_mib - grant})
    for card in cards:
        if isinstance(refused := start_grant(draft.book(card.id), service, grant), Refusal):
            return refused
    return grant
