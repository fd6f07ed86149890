"""How long until the memory of a copy that leaves is back."""

from __future__ import annotations

from scheduler.draft import Draft, moving
from scheduler.estimate import drain_bound_s
from scheduler.turns import rest_s
from scheduler.world import Replica, Want


def leave_s(draft: Draft, replica: Replica) -> tuple[float, float]:
    """(expected, least) seconds until a leaving replica's memory is back."""
    if moving(replica):
        return rest_s(draft, replica) if replica.want is not Want.STOPPED else _stop_rest(draft, replica)
    notice = max(0.0, (replica.drain_at or draft.now) - draft.now)
    least = notice + draft.policy.stop_s
    if replica.in_flight == 0 or replica.quiet:
        return least, least
    bound = drain_bound_s(draft.rules_of(replica), draft.services.get(replica.service))
    return least + max(0.0, bound - (draft.now - replica.want_since)), least


def _stop_rest(draft: Draft, replica: Replica) -> tuple[float, float]:
    rest = max(0.0, draft.policy.stop_s - (draft.now - replica.want_since))
    return rest, rest
