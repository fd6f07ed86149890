"""Idle moments of a host: what was called yesterday at this hour, or is on the pool's list, is loaded into free room.

One service on one host at a time, never in anybody's way: nobody goes for it, part of each card stays free for callers,
and a caller who needs the room has it at once (`victims.loaded_in_vain`).
"""

from __future__ import annotations

from scheduler import forecast
from scheduler.decision import Decision, Reason, Verb
from scheduler.draft import Draft, moving
from scheduler.forecast import Expected
from scheduler.memory import HUNDRED, allocatable_mib, least_start_mib, room_mib
from scheduler.placement import Placement, Verdict, choose, verdicts
from scheduler.policy import Policy
from scheduler.pools import ELASTIC, RESIDENT
from scheduler.preload import in_turn, numbers
from scheduler.throttle import throttled
from scheduler.world import Card, Host, Service

NOT_FOR_GUESSES = frozenset({RESIDENT, ELASTIC})


def prefetch(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: at most one start. Hosts, and the services for each, take turns by the second."""
    if not (known := _remembered(draft)):
        return
    hosts = [host for _, host in sorted(draft.world.hosts.items()) if _quiet(draft, host)]
    if not hosts:
        return
    host = hosts[in_turn(now, len(hosts))]
    rooms = {card.id: room for card in _open_cards(draft, host) if (room := _room_mib(draft, card)) > 0}
    if not rooms:
        return
    found = _candidates(draft, known, rooms)
    for turn in range(min(policy.prefetch_tries, len(found))):
        service, expected = found[(in_turn(now / len(hosts), len(found)) + turn) % len(found)]
        if _load(draft, service, expected, rooms):
            return


def _quiet(draft: Draft, host: Host) -> bool:
    """Is it heard, and has nothing been loaded, put away or evicted there for a while?"""
    oldest = draft.now - draft.policy.prefetch_quiet_s
    if host.cordoned or host.seen_at is None or draft.now - host.seen_at > draft.policy.silent_s:
        return False
    for card in draft.cards_of(host.name):
        if draft.world.cards[card].releasing_mib or draft.promised[card]:
            return False
        for replica in draft.on_card(card):
            if moving(replica) or max(replica.since, replica.want_since, replica.loaded_at or 0.0) > oldest:
                return False
    here = set(draft.cards_of(host.name))
    return not any(e.at > oldest and e.card in here for e in draft.world.evictions)


def _open_cards(draft: Draft, host: Host) -> list[Card]:
    """Cards of pools in which nobody was refused of late, nor is now, and on which a load disturbs nobody.

    Not those of resident pools, where what is loaded stays, nor of elastic ones, which are kept empty.
    """
    policy, now = draft.policy, draft.now
    wanting = [draft.services[d.service] for d in draft.decisions if d.refusal and d.service in draft.services]
    found = []
    for card in (draft.world.cards[id] for id in draft.cards_of(host.name)):
        refused_at = draft.pool(card.id).refused_at
        scarce = refused_at is not None and now - refused_at < policy.refused_window_s
        if draft.pool(card.id).purpose in NOT_FOR_GUESSES:
            continue
        wanted = any(not s.pools or card.pool in s.pools for s in wanting)
        if not scarce and not wanted and throttled(draft, card) is None:
            found.append(card)
    return found


def _room_mib(draft: Draft, card: Card) -> int:
    """What may be filled: without the part that is kept for callers. 0 where it is not known."""
    book = draft.book(card.id)
    room = room_mib(book)
    allocatable = allocatable_mib(book) if room is not None else None
    if room is None or allocatable is None:
        return 0
    return room - allocatable * (HUNDRED - draft.policy.prefetch_card_pct) // HUNDRED


def _remembered(draft: Draft) -> list[tuple[Service, Expected]]:
    """By name: called yesterday at this hour or on a pool's list, without a copy, and not let go within this hour."""
    listed = frozenset[str]().union(*(pool.prefetch for pool in draft.world.pools.values()))
    now = draft.now
    recalled = {name for name, known in draft.world.forecasts.items() if forecast.recalled(known, now)}
    found = []
    for name in sorted(recalled | listed):
        service, known = draft.services.get(name), draft.world.forecasts.get(name)
        if service is None or name in draft.tightened or (known is not None and not known.automatic):
            continue
        expected = Expected(draft.now, 0.0, forecast.RECALLED if name in recalled else forecast.LISTED)
        if not draft.of_service(name) and not forecast.let_go(service, expected, forecast.HOUR_S):
            found.append((service, expected))
    return found


def _candidates(
    draft: Draft, known: list[tuple[Service, Expected]], rooms: dict[str, int]
) -> list[tuple[Service, Expected]]:
    """Of those the ones that could fit into the largest of these rooms, by card, and are listed there or recalled."""
    listed = frozenset[str]().union(*(draft.pool(card).prefetch for card in rooms))
    limit, most = draft.policy.oversell_mixed_pct, max(rooms.values())
    return [
        (service, expected)
        for service, expected in known
        if (expected.rule == forecast.RECALLED or service.name in listed) and least_start_mib(service, limit) <= most
    ]


def _load(draft: Draft, service: Service, expected: Expected, rooms: dict[str, int]) -> bool:
    """Starts it on the best of these cards; False where it may not, or would take more than is free for it."""
    if service.failures:
        return False
    cards = [draft.world.cards[card] for card in rooms]
    answers = [v for v in verdicts(draft, service, cards) if _has_room(v, service, rooms)]
    chosen = choose(draft, service, answers)
    if not isinstance(chosen, Placement):
        return False
    told = {**chosen.numbers, **numbers(expected)}
    del told["probability_pct"]  # nothing is reckoned: it was so yesterday
    return draft.do(
        Decision(
            Verb.START,
            service.name,
            Reason.FORECAST,
            cards=chosen.cards,
            kv_granted_mib=chosen.kv_granted_mib,
            numbers=told,
        )
    )


def _has_room(answer: Verdict, service: Service, rooms: dict[str, int]) -> bool:
    """Does it fit now, and into the part that may be filled?"""
    if answer.offer is None or answer.refusal is not None:
        return False
    return service.claim.fixed_mib + answer.offer.kv_granted_mib <= rooms[answer.card.id]
