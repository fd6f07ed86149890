"""Copies over several cards (tensor parallel): all on one host, the best interconnect group first, all or nothing.

Every card of a copy carries the same claim and is granted the same KV: the card with the least room decides for all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scheduler.decision import Code, Refusal
from scheduler.draft import Draft
from scheduler.memory import start_grant
from scheduler.scores import Offer
from scheduler.turns import waits_for
from scheduler.world import Card, Service


@dataclass(frozen=True, slots=True)
class Team:
    """Cards of one host for one copy, by id, each with the same grant. `islands`: interconnect groups they lie in."""

    offers: tuple[Offer, ...]
    islands: int
    unnamed: bool  # some of them lie in no group that anybody named
    score: float  # mean over the cards

    @property
    def cards(self) -> tuple[str, ...]:
        return tuple(offer.card.id for offer in self.offers)

    @property
    def kv_granted_mib(self) -> int:
        return self.offers[0].kv_granted_mib

    @property
    def order(self) -> tuple[int, bool, float, tuple[str, ...]]:
        """Links first, then the scores, then the ids."""
        return self.islands, self.unnamed, -self.score, self.cards


def by_host(cards: Iterable[Card]) -> Mapping[str, list[Card]]:
    found: dict[str, list[Card]] = defaultdict(list)
    for card in cards:
        found[card.host].append(card)
    return found


def teams(draft: Draft, service: Service, offers: list[Offer], scores: Mapping[str, float]) -> list[Team]:
    """The best team of each host that has one. `scores` by card id."""
    hosts: dict[str, list[Offer]] = defaultdict(list)
    for offer in offers:
        hosts[offer.card.host].append(offer)
    found = (_team(service, there, scores) for _, there in sorted(hosts.items()))
    return [team for team in found if team is not None]


def _team(service: Service, offers: list[Offer], scores: Mapping[str, float]) -> Team | None:
    """Who cannot live with the common grant (its KV would be oversold) steps out, and another set is tried."""
    left = list(offers)
    while len(left) >= service.cards_per_replica:
        chosen = _closest(left, service.cards_per_replica, scores)
        grant = min(offer.kv_granted_mib for offer in chosen)
        unfit = {o.card.id for o in chosen if start_grant(o.book, service, grant) != grant}
        if not unfit:
            return _as_team(chosen, grant, scores)
        left = [offer for offer in left if offer.card.id not in unfit]
    return None


def _as_team(chosen: list[Offer], grant: int, scores: Mapping[str, float]) -> Team:
    chosen = sorted(chosen, key=lambda o: o.card.id)
    islands = {offer.card.group for offer in chosen}
    mean = sum(scores[offer.card.id] for offer in chosen) / len(chosen)
    return Team(tuple(o._replace(kv_granted_mib=grant) for o in chosen), len(islands), "" in islands, mean)


def _closest(offers: list[Offer], count: int, scores: Mapping[str, float]) -> list[Offer]:
    """The best cards of the best island that holds all; where none does, of as few islands as it takes."""
    islands: dict[str, list[Offer]] = defaultdict(list)
    for offer in sorted(offers, key=lambda o: (-scores[o.card.id], o.card.id)):
        islands[offer.card.group].append(offer)
    whole = [there[:count] for name, there in sorted(islands.items()) if len(there) >= count]
    if whole:
        return min(whole, key=lambda t: (not t[0].card.group, -sum(scores[o.card.id] for o in t), t[0].card.id))
    spread: list[Offer] = []
    for there in sorted(islands.values(), key=lambda t: (not t[0].card.group, -len(t), t[0].card.id)):
        spread += there[: count - len(spread)]
    return spread


def turn_of(draft: Draft, team: Team) -> Refusal | None:
    """None when all of its cards can load now, else the longest wait among them, with the place kept for it."""
    waits = [turn for offer in team.offers if (turn := waits_for(draft, offer.card)) is not None]
    if not waits:
        return None
    last = max(waits, key=lambda turn: (float(turn.numbers["wait_s"]), str(turn.numbers["card"])))
    return replace(
        last, numbers={**last.numbers, "on_cards": ",".join(team.cards), "kv_granted_mib": team.kv_granted_mib}
    )


def too_few(draft: Draft, service: Service) -> Refusal | None:
    """No host has as many cards at all."""
    most = max((len(draft.cards_of(host)) for host in draft.world.hosts), default=0)
    if most >= service.cards_per_replica:
        return None
    return Refusal(Code.TOO_FEW_CARDS, {"cards_needed": service.cards_per_replica, "most_on_a_host": most})
