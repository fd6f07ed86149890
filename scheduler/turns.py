"""One load at a time a card, a few a host: whose turn it is, and how long until it is ours."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.decision import Code, Numbers, Refusal
from scheduler.draft import Draft
from scheduler.estimate import Loads, loads_by_host, remaining
from scheduler.world import Card, Phase, Replica


def waits_for(draft: Draft, card: Card, *, but: int | None = None) -> Refusal | None:
    """None when a start or wake may begin on the card now, else a passing refusal.

    Numbers: `replica` and `service` it waits behind, `card`, `host`, `wait_s`, `wait_low_s`.
    """
    ahead = draft.busy(card.id, but=but) or _of_host(draft, card)
    if ahead is None and not draft.ahead_s[card.id]:
        return None
    wait, low = rest_s(draft, ahead) if ahead else (0.0, 0.0)
    numbers: Numbers = {
        "card": card.id,
        "host": card.host,
        "wait_s": wait + draft.ahead_s[card.id],
        "wait_low_s": low,
    }
    if ahead:
        numbers |= {"replica": ahead.id, "service": ahead.service}
    return Refusal(Code.LOAD_IN_FLIGHT, numbers)


def free(draft: Draft) -> Mapping[str, bool]:
    """May a start or wake begin on the card now? By id of the card."""
    return draft.table(_free)


def _free(draft: Draft, card: str) -> bool:
    return not draft.ahead_s[card] and draft.busy(card) is None and _of_host(draft, draft.world.cards[card]) is None


def _of_host(draft: Draft, card: Card) -> Replica | None:
    return draft.table(_first_of_host)[draft.cards_of(card.host)[0]]


def _first_of_host(draft: Draft, card: str) -> Replica | None:
    """The load on the card's host that ends first, where there are as many as there may be."""
    loading = draft.loading_on(draft.world.cards[card].host)
    if len(loading) < draft.policy.max_loads_per_host:
        return None
    return min(loading, key=lambda r: (rest_s(draft, r)[0], r.id))


def rest_s(draft: Draft, replica: Replica) -> tuple[float, float]:
    """(expected, least) seconds until a replica that is on the move has arrived.

    Asked for every card of a busy host and each wish again, and dear where many load: kept while the replica stays so.
    """
    kept = draft.rests.get(replica.id)
    if kept is None or kept[0] is not replica:
        kept = draft.rests[replica.id] = (replica, _rest_s(draft, replica))
    return kept[1]


def _at_first(draft: Draft) -> Loads:
    """Loads that were under way as this plan began."""
    return loads_by_host(draft.world)


def _rest_s(draft: Draft, replica: Replica) -> tuple[float, float]:
    if replica.phase is Phase.STARTING:
        rest = remaining(draft.world, draft.policy, replica, draft.now, draft.fact(_at_first))
        return rest.eta_s, rest.low_s or 0.0
    rest_of_stop = max(0.0, draft.policy.stop_s - (draft.now - replica.want_since))
    return rest_of_stop, rest_of_stop
