"""The end of an order: recorded with the decision that fulfils it, in the same transaction."""

from __future__ import annotations

from collections.abc import Iterable

from console.catalog.models import Order
from console.state import moment
from scheduler.decision import Code, Decision, Verb
from scheduler.world import Act, World

DONE = "done"
#: Ends of an order that are no refusals: the journal has nothing to explain.
UNREMARKABLE = frozenset({Code.ALREADY_SO.value})


def close(numbers: Iterable[int], outcome: str, now: float) -> None:
    """Ends each that is still open. That the world is as asked is as good as done."""
    outcome = DONE if outcome in UNREMARKABLE else outcome
    Order.objects.filter(pk__in=list(numbers), done_at=None).update(done_at=moment(now), outcome=outcome)


def answered(decision: Decision, world: World) -> list[int]:
    """The orders that this decision, which does not act, ends: its own, or the preloads of a wish refused for good."""
    number = decision.numbers.get("order_no") if decision.order is None else decision.order
    if number is not None:
        return [int(number)]
    if decision.verb not in (Verb.START, Verb.WAKE) or (decision.refusal is not None and decision.refusal.passing):
        return []
    return [o.id for o in world.orders if o.act is Act.PRELOAD and o.service == decision.service]
