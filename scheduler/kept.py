"""Who is always kept: safe from idleness and from making room. A list of small questions, the first yes is the why."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from scheduler import forecast
from scheduler.draft import Draft
from scheduler.memory import HUNDRED, held_mib, reserved_mib
from scheduler.pools import RESIDENT, lent_to
from scheduler.wishes import resident
from scheduler.world import Replica, Service, Tier

Question = Callable[[Draft, Replica, Service], bool]

HALF_EMPTY = "half_empty"
WHITELISTED = "whitelisted"
EXPECTED = "expected"


def last_of_minimum(draft: Draft, replica: Replica, service: Service) -> bool:
    """Without it fewer than min_replicas would stay ready."""
    if not service.min_replicas:
        return False
    others = [r for r in draft.staying(service.name) if r.id != replica.id]
    return len(others) < service.min_replicas


def hot(draft: Draft, replica: Replica, service: Service) -> bool:
    """A hot service keeps what it has, but not more than it may have."""
    return service.tier is Tier.HOT


def whitelisted(draft: Draft, replica: Replica, service: Service) -> bool:
    return service.whitelisted_until is not None and service.whitelisted_until > draft.now


def fast_first_token(draft: Draft, replica: Replica, service: Service) -> bool:
    return service.first_token_s is not None and service.first_token_s < draft.policy.fast_first_token_s


def small_model(draft: Draft, replica: Replica, service: Service) -> bool:
    return service.weights_mib < draft.policy.small_model_mib


def resident_hours(draft: Draft, replica: Replica, service: Service) -> bool:
    """Day resident, night on demand."""
    return bool(service.resident) and resident(service, draft.now)


def resident_pool(draft: Draft, replica: Replica, service: Service) -> bool:
    return any(draft.pool(card).purpose == RESIDENT for card in replica.cards if card in draft.world.cards)


def alone_in_pool(draft: Draft, replica: Replica, service: Service) -> bool:
    """No other service may use the pool: its memory would serve nobody."""
    if draft.fact(_several_anywhere):
        return False
    pools = {draft.pool(card).name for card in replica.cards if card in draft.world.cards}
    others = (s for s in draft.services.values() if s.name != service.name)
    return not any(not s.pools or s.pools & pools for s in others)


def _several_anywhere(draft: Draft) -> bool:
    """Are there two services or more that name no pool? Then nobody is alone in one."""
    return len(list(islice((s for s in draft.services.values() if not s.pools), 2))) > 1


def on_half_empty_card(draft: Draft, replica: Replica, service: Service) -> bool:
    """Its card is little used and nobody was refused in the pool of late: unloading would free what nobody needs."""
    if lent_to(draft, replica):
        return False
    for card_id in replica.cards:
        if card_id not in draft.world.cards or _scarce(draft, card_id) or not _half_empty(draft, card_id):
            return False
    return True


def _scarce(draft: Draft, card: str) -> bool:
    refused_at = draft.pool(card).refused_at
    return refused_at is not None and draft.now - refused_at < draft.policy.refused_window_s


def _half_empty(draft: Draft, card_id: str) -> bool:
    book = draft.book(card_id)
    held = sum(held_mib(s.replica, s.service, draft.policy) for s in book.seats)
    used = reserved_mib(book.card) + (book.external_mib or 0) + book.releasing_mib + held
    return used * HUNDRED < book.card.total_mib * draft.policy.of_pool(book.card.pool).half_empty_pct


QUESTIONS: dict[str, Question] = {
    "minimum": last_of_minimum,
    "hot": hot,
    WHITELISTED: whitelisted,
    "first_token": fast_first_token,
    "small": small_model,
    "resident": resident_pool,
    "resident_hours": resident_hours,
    "alone": alone_in_pool,
    HALF_EMPTY: on_half_empty_card,
}


_FOR_ROOM = [(name, question) for name, question in QUESTIONS.items() if name != HALF_EMPTY]


def why_kept(draft: Draft, replica: Replica, *, for_room: bool = False) -> str | None:
    """The name of the rule that keeps this replica, or None. A little used card is no reason when a caller waits."""
    service = draft.services.get(replica.service)
    if service is None:
        return None
    for name, question in _FOR_ROOM if for_room else QUESTIONS.items():
        if question(draft, replica, service):
            return name
    if forecast.keeps(draft.world, draft.policy, draft.now, replica, for_room=for_room):
        return EXPECTED
    return None
