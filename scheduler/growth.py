"""Wishes to be ready: each is granted (wake, else start), or waits, or is refused with a typed reason."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from scheduler.decision import FOR_WANT_OF_ROOM, Code, Decision, Numbers, Reason, Refusal, Verb
from scheduler.draft import Draft
from scheduler.estimate import load_estimate, wake_estimate
from scheduler.faults import down, retry_in_s
from scheduler.hosts import host_of, leaving, silence_s
from scheduler.isolation import not_its_hours
from scheduler.lifecycle import legal
from scheduler.memory import short_of_cap, wake_fits
from scheduler.placement import TURN, Openings, Placement, Verdict, choose, nearest, nearest_of, openings, verdicts
from scheduler.policy import Policy
from scheduler.pressed import no_newcomers
from scheduler.quota import by_quota, no_wake
from scheduler.quota_room import make_own_room
from scheduler.room import give_back, make_room
from scheduler.throttle import AHEAD, throttled
from scheduler.turns import rest_s, waits_for
from scheduler.ways import Ask
from scheduler.where import AnyOpen, Only
from scheduler.wishes import Wish, waited_for, wishes
from scheduler.world import Card, Phase, Profile, Replica, Service, Want


def growth(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: serves all wishes in their order, then gives back what room was made in vain."""
    unserved, served = wishes(draft), set[str]()
    while unserved:
        before = set(draft.touched)
        for wish in unserved:
            serve(draft, wish)
            served.add(wish.service.name)
        # Once more round: whose copy had to go for a caller of higher priority wishes now, too.
        moved = {draft.replicas[i].service for i in draft.touched - before} - served
        unserved = wishes(draft, [draft.services[name] for name in moved if name in draft.services])
    told = {d.service for d in draft.decisions if d.refuses_wish is not None}
    waited = [s for s in draft.services.values() if waited_for(s, now) and s.name not in told]
    for service in sorted(waited, key=attrgetter("name")):
        _say_what_callers_wait_for(draft, service)
    give_back(draft)


def all_refused(draft: Draft, policy: Policy, now: float) -> None:
    """Stage of a frozen world: nothing moves, and who wishes is told so."""
    for wish in wishes(draft):
        draft.refuse(wish.service.name, wish.reason, Refusal(Code.FROZEN))


def serve(draft: Draft, wish: Wish) -> None:
    """One copy after the other until the wish is met or one is refused."""
    service = wish.service
    for _ in range(wish.count - len(draft.in_hand(service.name))):
        have = len(draft.in_hand(service.name))
        if have >= service.max_replicas:
            numbers = {"max_replicas": have, **wish.numbers}
            draft.refuse(service.name, wish.reason, Refusal(Code.MAX_REPLICAS, numbers), told=wish.numbers)
            return
        refused = down(draft, service) or _closed(draft, wish)
        verb = Verb.START
        if refused is None:
            verb, refused = _grant(draft, wish)
        if refused is not None:
            draft.refuse(service.name, wish.reason, refused, verb, wish.numbers)
            return


def _closed(draft: Draft, wish: Wish) -> Refusal | None:
    """Nothing is loaded for batch calls that no gateway would let in; an operator knows what he does."""
    if wish.reason is Reason.OPERATOR:
        return None
    return not_its_hours(draft.world, draft.policy, wish.service, draft.now)


def _grant(draft: Draft, wish: Wish) -> tuple[Verb, Refusal | None]:
    """One more copy: taken back from a drain, else woken, else started. None: granted."""
    copies = [r for r in draft.of_service(wish.service.name) if _serves(draft, r)]
    if any(_take_back(draft, wish, r) for r in copies):
        return Verb.WAKE, None
    refused = _wake(draft, wish, copies)
    if refused is None or refused.passing:
        return Verb.WAKE, refused
    return Verb.START, _start(draft, wish)


def _serves(draft: Draft, replica: Replica) -> bool:
    """May it be told to serve again?"""
    return not replica.external and not draft.silent(replica) and not leaving(draft.world, replica)


def _take_back(draft: Draft, wish: Wish, replica: Replica) -> bool:
    """A copy that drains for idleness is simply ready again; what makes room for another is not asked back."""
    back = Decision(Verb.WAKE, replica.service, wish.reason, replica.id, numbers=wish.numbers)
    if replica.phase is not Phase.DRAINING or replica.reason == Reason.ROOM or not legal(back, replica):
        return False
    return draft.do(back)


def _wake(draft: Draft, wish: Wish, copies: list[Replica]) -> Refusal | None:
    """None when a sleeper was woken; passing when one will be; NO_CAPACITY when there is none that can."""
    refused: Refusal | None = Refusal(Code.NO_CAPACITY)
    falling = [r for r in copies if r.phase is Phase.DRAINING and r.want is Want.ASLEEP]
    sleepers = [r for r in copies if r.phase is Phase.ASLEEP and r.want is Want.ASLEEP]
    for sleeper in sleepers:
        cards = draft.cards_under(sleeper)
        if cards is None or not all(_may_wake_on(draft, sleeper, card) for card in cards):
            continue
        refused = _wake_here(draft, wish, sleeper, cards)
        if refused is None or refused.passing:
            return refused
    return _falling(draft, falling[0]) if falling else refused


def _may_wake_on(draft: Draft, sleeper: Replica, card: Card) -> bool:
    """The card is in order, not under pressure, and the wake was not promised before."""
    usable = card.healthy and not card.cordoned and sleeper.id not in draft.promised[card.id]
    return usable and no_newcomers(card, draft.policy) is None


def _wake_here(draft: Draft, wish: Wish, sleeper: Replica, cards: list[Card]) -> Refusal | None:
    if (beyond := no_wake(draft, sleeper, wish.service)) is not None:
        return beyond
    books = [draft.book(card.id) for card in cards]
    refused = next((why for book in books if (why := wake_fits(book, sleeper, wish.service)) is not None), None)
    if refused is not None:
        ask = Ask(wish.service, sleeper, gentle=wish.scales)
        return make_room(draft, ask, Only([cards]), may_take=wish.takes) or _no_room(wish, refused)
    turns = [turn for card in cards if (turn := waits_for(draft, card)) is not None]
    if not turns:
        numbers = {"card": cards[0].id, **wish.numbers}
        draft.do(Decision(Verb.WAKE, wish.service.name, wish.reason, sleeper.id, numbers=numbers))
        return None
    draft.promise([sleeper])
    for card in cards:
        draft.queue(card.id, wake_estimate(draft.world, draft.policy, wish.service, card.host).seconds)
    return max(turns, key=lambda turn: float(turn.numbers["wait_s"]))


def _falling(draft: Draft, replica: Replica) -> Refusal:
    """It is falling asleep: it can be woken when it is."""
    wait_s, low_s = rest_s(draft, replica)
    card = draft.world.cards.get(replica.cards[0])
    numbers: Numbers = {
        "card": replica.cards[0],
        "host": card.host if card else "",
        "wait_s": wait_s,
        "wait_low_s": low_s,
    }
    return Refusal(Code.NOT_NOW, numbers)


def _start(draft: Draft, wish: Wish) -> Refusal | None:
    service = wish.service
    there = openings(draft, service, now=wish.takes and service.cards_per_replica == 1)
    if not wish.waiting and wish.reason in AHEAD:
        there = replace(there, fitting=[_gives_way(draft, answer) for answer in there.fitting])
    chosen = choose(draft, service, there.fitting, patient=not wish.takes)
    if chosen is None:
        return _start_later(draft, wish, there)
    if isinstance(chosen, Refusal):
        _queue(draft, service, chosen)
        return chosen
    draft.do(
        Decision(
            Verb.START,
            service.name,
            wish.reason,
            cards=chosen.cards,
            kv_granted_mib=chosen.kv_granted_mib,
            numbers={**chosen.numbers, **_regrants(draft, service, chosen), **wish.numbers},
        )
    )
    return None


def _start_later(draft: Draft, wish: Wish, there: Openings) -> Refusal:
    """Nothing fits now: makes room on the cards that are only short of it, or says why not."""
    service, throttled = wish.service, {answer.card.id for answer in there.fitting if answer.offer is None}
    if throttled:
        refused = nearest_of(draft, service, [_gives_way(draft, answer) for answer in verdicts(draft, service)])
    else:
        refused = nearest(draft, service, there.sieve)
    if wish.takes and by_quota(refused):
        return make_own_room(draft, wish, refused)
    ask, where = Ask(service, gentle=wish.scales), AnyOpen(there.sieve, frozenset(throttled))
    if refused.code not in FOR_WANT_OF_ROOM or not where.some(ask.need):
        return refused
    return make_room(draft, ask, where, may_take=wish.takes) or _no_room(wish, refused)


def _no_room(wish: Wish, refused: Refusal) -> Refusal:
    """For who may take others' room, nobody may go."""
    return Refusal(Code.NO_CAPACITY, refused.numbers) if wish.takes else refused


def _regrants(draft: Draft, service: Service, chosen: Placement) -> Numbers:
    """An online newcomer got clearly less than its cap: which lowfreq neighbours give at their next start."""
    if service.profile is not Profile.ONLINE or not short_of_cap(service, chosen.kv_granted_mib, draft.policy):
        return {}
    seats = draft.book(chosen.cards[0]).seats
    givers = {s.service.name for s in seats if s.service is not None and s.service.profile is Profile.LOWFREQ}
    numbers: Numbers = {"kv_cap_mib": service.claim.kv_cap_mib}
    return numbers | {"regrants": ", ".join(sorted(givers))} if givers else numbers


def _gives_way(draft: Draft, answer: Verdict) -> Verdict:
    """A load that nobody waits for does not begin where it would slow a neighbour, or a load that callers wait for."""
    if answer.offer is None:
        return answer
    refusal = throttled(draft, answer.card)
    if refusal is not None:
        return Verdict(answer.card, TURN, refusal)
    turn = None if answer.refusal is not None else _behind_callers(draft, answer.card)
    return answer if turn is None else answer._replace(refusal=turn)


def _behind_callers(draft: Draft, card: Card) -> Refusal | None:
    """Loads of one host share its storage: what its callers were told would become untrue."""
    for replica in draft.loading_on(card.host):
        service = draft.services.get(replica.service)
        if service is not None and waited_for(service, draft.now):
            wait_s, low_s = rest_s(draft, replica)
            numbers: Numbers = {"card": card.id, "host": card.host, "wait_s": wait_s, "wait_low_s": low_s}
            return Refusal(Code.LOAD_IN_FLIGHT, numbers | {"replica": replica.id, "service": replica.service})
    return None


def _queue(draft: Draft, service: Service, turn: Refusal) -> None:
    """Keeps the place it will load into when its turn comes."""
    cards = tuple(str(turn.numbers.get("on_cards", turn.numbers["card"])).split(","))
    draft.promise([draft.phantom(service.name, cards, int(turn.numbers["kv_granted_mib"]))])
    for card in cards:
        host = draft.world.cards[card].host
        draft.queue(card, load_estimate(draft.world, draft.policy, service, host).seconds)


def _say_what_callers_wait_for(draft: Draft, service: Service) -> None:
    """Callers of a service whose copies are all in hand, yet none serves: a failed one's pause, a silent host."""
    copies = draft.in_hand(service.name)
    if not copies:
        return
    if any(r.phase is not Phase.FAILED and not (r.phase is Phase.READY and draft.silent(r)) for r in copies):
        return
    failed = [r for r in copies if r.phase is Phase.FAILED]
    if failed:
        numbers: Numbers = {"replica": failed[0].id, "fault": failed[0].fault}
        wait_s = min(retry_in_s(draft.policy, r, draft.now) for r in failed)
        code, first = Code.BACK_OFF, failed[0]
    else:
        first = copies[0]
        numbers = {"replica": first.id}
        wait_s = max(0.0, draft.policy.lost_s - silence_s(host_of(draft.world, first), draft.now))
        code = Code.NOT_NOW
    card = draft.world.cards.get(first.cards[0])
    numbers |= {"card": first.cards[0], "host": card.host if card else "", "wait_s": wait_s, "wait_low_s": wait_s}
    draft.refuse(service.name, Reason.HOLD, Refusal(code, numbers))
