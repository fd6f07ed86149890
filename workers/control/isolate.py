"""The isolation controllers' hands: limits into cards' rows, quiet P99s into replicas, changes into the journal.

Moves nothing, so it is no decision of the plan. A limit is written where the old one still holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from console.catalog.models import Replica as ReplicaRow
from console.catalog.models import Service as ServiceRow
from console.fleet.models import Card as CardRow
from console.journal.models import Decision as Entry
from console.state import moment
from scheduler import isolation
from scheduler.decision import Decision, Numbers
from scheduler.isolation import Cap, Step, Why
from scheduler.policy import Policy
from scheduler.world import Card, World

#: Verb and reasons in the journal: no act on a replica, so none of the planner's.
VERB, WELL = "limit", "well"


@dataclass(slots=True)
class Isolation:
    """`stopped`: cards whose stop of batch is already told; losing it tells them once more."""

    stopped: set[str] = field(default_factory=set)
    quiet_at: int = 0  # second of the last look at quiet P99s

    def keep(
        self, world: World, decisions: Sequence[Decision], policy: Policy, now: float, fence: int
    ) -> Mapping[str, Cap]:
        """One look at all cards; the limits that hold from here on."""
        cards = dict(world.cards)
        for step in isolation.steps(world, policy, now):
            card = isolation.stepped(cards[step.card], step, now)
            if _write(step, card):
                cards[step.card] = card
                if substantial(step):
                    reason = WELL if step.new is None else Why.NEIGHBOUR.value
                    _tell(world, step.card, reason, step.numbers, now, fence)
        caps = isolation.caps(replace(world, cards=cards), decisions)
        stopped = {card for card, cap in caps.items() if cap.why is Why.PRESSURE}
        for card_id in sorted(stopped - self.stopped):
            _tell(world, card_id, Why.PRESSURE.value, {"limit_to": 0}, now, fence)
        self.stopped = stopped
        if self.quiet_at != int(now):
            self.quiet_at = int(now)
            _learn(in_turn(isolation.quiet_p99s(world, policy, now), policy.quiet_every_s, now))
        return caps


def in_turn(found: Mapping[int, float], every_s: int, now: float) -> Mapping[int, float]:
    """Those whose second of the period this is: a few rows a second, not hundreds once a minute."""
    return {replica: value for replica, value in found.items() if replica % every_s == int(now) % every_s}


def substantial(step: Step) -> bool:
    """Begun, ended, or halved: single steps up are no news."""
    return step.old is None or step.new is None or step.new < step.old


def _write(step: Step, card: Card) -> bool:
    here = CardRow.objects.filter(uuid=step.card, batch_calls=step.old)
    lowered_at = None if card.batch_lowered_at is None else moment(card.batch_lowered_at)
    changed_at = None if card.batch_calls_at is None else moment(card.batch_calls_at)
    return bool(here.update(batch_calls=step.new, batch_calls_at=changed_at, batch_lowered_at=lowered_at))


def _tell(world: World, card: str, reason: str, numbers: Numbers, now: float, fence: int) -> None:
    """A line for each batch service on the card: its owner asks why it is slow."""
    sharing = isolation.shared_cards(world).get(card)
    where = CardRow.objects.filter(uuid=card).values_list("pk", flat=True).first()
    for replica in sharing.batch if sharing is not None else ():
        service = ServiceRow.objects.filter(name=replica.service).values_list("pk", flat=True).first()
        there = ReplicaRow.objects.filter(pk=replica.id).values_list("pk", flat=True).first()
        Entry.objects.create(
            at=moment(now),
            verb=VERB,
            reason=reason,
            service_id=service,
            replica_id=there,
            card_id=where,
            numbers=dict(numbers),
            fence=fence,
        )


def _learn(quiet: Mapping[int, float]) -> None:
    for replica, p99_ms in quiet.items():
        ReplicaRow.objects.filter(pk=replica, ended_at=None).update(quiet_p99_ms=p99_ms)
