"""Where a new replica starts: filter, then score; or the refusal that came nearest to fitting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from scheduler.decision import Code, Numbers, Refusal
from scheduler.draft import Draft
from scheduler.filters import LASTING, awake_limit
from scheduler.groups import teams, too_few, turn_of
from scheduler.memory import Book, start_grant
from scheduler.n_minus_1 import homeless_share
from scheduler.policy import Policy
from scheduler.ranking import ranking
from scheduler.scores import NAMES, Offer, weigh
from scheduler.sieve import Sieve
from scheduler.sums import room_now, start_of, sums_on
from scheduler.turns import free, waits_for
from scheduler.world import Card, Host, Profile, Service, World

#: After the lasting filters: replica limit, memory, turn.
LIMIT, MEMORY, TURN = len(LASTING), len(LASTING) + 1, len(LASTING) + 2


@dataclass(frozen=True, slots=True)
class Placement:
    """Cards (several of one host where the service needs them), KV MiB granted on each, and the scores that decided."""

    cards: tuple[str, ...]
    kv_granted_mib: int
    numbers: Mapping[str, int | float | str]


class Verdict(NamedTuple):
    """One card's answer. `reached` is how far it came; a card that fits but must wait its turn has an offer too."""

    card: Card
    reached: int
    refusal: Refusal | None = None
    offer: Offer | None = None


def verdicts(draft: Draft, service: Service, cards: Iterable[Card] | None = None) -> list[Verdict]:
    """The answer of each of these cards, or of every card by its id: may the service start there now?"""
    sieve, asked = Sieve(draft, service), draft.cards() if cards is None else cards
    return [_verdict(draft, service, card, sieve) for card in asked]


def _verdict(draft: Draft, service: Service, card: Card, sieve: Sieve) -> Verdict:
    host = draft.world.hosts.get(card.host)
    if host is None:
        return Verdict(card, 0, Refusal(Code.HOST_LOST, {"card": card.id, "host": card.host}))
    if (lasting := sieve.refusal(card, host)) is not None:
        return Verdict(card, *lasting)
    return _fit(draft, service, card, host)


def _fit(draft: Draft, service: Service, card: Card, host: Host) -> Verdict:
    """Of a card that nothing lasting speaks against: a refusal for want of room, or an offer, now or in its turn."""
    limit = awake_limit(draft, service, card, host)
    if limit is not None:
        return Verdict(card, LIMIT, limit)
    book = draft.book(card.id)
    grant = start_grant(book, service)
    if isinstance(grant, Refusal):
        return Verdict(card, MEMORY, grant)
    return Verdict(card, TURN, draft.table(_turn_on)[card.id], Offer(card, book, grant))


def _turn_on(draft: Draft, card: str) -> Refusal | None:
    return None if free(draft)[card] else waits_for(draft, draft.world.cards[card])


@dataclass(frozen=True, slots=True)
class Openings:
    """`sieve` lets through what nothing lasting speaks against; `fitting`: answers of those with room, by card id."""

    sieve: Sieve
    fitting: list[Verdict]


def openings(draft: Draft, service: Service, *, now: bool = False) -> Openings:
    """Where the service could start, by the numbers of the cards: asked for each wish of all of them.

    `now`: of those that have the room only such as can load at once, where there are any.
    """
    sieve, start, sums = Sieve(draft, service), start_of(service, draft.policy), sums_on(draft)
    likely = ranking(draft, room_now).at_least(draft, start.least_mib)
    roomy: list[Card] = []
    if now:
        at_once = free(draft)
        roomy = [card for card in likely if at_once[card.id] and start.fits(sums[card.id]) and sieve.lets(card.id)]
    roomy = roomy or [card for card in likely if start.fits(sums[card.id]) and sieve.lets(card.id)]
    books, turns, lowfreq = draft.books(), draft.table(_turn_on), service.profile is Profile.LOWFREQ
    cap, fixed, fitting = start.cap_mib, start.fixed_mib, []
    for card in roomy:  # what `start.grant_mib` says, without asking it for each card of a farm
        name = card.id
        book = books[name]
        grant = _least(book, service) if lowfreq and book.squeezed else min(cap, sums[name].room_mib - fixed)
        fitting.append(Verdict(card, TURN, turns[name], Offer(card, book, grant)))
    return Openings(sieve, fitting)


def _least(book: Book, service: Service) -> int:
    """What a lowfreq one is granted where an online one got less than it may have: it depends on who else is there."""
    grant = start_grant(book, service)
    assert not isinstance(grant, Refusal)
    return grant


def nearest(draft: Draft, service: Service, sieve: Sieve) -> Refusal:
    """Why there is no card that it fits: what the nearest to fitting says. `sieve` as `Openings` has it."""
    card = None if service.cards_per_replica > 1 else _closest(draft, service, sieve)
    if card is None:
        return nearest_of(draft, service, verdicts(draft, service))
    found = _fit(draft, service, card, draft.world.hosts[card.host])
    return replace_numbers(found.refusal, cards=len(draft.cards()))


def _closest(draft: Draft, service: Service, sieve: Sieve) -> Card | None:
    """Of cards that are open to it, yet have no room, the one that lacks least; those with a place free come first."""
    start, sums = start_of(service, draft.policy), sums_on(draft)
    least, found = inf, None
    for card in ranking(draft, room_now).down(draft):
        there = sums[card.id]
        if start.least_mib - there.room_mib > least:
            break  # those that follow lack more
        if there.awake < start.most_awake and sieve.lets(card.id):
            short = max(0, start.short_mib(there))
            if found is None or (short, card.id) < (least, found.id):
                least, found = short, card
    return found or next(iter(sieve.open()), None)


def best(draft: Draft, service: Service, offers: list[Offer]) -> Placement:
    """The best of the cards that fit; ties go to the first id, so that a plan is reproducible."""
    offer, scores = _best(draft, service, offers, weigh(draft, service, offers))
    numbers: Numbers = {"cards_that_fit": len(offers)}
    numbers |= {f"score_{name}": round(value, 3) for name, value in zip((*NAMES, "n1"), scores, strict=True)}
    return Placement((offer.card.id,), offer.kv_granted_mib, numbers)


def _best(
    draft: Draft, service: Service, offers: list[Offer], scores: list[tuple[float, ...]]
) -> tuple[Offer, tuple[float, ...]]:
    """With its scores. N-1 can only lower one: asked from the top, until nobody below can still be best."""
    order = sorted([(-sum(scores[i]), o.card.id, i) for i, o in enumerate(offers)])
    found, least = (offers[order[0][2]], scores[order[0][2]]), (inf, "")
    for cost, card, i in order:
        if least <= (cost, card):
            break
        of = (*scores[i], -draft.policy.score_n1 * homeless_share(draft, service, offers[i]))
        if (mine := (-sum(of), card)) < least:
            found, least = (offers[i], of), mine
    return found


def place(draft: Draft | World, policy: Policy, service: Service, now: float) -> Placement | Refusal:
    """Where the service's next replica starts now, or why nowhere. A World is asked as it stands."""
    if isinstance(draft, World):
        draft = Draft(draft, policy, now)
    there = openings(draft, service)
    return choose(draft, service, there.fitting) or nearest(draft, service, there.sieve)


def choose(
    draft: Draft, service: Service, fitting: list[Verdict], *, patient: bool = False
) -> Placement | Refusal | None:
    """The placement, or the turn that is to be waited for; None where nothing fits.

    A caller takes the best card that can load now; who is `patient` waits for the best card's turn.
    """
    if service.cards_per_replica > 1:
        return _choose_team(draft, service, fitting, patient)
    fitting = [v for v in fitting if v.offer is not None]
    if not patient and any(v.refusal is None for v in fitting):
        fitting = [v for v in fitting if v.refusal is None]
    if not fitting:
        return None
    if not patient and fitting[0].refusal is not None:
        return _turn(fitting)
    placement = best(draft, service, [v.offer for v in fitting if v.offer is not None])
    chosen = next(v for v in fitting if v.card.id == placement.cards[0])
    return placement if chosen.refusal is None else _turn([chosen])


def _choose_team(draft: Draft, service: Service, fitting: list[Verdict], patient: bool) -> Placement | Refusal | None:
    """The same for a copy over several cards: all of them or none."""
    offers = [v.offer for v in fitting if v.offer is not None]
    weighed = zip(offers, weigh(draft, service, offers), strict=True) if offers else ()
    found = teams(draft, service, offers, {offer.card.id: sum(of) for offer, of in weighed})
    if not found:
        return None
    turns = {team.cards: turn_of(draft, team) for team in found}
    if not patient and any(turn is None for turn in turns.values()):
        found = [team for team in found if turns[team.cards] is None]
    team = min(found, key=lambda t: t.order)
    if (turn := turns[team.cards]) is not None:
        return turn
    numbers: Numbers = {"hosts_that_fit": len(found), "cards_taken": len(team.cards), "islands": team.islands}
    return Placement(team.cards, team.kv_granted_mib, numbers | {"score": round(team.score, 3)})


def nearest_of(draft: Draft, service: Service, answers: list[Verdict]) -> Refusal:
    """The same of the answers of all cards, also of those that something lasting speaks against."""
    if service.cards_per_replica > 1:
        return too_few(draft, service) or _nearest_host(service, answers)
    refused = [v for v in answers if v.refusal is not None]
    if not refused:
        return Refusal(Code.NO_CAPACITY, {"cards": 0})
    return replace_numbers(min(refused, key=_distance).refusal, cards=len(answers))


def _nearest_host(service: Service, answers: list[Verdict]) -> Refusal:
    """Of the host that lacks the least: the refusal of the card that would make its team whole."""
    hosts: dict[str, list[Verdict]] = defaultdict(list)
    for answer in answers:
        hosts[answer.card.host].append(answer)
    found = []
    for host, there in sorted(hosts.items()):
        fit = sum(v.offer is not None for v in there)
        refused = sorted((v for v in there if v.offer is None), key=_distance)
        missing = max(1, service.cards_per_replica - fit)  # 1: each alone would do, but not with one common grant
        if len(refused) >= missing:
            found.append((_distance(refused[missing - 1]), host, fit, refused[missing - 1]))
    if not found:
        numbers: Numbers = {"cards_needed": service.cards_per_replica}
        return Refusal(Code.NO_CAPACITY, numbers | {"cards": len(answers)})
    _, host, fit, last = min(found, key=lambda f: f[:2])
    more: Numbers = {"cards_needed": service.cards_per_replica, "cards_that_fit": fit, "host": host}
    return replace_numbers(last.refusal, cards=len(answers), **more)


def _turn(waiting: list[Verdict]) -> Refusal:
    """It fits, and waits for the card whose turn comes first. The grant it would get is kept for it."""
    first = min(waiting, key=lambda v: (float(v.refusal.numbers["wait_s"]) if v.refusal else 0.0, v.card.id))
    grant = first.offer.kv_granted_mib if first.offer else 0
    return replace_numbers(first.refusal, kv_granted_mib=grant)


def _distance(answer: Verdict) -> tuple[int, float, str]:
    short = answer.refusal.numbers.get("short_mib", 0) if answer.refusal else 0
    return -answer.reached, float(short), answer.card.id


def replace_numbers(refusal: Refusal | None, **more: int | float | str) -> Refusal:
    """The refusal with more numbers."""
    if refusal is None:
        return Refusal(Code.NO_CAPACITY, more)
    return Refusal(refusal.code, {**refusal.numbers, **more})
