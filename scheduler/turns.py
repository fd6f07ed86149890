"""One load at a time a card, a few a host: whose turn it is, and how long until it is ours."""

from __future__ import annotations

from scheduler.decision import Code, Numbers, Refusal
from scheduler.draft import Draft
from scheduler.estimate import remaining
from scheduler.world import Card, Phase, Replica


def waits_for(draft: Draft, card: Card, *, but: int | None = None) -> Refusal | None:
    """None when a start or wake may begin on the card now, else a passing refusal.

    Numbers: `replica` and `service` it waits behind, `card`, `host`, `wait_s`, `wait_low_s`.
    """
    ahead = draft.busy(card.id, but=but)
    if ahead is None:
        loading = draft.loading_on(card.host)
        if len(loading) >= draft.policy.max_loads_per_host:
            ahead = min(loading, key=lambda r: (rest_s(draft, r)[0], r.id))
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


def rest_s(draft: Draft, replica: Replica) -> tuple[float, float]:
    """(expected, least) seconds until a replica that is on the move has arrived.

    Asked for every card of a busy host and each wish again, and dear where many load: kept while the replica stays so.
    """
    kept = draft.rests.get(replica.id)
    if kept is None or kept[0] is not replica:
        kept = draft.rests[replica.id] = (replica, _rest_s(draft, replica))
    return kept[1]


def _rest_s(draft: Draft, replica: Replica) -> tuple[float, float]:
    if replica.phase is Phase.STARTING:
        rest = remaining(draft.world, draft.policy, replica, draft.now)
        return rest.eta_s, rest.low_s or 0.0
    rest_of_stop = max(0.0, draft.policy.stop_s - (draft.now - replica.want_since))
    return rest_of_stop, rest_of_stop
