"""Which of the cards that fit is best: scores from -1 to 1 (a small model's price: 2), weighed by the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from scheduler.draft import Draft
from scheduler.fragmentation import Mix, kind_of
from scheduler.memory import HUNDRED, Book
from scheduler.pools import ELASTIC
from scheduler.world import Card, Phase, Profile, Replica, Service


class Offer(NamedTuple):
    """A card that fits, with its ledger before the newcomer and the KV MiB it would grant."""

    card: Card
    book: Book
    kv_granted_mib: int


@dataclass(frozen=True, slots=True)
class Field:
    """What the offers of one choice are measured against; hosts by name."""

    dearest_fen_h: int
    fastest_mib_s: int
    with_copies: frozenset[str]  # ready ones, or soon
    with_weights: frozenset[str]  # in memory: a copy sleeps, or was read, there
    unusable: Mapping[str, tuple[Mix, float]]  # the mix expected on each card, and MiB of its room now useless to it
    fixed_mib: int  # of the newcomer
    own: Profile  # when the newcomer's calls come
    gains: Mapping[str, Mapping[Profile, float]]  # on each card, by when a newcomer's calls come


Score = Callable[[Draft, Service, Offer, Field], float]

WEEK_S = 7 * 86400
LOADED = (Phase.STARTING, Phase.READY, Phase.DRAINING, Phase.ASLEEP)


def fragmentation(draft: Draft, service: Service, offer: Offer, field: Field) -> float:
    """Minus what the newcomer would strand, as a share of the card: room that the expected mix could not use any more.

    Positive where it takes what was stranded before.
    """
    card, book, granted = offer
    mix, before = field.unusable[card.id]
    left = (book.room_mib or 0) - field.fixed_mib - granted
    full = book.taken.awake + 1 >= draft.policy.max_replicas_per_card
    return (before - (left if full else left * mix.unfit_share(left))) / card.total_mib


def _unusable_now(draft: Draft, card: str) -> tuple[Mix, float]:
    book = draft.book(card)
    mix, room = draft.mixes()[kind_of(book.card)], book.room_mib or 0
    return mix, room * mix.unfit_share(room)


def best_fit(draft: Draft, service: Service, offer: Offer, field: Field) -> float:
    """The fuller the card, the better."""
    card, book, granted = offer
    return 1 - ((book.room_mib or 0) - field.fixed_mib - granted) / card.total_mib


def profile(draft: Draft, service: Service, offer: Offer, field: Field) -> float:
    """Peaks that coincide cost, peaks that differ gain."""
    return field.gains[offer.card.id][field.own]


def company(draft: Draft, service: Service, others: Iterable[Service]) -> float:
    """What a service gains, or loses, beside these: -1 to 1. Beside batch an online one is slowed at night alone."""
    return _together(peaks(draft, service), [peaks(draft, other) for other in others])


def _gains_on(draft: Draft, card: str) -> Mapping[Profile, float]:
    """What a newcomer gains on the card, or loses, by when its calls come."""
    known = {peaks(draft, seat.service) for seat in draft.book(card).seats if seat.service}
    return GAINS[frozenset(known)]


def _together(own: Profile, others: list[Profile]) -> float:
    if not others:
        return 0.0
    gains = [_pair(own, other) for other in others]
    least = min(gains)
    return least if least < 0 else max(gains)


def _pair(one: Profile, other: Profile) -> float:
    """Two online ones cost most, online beside batch less; online beside lowfreq, and batch beside batch, gain."""
    if one is other:
        return -1.0 if one is Profile.ONLINE else float(one is Profile.BATCH)
    if one is Profile.LOWFREQ or other is Profile.LOWFREQ:
        return float(one is Profile.ONLINE or other is Profile.ONLINE)
    return -0.5


def peaks(draft: Draft, service: Service) -> Profile:
    """When its calls come. Declared lowfreq and busy all the same, it is so when the online ones are."""
    if service.profile is not Profile.LOWFREQ or service.generation_s is None:
        return service.profile
    busy_s = service.demand.calls_7d * service.generation_s
    often = busy_s * HUNDRED >= WEEK_S * draft.policy.busy_neighbour_pct
    return Profile.ONLINE if often else Profile.LOWFREQ


#: By who is there: what each newcomer gains.
GAINS = {
    frozenset(there): {own: _together(own, list(there)) for own in Profile}
    for count in range(len(Profile) + 1)
    for there in combinations(Profile, count)
}


def price(draft: Draft, service: Service, offer: Offer, field: Field) -> float:
    """The cheapest class that qualifies; small models mind the most."""
    cheap = 1 - offer.card.price_fen_h / field.dearest_fen_h if field.dearest_fen_h else 0.0
    return cheap * (draft.policy.small_prefers_cheap if service.weights_mib < draft.policy.cheap_model_mib else 1.0)


def spread(draft: Draft, service: Service, offer: Offer, field: Field) -> float:
    """Not beside a copy of the same service on the host."""
    return -1.0 if offer.card.host in field.with_copies else 0.0


def local(draft: Draft, service: Service, offer: Offer, field: Field) -> float:
    """Hosts that read the weights faster."""
    return draft.world.hosts[offer.card.host].bandwidth_mib_s / field.fastest_mib_s


def near(draft: Draft, service: Service, offer: Offer, field: Field) -> float:
    """The host has the weights in memory (a copy sleeps, or was read, there), or half as good: on its own disk."""
    if offer.card.host in field.with_weights:
        return 1.0
    host = draft.world.hosts[offer.card.host]
    return 0.5 if host.weights is not None and service.name in host.weights else 0.0


def lent(draft: Draft, service: Service, offer: Offer, field: Field) -> float:
    """Cards of an elastic pool stay empty as long as others do."""
    return -1.0 if draft.pool(offer.card.id).purpose == ELASTIC else 0.0


#: Field of the policy that weighs it: score.
SCORES: dict[str, Score] = {
    "score_fragmentation": fragmentation,
    "score_best_fit": best_fit,
    "score_profile": profile,
    "score_price": price,
    "score_spread": spread,
    "score_local": local,
    "score_near": near,
    "score_lent": lent,
}
#: The same of every card of a host that has the same price and pool.
BY_PLACE = frozenset({price, spread, local, near, lent})


#: (name, field of the policy that weighs it, score); first what each card is asked for itself
Weighed = list[tuple[str, str, Score]]
BY_CARD_WEIGHED: Weighed = [(n.removeprefix("score_"), n, s) for n, s in SCORES.items() if s not in BY_PLACE]
BY_PLACE_WEIGHED: Weighed = [(n.removeprefix("score_"), n, s) for n, s in SCORES.items() if s in BY_PLACE]
#: Of the scores in the order of `weigh`.
NAMES = [name for name, _, _ in (*BY_CARD_WEIGHED, *BY_PLACE_WEIGHED)]


def field_of(draft: Draft, service: Service, offers: list[Offer]) -> Field:
    """Of these offers; at least one."""
    hosts, cards = draft.world.hosts, [o.card for o in offers]
    return Field(
        dearest_fen_h=max([card.price_fen_h for card in cards]),
        fastest_mib_s=max(1, *[hosts[name].bandwidth_mib_s for name in {card.host for card in cards}]),
        with_copies=_under(draft, draft.in_hand(service.name)),
        with_weights=_under(draft, (r for r in draft.of_service(service.name) if r.phase in LOADED)),
        unusable=draft.table(_unusable_now, of_book=True),
        fixed_mib=service.claim.fixed_mib,
        own=peaks(draft, service),
        gains=draft.table(_gains_on, of_book=True),
    )


def _under(draft: Draft, replicas: Iterable[Replica]) -> frozenset[str]:
    cards = (draft.world.cards.get(card) for r in replicas for card in r.cards)
    return frozenset(card.host for card in cards if card is not None)


def scored(draft: Draft, service: Service, offer: Offer, field: Field) -> dict[str, float]:
    """Each score of an offer, weighed."""
    return {
        name: getattr(draft.policy, weight) * score(draft, service, offer, field)
        for name, weight, score in (*BY_CARD_WEIGHED, *BY_PLACE_WEIGHED)
    }


def weigh(draft: Draft, service: Service, offers: list[Offer]) -> list[tuple[float, ...]]:
    """The same of each offer, in the order of NAMES; what is one for all cards of a place is worked out once."""
    field, policy = field_of(draft, service, offers), draft.policy
    by_card = [(getattr(policy, weight), score) for _, weight, score in BY_CARD_WEIGHED]
    by_place = [(getattr(policy, weight), score) for _, weight, score in BY_PLACE_WEIGHED]
    places: dict[tuple[str, int, str], tuple[float, ...]] = {}
    found = []
    for offer in offers:
        card = offer.card
        there = card.host, card.price_fen_h, card.pool
        if there not in places:
            places[there] = tuple([weight * score(draft, service, offer, field) for weight, score in by_place])
        own = [weight * score(draft, service, offer, field) for weight, score in by_card]
        found.append((*own, *places[there]))
    return found
