"""Room for a waiting call: who goes for it, when it will be there, or why there will be none.

Nothing is remembered between plans: each tick looks at who is leaving anyway, adds as few as are needed, and gives back
what is not needed any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from operator import itemgetter

from scheduler.decision import Code, Decision, Numbers, Reason, Refusal, Verb
from scheduler.draft import Draft
from scheduler.estimate import drain_bound_s
from scheduler.hold import hold_cap_s
from scheduler.leaving import leave_s
from scheduler.memory import Book, after_leaving, start_grant
from scheduler.potential import FREE, Parts, falls_asleep, parts_of, potential_of, potentials
from scheduler.sums import Start, Sums, Wake, start_of, wake_of
from scheduler.turns import waits_for
from scheduler.victims import Kind, Victim, used, victims
from scheduler.ways import Ask, Room, Rooms
from scheduler.where import Where, left, now
from scheduler.world import Card, Phase, Replica, Service, Want


def make_room(draft: Draft, ask: Ask, where: Where, *, may_take: bool) -> Refusal | None:
    """Makes room in the cheapest place, and says when it is there, or when it could be; None: there will be none.

    Never grants: room takes time, next ticks use it.
    `may_take`: a caller waits, so others may have to go.
    """
    rooms = _cheapest(draft, ask, where, may_take)
    if rooms is not None:
        return _commit(draft, ask, rooms)
    rooms = _soonest(draft, ask, where) if may_take else None
    return None if rooms is None else _later(draft, ask, rooms)


def _takes(draft: Draft, ask: Ask) -> Start | Wake:
    """The numbers of the ask, the same on every card."""
    if ask.sleeper is not None:
        return wake_of(ask.sleeper, ask.service, draft.policy)
    return start_of(ask.service, draft.policy)


def _cheapest(draft: Draft, ask: Ask, where: Where, may_take: bool) -> Rooms | None:
    """In the order of the least they could cost: what cannot be cheaper than the best is not tried."""
    best: Rooms | None = None
    takes, known = _takes(draft, ask), potentials(draft)
    least_mib = takes.least_mib
    if ask.need > 1:  # several cards together are not bounded: always tried
        hopeful = [(FREE, cards) for cards in where.teams(ask.need)]
    elif may_take:
        hopeful = [(known[c.id].least_cost(least_mib), [c]) for c in where.having(draft, now, least_mib)]
    else:
        hopeful = [(FREE, [card]) for card in where.having(draft, left, least_mib)]
    for least, cards in sorted(hopeful, key=itemgetter(0)):
        if best is not None and least > best.cost[: len(least)]:
            break
        rooms = _rooms(draft, ask, cards, takes, may_take, resting=False)
        if rooms is not None and (best is None or rooms.cost < best.cost):
            best = rooms
    return best


def _soonest(draft: Draft, ask: Ask, where: Where) -> Rooms | None:
    """The same with those who must stay a while yet, by when they may go."""
    best: Rooms | None = None
    takes, soonest_s = _takes(draft, ask), inf
    for least_s, cards in _by_rest(draft, ask, where, takes.least_mib):
        if least_s > soonest_s:
            break
        rooms = _rooms(draft, ask, cards, takes, may_take=True, resting=True)
        if rooms is None or (rest_s := rooms.rest_s) > soonest_s:
            continue
        if best is None or rest_s < soonest_s or rooms.cost < best.cost:
            best, soonest_s = rooms, rest_s
    return best


def _by_rest(draft: Draft, ask: Ask, where: Where, least_mib: int) -> Iterator[tuple[float, list[Card]]]:
    """(seconds before which room cannot be there, cards) of every place that could have it, the soonest first."""
    if ask.need > 1:
        yield from ((0.0, cards) for cards in where.teams(ask.need))
        return
    yield from ((0.0, [card]) for card in where.having(draft, now, least_mib))
    known = potentials(draft)
    yield from ((known[c.id].least_rest_s(least_mib, draft.now), [c]) for c in where.later(draft, least_mib))


def _rooms(
    draft: Draft, ask: Ask, cards: list[Card], takes: Start | Wake, may_take: bool, *, resting: bool
) -> Rooms | None:
    """As many cheapest rooms as are needed, all or nothing. Cards that fit already cost nothing."""
    if ask.need == 1 and len(cards) == 1:  # nearly always
        alone = _room(draft, ask, cards[0], takes, may_take, resting=resting)
        return None if alone is None else Rooms((alone,))
    found = []
    for card in cards:
        fits = ask.need > 1 and ask.fits(draft.book(card.id))
        there = Room(card) if fits else _room(draft, ask, card, takes, may_take, resting=resting)
        if there is not None:
            found.append(there)
    if len(found) < ask.need:
        return None
    return Rooms(tuple(sorted(found, key=lambda r: r.cost)[: ask.need]))


def give_back(draft: Draft) -> None:
    """Who was asked to go for room that no promise needs any more is ready again, the most recently used first."""
    unneeded = [r for r in draft.replicas.values() if _for_room(r) and r.id not in draft.relied_on]
    for replica in sorted(unneeded, key=lambda r: (-used(draft, r), r.id)):
        if not draft.silent(replica):
            draft.do(Decision(Verb.WAKE, replica.service, Reason.UNNEEDED, replica.id))


def _for_room(replica: Replica) -> bool:
    if replica.reason != Reason.ROOM:
        return False
    noticed = replica.phase is Phase.READY and replica.drain_at is not None
    return noticed or (replica.phase is Phase.DRAINING and replica.want is Want.DRAINED)


def _then(draft: Draft, room: Room) -> Book:
    """The card's ledger once these are gone: asleep where they may sleep, or all stopped."""
    gone = {r.id: r for r in (*room.leaving, *(v.replica for v in room.victims))}
    book = draft.book(room.card.id)
    if not gone and not book.releasing_mib:
        return book
    asleep = {i for i, r in gone.items() if room.sleep and falls_asleep(draft, r)}
    return after_leaving(book, gone.keys() - asleep, asleep)


def _room(draft: Draft, ask: Ask, on: Card, takes: Start | Wake, may_take: bool, *, resting: bool) -> Room | None:
    """The way to room on one card with as few as are needed; None when there is none."""
    there = potential_of(draft, on.id)
    leaving, lacks_mib = there.leaving, takes.least_mib - there.left_mib
    able = victims(draft, on.id, ask.service, lacks_mib) if may_take else []
    if lacks_mib > 0 and not able:
        return None
    parts = parts_of(draft, on.id)
    if parts is None:
        return None
    gone = {r.id for r in leaving}
    others = [v for v in able if (resting or v.rest_s <= 0) and v.replica.id not in gone]
    if ask.gentle:
        others = [v for v in others if v.kind is not Kind.IN_USE]
    anyway = bool(leaving) or parts.releasing
    for sleep in (True,) if parts.asleep is parts.stopped else (True, False):
        part = parts.asleep if sleep else parts.stopped
        sums = parts.sums.without(part[r.id] for r in leaving)
        if anyway and takes.fits(sums):
            return _fewest(draft, Room(on, leaving, (), sleep), takes, parts)
        for count, victim in enumerate(others, 1):
            sums = sums.without((part[victim.replica.id],))
            if takes.fits(sums):
                return _fewest(draft, Room(on, leaving, tuple(others[:count]), sleep), takes, parts)
    return None


def _fewest(draft: Draft, room: Room, takes: Start | Wake, parts: Parts) -> Room:
    """Without those that prove unnecessary: the last to go, and the most recently used, first."""
    for victim in sorted(room.victims, key=lambda v: v.order, reverse=True)[1:]:  # without the last it did not fit
        fewer = replace(room, victims=tuple(v for v in room.victims if v is not victim))
        if takes.fits(_sums(fewer, parts)):
            room = fewer
    for replica in sorted(filter(_for_room, room.leaving), key=lambda r: (-used(draft, r), r.id)):
        fewer = replace(room, leaving=tuple(r for r in room.leaving if r is not replica))
        if takes.fits(_sums(fewer, parts)):
            room = fewer
    return room


def _sums(room: Room, parts: Parts) -> Sums:
    part = parts.asleep if room.sleep else parts.stopped
    return parts.sums.without([part[r.id] for r in room.leaving] + [part[v.replica.id] for v in room.victims])


def _commit(draft: Draft, ask: Ask, rooms: Rooms) -> Refusal:
    """Sends who must go, keeps the room for the caller, and says how long it takes."""
    wait_s, low_s = wait_for(draft, rooms)
    books = [_then(draft, room) for room in rooms.each]
    for room in rooms.each:
        for victim in room.victims:
            draft.do(send(draft, ask.service, room.card.id, victim))
    draft.relied_on |= {r.id for r in rooms.leaving} | {v.replica.id for v in rooms.victims}
    _promise(draft, ask, rooms, books)
    return _not_now(rooms, wait_s, low_s)


def _promise(draft: Draft, ask: Ask, rooms: Rooms, books: list[Book]) -> None:
    """Keeps the room that the books show for the asker."""
    if ask.sleeper is not None:
        draft.promise([ask.sleeper])
        return
    grants = [start_grant(book, ask.service) for book in books]
    granted = [grant for grant in grants if not isinstance(grant, Refusal)]
    if len(granted) == len(grants):
        cards = tuple(sorted(room.card.id for room in rooms.each))
        draft.promise([draft.phantom(ask.service.name, cards, min(granted))])


def _not_now(rooms: Rooms, wait_s: float, low_s: float) -> Refusal:
    names = [r.service for r in rooms.leaving] + [v.replica.service for v in rooms.victims]
    numbers: Numbers = {
        "card": rooms.first.id,
        "host": rooms.first.host,
        "wait_s": wait_s,
        "wait_low_s": low_s,
        "leaving": ", ".join(names),
    }
    return Refusal(Code.NOT_NOW, numbers)


def send(draft: Draft, asks: Service, card: str, victim: Victim) -> Decision:
    """Sleepers and unwanted loads stop; idle ones get a short notice; those in use stop taking new calls."""
    numbers: Numbers = {"room_for": asks.name, "card": card, "priority": victim.priority}
    if victim.owes_mib:
        numbers["borrowed_mib"] = victim.owes_mib
    decision = Decision(Verb.DRAIN, victim.replica.service, Reason.ROOM, victim.replica.id, numbers=numbers)
    match victim.kind:
        case Kind.SLEEPER | Kind.UNWANTED_LOAD:
            return replace(decision, verb=Verb.STOP)
        case Kind.IDLE:
            return replace(decision, not_before=draft.now + draft.rules_of(victim.replica).grace_room_s)
        case Kind.IN_USE:
            return decision


def wait_for(draft: Draft, room: Rooms) -> tuple[float, float]:
    """(expected, least) seconds until the room is there and the card free to load."""
    waits = [leave_s(draft, r) for r in room.leaving]
    for victim in room.victims:
        rules = draft.rules_of(victim.replica)
        notice = rules.grace_room_s if victim.kind is Kind.IDLE else 0.0
        drain = drain_bound_s(rules, draft.services.get(victim.replica.service))
        in_use = drain if victim.kind is Kind.IN_USE else 0.0
        least = notice + draft.policy.stop_s
        waits.append((least + in_use, least))
    for card in (one.card for one in room.each):
        if card.releasing_mib:
            waits.append((draft.policy.stop_s, 0.0))
        if (turn := waits_for(draft, card)) is not None:
            waits.append((float(turn.numbers["wait_s"]), float(turn.numbers["wait_low_s"])))
    return max((w for w, _ in waits), default=0.0), max((w for _, w in waits), default=0.0)


def _later(draft: Draft, ask: Ask, room: Rooms) -> Refusal:
    """Someone could go, but not yet: who can wait that long waits, any other is told at once."""
    demand, policy = ask.service.demand, draft.policy.of_service(ask.service.name)
    patience = policy.hold_stream_s if demand.held_streams else hold_cap_s(policy, ask.service)
    wait_s, low_s = wait_for(draft, room)
    if demand.held and room.rest_s <= patience:
        waits = _not_now(room, room.rest_s + wait_s, room.rest_s + low_s)
        return Refusal(waits.code, {**waits.numbers, "rest_s": room.rest_s})
    numbers: Numbers = {
        "card": room.first.id,
        "retry_after_s": room.rest_s,
        "service": max(room.victims, key=lambda v: v.rest_s).replica.service,
    }
    return Refusal(Code.ANTI_SWAP, numbers)
