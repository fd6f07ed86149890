"""Repack: which few moves would make stranded memory usable, or empty cards. A heuristic that always answers.

Step by step the best set of copies of one card that find a place elsewhere: what the card gains by their going, less
what the others lose by their coming, in MiB that the expected mix can use. Each move is judged by `moves.admits` on the
world as it will be then, so the numbered list holds in its order, make-before-break. Same arguments, same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from scheduler.decision import Refusal
from scheduler.moves import admits
from scheduler.policy import Policy
from scheduler.pools import ELASTIC
from scheduler.sketch import Kept, Option, Proposal, Search, Spot, calm, settled
from scheduler.world import Replica, World

#: (replica, its new cards) of each, and what the new cards lose in all, MiB.
Homes = tuple[tuple[tuple[int, tuple[str, ...]], ...], float]


def propose(world: World, policy: Policy, now: float, pool: str) -> Proposal:
    """The moves of one pool; none where none is worth its load. Nothing is recorded."""
    search = Search(calm(world), policy, now, pool)
    before, empty = search.stranded, search.empty
    if pool in world.pools and world.pools[pool].purpose == ELASTIC:
        _give_back(search)
    else:
        _lower(search)
        _empty(search)
    return Proposal(pool, tuple(search.steps), before, search.stranded, empty, search.empty)


# Lower what is stranded


def _lower(search: Search) -> None:
    """From each of the best beginnings as far as it goes; what strands least in the end, with the fewest moves."""
    begin = search.kept
    ends: list[tuple[int, int, int, Kept]] = []
    for first in _worth(search)[: search.rules.repack_starts]:
        search.begin_again(begin)
        if _better(search, first):
            _on(search)
            ends.append((round(search.stranded.stranded_mib), len(search.steps), len(ends), search.kept))
    search.begin_again(min(ends)[3] if ends else begin)


def _on(search: Search) -> None:
    """As long as a set of copies is worth its loads: the one that gains most a move."""
    while search.left > 0 and any(_better(search, option) for option in _worth(search)):
        pass


def _worth(search: Search) -> list[Option]:
    """What seems worth its loads, the most gain a move first."""
    options = sorted(_options(search), key=lambda o: (-o.gain_mib / len(o.moves), o.moves))
    least = search.rules.repack_gain_mib
    return [o for o in options if o.gain_mib >= least * len(o.moves) and o.moves not in search.vain]


def _better(search: Search, option: Option) -> bool:
    """Taken, and really better than before: what is measured decides, not what was foreseen."""
    before, kept = search.stranded.stranded_mib, search.kept
    if not search.take(option):
        return False
    if before - search.stranded.stranded_mib >= search.rules.repack_gain_mib * len(option.moves):
        return True
    search.vain.add(option.moves)
    search.back_to(kept)
    return False


def _options(search: Search) -> Iterator[Option]:
    """For the sets that promise most: where each of the copies would go, and what all of it gains."""
    sets = sorted(_sets(search), key=lambda s: (-s[0], s[1], [r.id for r in s[2]]))
    for gain, card, copies in sets[: search.rules.repack_tries]:
        if (homes := _homes(search, card, copies)) is not None:
            yield Option(homes[0], gain - homes[1])
    yield from _team_options(search)


def _sets(search: Search) -> Iterator[tuple[float, str, tuple[Replica, ...]]]:
    """(what the card gains, card, copies that would go) of every set of copies that may be moved from a card."""
    for card in search.spots:
        copies = search.movable(card)
        for count in range(1, min(len(copies), search.left) + 1):
            for chosen in combinations(copies, count):
                yield search.gain_mib(chosen, card), card, chosen


def _homes(search: Search, source: str, copies: Sequence[Replica], only: Iterable[str] | None = None) -> Homes | None:
    """Where each would go with the least loss, the largest first; None where one finds no home. `only`: cards."""
    spots = {card: search.spots[card] for card in (search.spots if only is None else only) if card != source}
    found: list[tuple[int, tuple[str, ...]]] = []
    lost = 0.0
    for copy in sorted(copies, key=lambda r: (-search.held_mib(r), r.id)):
        home = _home(search, copy, spots)
        if home is None:
            return None
        card, takes = home
        lost += spots[card].loss_mib(takes)
        spots[card] = spots[card].taking(takes)
        found.append((copy.id, (card,)))
    return tuple(found), lost


def _home(search: Search, copy: Replica, spots: dict[str, Spot]) -> tuple[str, int] | None:
    """(card, MiB it takes there): the least loss, then the fullest card that is enough."""
    fits = [(card, spot, takes) for card, spot in spots.items() if (takes := search.takes_mib(copy, spot)) is not None]
    for card, _, takes in sorted(fits, key=lambda f: (f[1].loss_mib(f[2]), f[1].room_mib, f[0])):
        if not isinstance(admits(search.draft, copy.id, (card,)), Refusal):
            return card, takes
    return None


def _team_options(search: Search) -> Iterator[Option]:
    """Copies over several cards go as one: to the cards of one host that lose least."""
    for replica in sorted(search.draft.replicas.values(), key=lambda r: r.id):
        if len(replica.cards) < 2 or replica.id in search.moved or not settled(replica):
            continue
        if not set(replica.cards) <= search.spots.keys() or replica.service not in search.draft.services:
            continue
        if (home := _team_home(search, replica)) is not None:
            gain = sum(search.gain_mib([replica], card) for card in replica.cards)
            yield Option(((replica.id, home[0]),), gain - home[1])


def _team_home(search: Search, replica: Replica) -> tuple[tuple[str, ...], float] | None:
    """(cards, loss): as many cards of one island of a host, those that lose least."""
    islands: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for card, spot in search.spots.items():
        if card not in replica.cards and (takes := search.takes_mib(replica, spot)) is not None:
            islands.setdefault((spot.card.host, spot.card.group), []).append((spot.loss_mib(takes), card))
    count = len(replica.cards)
    best = [sorted(there)[:count] for _, there in sorted(islands.items()) if len(there) >= count]
    for chosen in sorted(best, key=lambda there: (sum(loss for loss, _ in there), there)):
        cards = tuple(sorted(card for _, card in chosen))
        if not isinstance(admits(search.draft, replica.id, cards), Refusal):
            return cards, sum(loss for loss, _ in chosen)
    return None


# Empty cards


def _empty(search: Search) -> None:
    """Cards with little on them are emptied onto others in use, where that strands nothing more."""
    used = sorted(search.spots.values(), key=lambda s: (-s.room_mib, s.card.id))
    for card in (spot.card.id for spot in used):
        copies = search.movable(card)
        if not copies or len(copies) != len(search.draft.on_card(card)) or len(copies) > search.left:
            continue
        others = [c for c in search.spots if c != card and search.draft.on_card(c)]
        homes = _homes(search, card, copies, others)
        if homes is None:
            continue
        if search.gain_mib(copies, card) >= homes[1]:
            search.take(Option(homes[0], 0.0))


def _give_back(search: Search) -> None:
    """What was lent goes back to the pools that take it, the least loss first come."""
    for replica in [r for card in search.spots for r in search.movable(card)]:
        if search.left <= 0:
            return
        for card in sorted(search.world.cards):
            if not isinstance(admits(search.draft, replica.id, (card,)), Refusal):
                search.take(Option(((replica.id, (card,)),), 0.0))
                break
