"""Which of the cards that fit is best: scores from -1 to 1 (a small model's price: 2), weighed by the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.draft import Draft
from scheduler.memory import HUNDRED, Book, awake_count, room_mib
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


Score = Callable[[Draft, Service, Offer, Field], float]

WEEK_S = 7 * 86400
LOADED = (Phase.STARTING, Phase.READY, Phase.DRAINING, Phase.ASLEEP)


def fragmentation(draft: Draft, service: Service, offer: Offer, field: Field) -> float:
    """Minus what the newcomer would strand, as a share of the card: room that the expected mix could not use any more.

    Positive where it takes what was stranded before.
    """
    mix, room = draft.mix(offer.card), room_mib(offer.book) or 0
    left = room - service.claim.fixed_mib - offer.kv_granted_mib
    full = awake_count(offer.book) + 1 >= draft.policy.max_replicas_per_card
    after = left if full else left * mix.unfit_share(left)
    return (room * mix.unfit_share(room) - after) / offer.card.total_mib


def best_fit(draft: Draft, service: Service, offer: Offer, field: Field) -> float:
    """The fuller the card, the better."""
    after = (room_mib(offer.book) or 0) - service.claim.fixed_mib - offer.kv_granted_mib
    return 1 - after / offer.card.total_mib


def profile(draft: Draft, service: Service, offer: Offer, field: Field) -> float:
    """Peaks that coincide cost, peaks that differ gain."""
    return company(draft, service, (s.service for s in offer.book.seats if s.service))


def company(draft: Draft, service: Service, others: Iterable[Service]) -> float:
    """What a service gains, or loses, beside these: -1 to 1. Beside batch an online one is slowed at night alone."""
    own = peaks(draft, service)
    gains = [_pair(own, peaks(draft, other)) for other in others]
    least = min(gains, default=0.0)
    return least if least < 0 else max(gains, default=0.0)


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


def field_of(draft: Draft, service: Service, offers: list[Offer]) -> Field:
    """Of these offers; at least one."""
    hosts = draft.world.hosts
    return Field(
        dearest_fen_h=max(o.card.price_fen_h for o in offers),
        fastest_mib_s=max(1, *(hosts[name].bandwidth_mib_s for name in {o.card.host for o in offers})),
        with_copies=_under(draft, draft.in_hand(service.name)),
        with_weights=_under(draft, (r for r in draft.of_service(service.name) if r.phase in LOADED)),
    )


def _under(draft: Draft, replicas: Iterable[Replica]) -> frozenset[str]:
    cards = (draft.world.cards.get(card) for r in replicas for card in r.cards)
    return frozenset(card.host for card in cards if card is not None)


def scored(draft: Draft, service: Service, offer: Offer, field: Field) -> dict[str, float]:
    """Each score of an offer, weighed."""
    return _weighed(BY_CARD_WEIGHED, draft, service, offer, field) | by_place(draft, service, offer, field)


def by_place(draft: Draft, service: Service, offer: Offer, field: Field) -> dict[str, float]:
    """Those of its host, price and pool."""
    return _weighed(BY_PLACE_WEIGHED, draft, service, offer, field)


def _weighed(scores: Weighed, draft: Draft, service: Service, offer: Offer, field: Field) -> dict[str, float]:
    policy = draft.policy
    return {name: getattr(policy, weight) * score(draft, service, offer, field) for name, weight, score in scores}


def weigh(draft: Draft, service: Service, offers: list[Offer]) -> dict[str, dict[str, float]]:
    """Each offer's scores, by card id; what is the same of all cards of a place is worked out once."""
    field, found = field_of(draft, service, offers), {}
    places: dict[tuple[str, int, str], dict[str, float]] = {}
    for offer in offers:
        card = offer.card
        place = card.host, card.price_fen_h, card.pool
        if place not in places:
            places[place] = by_place(draft, service, offer, field)
        found[card.id] = _weighed(BY_CARD_WEIGHED, draft, service, offer, field) | places[place]
    return found
