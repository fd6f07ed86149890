"""The planner's own answer to "what if": where a copy would go, beside whom, what is left, who would make room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler.decision import Code, Decision, Reason, Refusal, Verb
from scheduler.draft import Draft
from scheduler.estimate import load_now, wake_estimate
from scheduler.growth import growth
from scheduler.hosts import host_of
from scheduler.memory import ceil_div, limit_pct, room_mib
from scheduler.placement import Placement, place, verdicts
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.world import Act, Order, Replica, Service, World

HUNDRED = 100


@dataclass(frozen=True, slots=True)
class Fit:
    """One copy on a card, or on several: sizes are of each, what is left that of the tightest.

    `seconds` until it is ready, `rough` when no such load was ever measured there.
    """

    card: str
    host: str
    beside: tuple[str, ...]  # services already there, by name
    holds_mib: int
    kv_granted_mib: int
    leaves_mib: int
    seconds: float
    rough: bool
    more: tuple[str, ...] = ()  # its other cards


@dataclass(frozen=True, slots=True)
class Answer:
    """Copies that fit, and why the next does not; `codes` counts every card's own reason."""

    fits: tuple[Fit, ...]
    refusal: Refusal | None = None
    codes: Mapping[Code, int] | None = None
    smaller_kv_mib: int | None = None  # with this KV cap it would fit
    leaving: tuple[Decision, ...] = ()  # who would be asked to go if somebody insisted


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What an order would do, by a plan of the World with the order in it."""

    refusal: Refusal | None
    fit: Fit | None
    wakes: Replica | None
    leaving: tuple[Decision, ...]
    rebuilt: Fit | None  # another copy that the plan would start at once in its place


def fit_of(draft: Draft, service: Service, cards: Sequence[str], kv_granted_mib: int) -> Fit:
    """What a start on these cards would mean. Ask before it is charged to the draft."""
    first, *more = cards
    host, books = draft.world.cards[first].host, [draft.book(card) for card in cards]
    holds = service.claim.fixed_mib + kv_granted_mib
    load = load_now(draft.world, draft.policy, service, host)
    beside = tuple(dict.fromkeys(seat.replica.service for book in books for seat in book.seats))
    left = min(room_mib(book) or 0 for book in books) - holds
    return Fit(first, host, beside, holds, kv_granted_mib, left, load.seconds, load.rough, tuple(more))


def answer(world: World, rules: Policy, service: Service, now: float) -> Answer:
    """Where its least number of copies (one at least) would go now, one after the other."""
    world = replace(world, services={**world.services, service.name: service})
    draft = Draft(world, rules, now)
    fits: list[Fit] = []
    for _ in range(max(1, service.min_replicas)):
        found = place(draft, rules, service, now)
        if isinstance(found, Refusal):
            return _refused(draft, service, tuple(fits), found)
        fits.append(fit_of(draft, service, found.cards, found.kv_granted_mib))
        draft.do(
            Decision(Verb.START, service.name, Reason.OPERATOR, cards=found.cards, kv_granted_mib=found.kv_granted_mib)
        )
    return Answer(tuple(fits))


def _refused(draft: Draft, service: Service, fits: tuple[Fit, ...], refusal: Refusal) -> Answer:
    codes = Counter(v.refusal.code for v in verdicts(draft, service) if v.refusal is not None)
    if refusal.passing:
        return Answer(fits, refusal, codes)
    order = Order(0, Act.PRELOAD, service.name, draft.now + draft.policy.order_lapses_s, force=True)
    insisted = foresee(draft, order)
    return Answer(fits, refusal, codes, _smaller_kv_mib(draft, service), insisted.leaving)


def _smaller_kv_mib(draft: Draft, service: Service) -> int | None:
    """The largest KV cap with which the card that is least short would take it; None: not by KV alone."""
    short = [
        (int(v.refusal.numbers["short_mib"]), v.card.id)
        for v in verdicts(draft, service)
        if v.refusal is not None and v.refusal.code is Code.SHORT_OF_MEMORY
    ]
    if not short:
        return None
    least, _ = min(short)
    limit = limit_pct([service], draft.policy)
    cap = service.claim.kv_cap_mib - ceil_div(least * (HUNDRED + limit), HUNDRED) - 1
    if cap <= max(0, service.one_request_mib):
        return None
    smaller = replace(service, claim=replace(service.claim, kv_cap_mib=cap))
    return cap if isinstance(place(draft, draft.policy, smaller, draft.now), Placement) else None


def foresee(draft: Draft, order: Order) -> Foreseen:
    """A dry run of the draft's World: nothing is recorded, the plan is thrown away. The draft itself is only asked."""
    seen = draft.world
    world = replace(seen, orders=(*seen.orders, order))
    decisions = plan(world, draft.policy, draft.now, until=growth)  # what comes after gives no order its answer
    service = world.services[order.service]
    mine = [d for d in decisions if d.service == order.service]
    starts = [fit_of(draft, service, d.cards, d.kv_granted_mib) for d in mine if _starts(d)]
    woken = next((d.replica for d in mine if d.refusal is None and d.verb is Verb.WAKE), None)
    loads = order.act is Act.PRELOAD
    return Foreseen(
        refusal=_refusal(mine, order),
        fit=starts[0] if starts and loads else None,
        wakes=world.replicas.get(woken) if woken is not None else None,
        leaving=tuple(d for d in decisions if d.refusal is None and d.numbers.get("room_for") == order.service),
        rebuilt=starts[0] if starts and not loads else None,
    )


def _starts(decision: Decision) -> bool:
    return decision.refusal is None and decision.verb is Verb.START and decision.replica is None


def _refusal(mine: Sequence[Decision], order: Order) -> Refusal | None:
    """Its own; of a preload also that of the wish it is."""
    for decision in mine:
        wish = order.act is Act.PRELOAD and decision.order is None
        if decision.refusal is not None and (decision.order == order.id or wish):
            return decision.refusal
    return None


def back_s(world: World, rules: Policy, replica: Replica, *, asleep: bool) -> tuple[float, bool]:
    """(seconds, rough) until a copy that sleeps or was stopped is ready again on its host."""
    service, host = world.services[replica.service], host_of(world, replica)
    name = host.name if host is not None else ""
    estimate = (wake_estimate if asleep else load_now)(world, rules, service, name)
    return estimate.seconds, estimate.rough
