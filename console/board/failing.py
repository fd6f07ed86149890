"""If this card failed now: who goes on elsewhere, who would be rebuilt where, who would be homeless.

The planner's own placement answers, on a World without the card; each answer is charged before the next is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from console import seats
from console.catalog.models import Replica as ReplicaRow
from console.wire import Gateways
from scheduler.decision import Decision, Reason, Refusal, Verb
from scheduler.draft import Draft
from scheduler.estimate import load_estimate
from scheduler.placement import Placement, place
from scheduler.policy import Policy
from scheduler.world import Phase, Replica, World

#: Whose loss somebody would notice, most first.
ORDER = (Phase.READY, Phase.DRAINING, Phase.STARTING, Phase.ASLEEP)


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one service that has a replica on the card: exactly one of the last three is set.

    `others`: cards (UUIDs) where it has another ready copy. `card` and `ready_s`: where it would be rebuilt, and in
    how many seconds. `refusal`: why nowhere.
    """

    service: str
    phase: Phase
    others: tuple[str, ...] = ()
    card: str = ""
    ready_s: float | None = None
    refusal: Refusal | None = None


def fates(card: str, gateways: Gateways, rules: Policy, now: float, only: Mapping[str, object]) -> list[Fate]:
    """Of the services on the card that are in `only` (what the reader may see)."""
    world = seats.planning(now, gateways, rules, _services_on(card))
    leaving = [one for one in world.replicas.values() if card in one.cards and one.phase in ORDER]
    leaving.sort(key=lambda one: (ORDER.index(one.phase), -world.services[one.service].priority, one.id))
    draft = Draft(without(world, card), rules, now)
    told = [_fate(draft, rules, one, now) for one in leaving]
    return [fate for fate in told if fate.service in only]


def _services_on(card: str) -> set[str]:
    rows = ReplicaRow.objects.filter(ended_at=None, host__cards__uuid=card).values_list("service__name", "cards")
    return {service for service, cards in rows if card in cards}


def without(world: World, card: str) -> World:
    """The World after the card, and every replica on it, is gone."""
    cards = {uuid: one for uuid, one in world.cards.items() if uuid != card}
    stay = {pk: one for pk, one in world.replicas.items() if card not in one.cards}
    return replace(world, cards=cards, replicas=stay)


def _fate(draft: Draft, rules: Policy, lost: Replica, now: float) -> Fate:
    service = draft.services[lost.service]
    others = tuple(one.cards[0] for one in draft.staying(lost.service))
    if others:
        return Fate(lost.service, lost.phase, others=others)
    answer = place(draft, rules, service, now)
    wait_s = 0.0
    if isinstance(answer, Refusal):
        if not answer.passing or "card" not in answer.numbers:
            return Fate(lost.service, lost.phase, refusal=answer)
        wait_s, card = float(answer.numbers.get("wait_s", 0)), str(answer.numbers["card"])  # fits, and waits its turn
        draft.queue(card, load_estimate(draft.world, rules, service, draft.world.cards[card].host).seconds)
    else:
        card = answer.cards[0]
        draft.do(_start(service.name, answer))
    ready_s = wait_s + load_estimate(draft.world, rules, service, draft.world.cards[card].host).seconds
    return Fate(lost.service, lost.phase, card=card, ready_s=ready_s)


def _start(service: str, where: Placement) -> Decision:
    return Decision(Verb.START, service, Reason.REBUILD, cards=where.cards, kv_granted_mib=where.kv_granted_mib)
