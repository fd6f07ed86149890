"""Which cards a service may start on: a list of small filters, each with its typed refusal and numbers.

Ordered from what never changes to what passes by itself, so that the last one reached is the nearest to fitting.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler import two_hosts
from scheduler.decision import Code, Numbers, Refusal
from scheduler.draft import Draft
from scheduler.elastic import ELASTIC, elastic_fits
from scheduler.hosts import lost, silence_s, silent
from scheduler.memory import awake_count
from scheduler.pools import may_enter
from scheduler.pressed import no_newcomers
from scheduler.quota import no_start
from scheduler.world import Card, Host, Service

Filter = Callable[[Draft, Service, Card, Host], Refusal | None]


def family(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    if service.family != card.family:
        return Refusal(Code.WRONG_FAMILY, {"card": card.id, "family": service.family, "card_family": card.family})
    return None


def compute_capability(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    if card.compute_cap < service.min_compute_cap:
        numbers: Numbers = {"card": card.id, "compute_cap": card.compute_cap, "needed": service.min_compute_cap}
        return Refusal(Code.COMPUTE_CAPABILITY, numbers)
    return None


def sliced(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    """Who must not share the chip at all computes on a hardware slice only."""
    if service.slice_required and not card.slice_of:
        return Refusal(Code.SLICE_REQUIRED, {"card": card.id})
    return None


def card_class(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    if service.card_classes and card.card_class not in service.card_classes:
        return Refusal(Code.WRONG_CLASS, {"card": card.id, "card_class": card.card_class})
    return None


def fast_enough(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    """A large model that must answer fast is never placed on an old card, whatever its owner allowed."""
    needed = draft.policy.latency_compute_cap
    if not large_and_fast(draft, service) or card.compute_cap >= needed:
        return None
    numbers: Numbers = {"card": card.id, "card_class": card.card_class, "compute_cap": card.compute_cap}
    return Refusal(Code.WRONG_CLASS, numbers | {"needed": needed})


def large_and_fast(draft: Draft, service: Service) -> bool:
    """A large model of which fast answers are asked?"""
    fast = service.first_token_s is not None and service.first_token_s < draft.policy.fast_first_token_s
    return fast and service.weights_mib >= draft.policy.hold_large_mib


def pool(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    there = draft.pool(card.id)
    if may_enter(draft, service, there):
        return None
    return Refusal(Code.WRONG_POOL, {"card": card.id, "pool": there.name, "purpose": there.purpose})


def elastic(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    """KV pages on demand need an engine that can; the pool is known, its rule is known, the engine is not here."""
    if draft.pool(card.id).kv != ELASTIC:
        return None
    fits = elastic_fits(draft.book(card.id), service)
    return Refusal(Code.ELASTIC, {"card": card.id, "pool": draft.pool(card.id).name, "would_fit": int(fits)})


def host_heard(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    if silent(host, draft.policy, draft.now) or lost(host, draft.policy, draft.now):
        numbers: Numbers = {"card": card.id, "host": host.name}
        if host.seen_at is not None:
            numbers["silence_s"] = silence_s(host, draft.now)
        return Refusal(Code.HOST_LOST, numbers)
    return None


def preflight(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    return None if host.preflight_ok else Refusal(Code.PREFLIGHT, {"card": card.id, "host": host.name})


def healthy(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    return None if card.healthy else Refusal(Code.CARD_UNHEALTHY, {"card": card.id, "host": host.name})


def cordoned(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    if card.cordoned or host.cordoned:
        return Refusal(Code.CORDONED, {"card": card.id, "host": host.name})
    return None


def image(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    if host.images is not None and service.name not in host.images:
        return Refusal(Code.IMAGE_ABSENT, {"card": card.id, "host": host.name})
    return None


def weights(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    """With what would have to be copied there."""
    if host.weights is not None and service.name not in host.weights:
        numbers: Numbers = {"card": card.id, "host": host.name, "copy_mib": service.weights_mib}
        return Refusal(Code.WEIGHTS_ABSENT, numbers)
    return None


def measured(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    return Refusal(Code.UNMEASURED, {"card": card.id}) if card.unavailable_mib is None else None


def quota(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    """What its tenant may hold of the card's pool, and what this copy would bring it to."""
    return no_start(draft, service, card.pool)


def failed_here(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    """Not where it failed of late, until it is time to try everything again."""
    failures = [f for f in service.failures if f.card == card.id or card.id in f.beside]
    if not failures:
        return None
    last = failures[-1]
    rest = last.at + draft.policy.down_retry_s - draft.now
    if rest <= 0:
        return None
    return Refusal(Code.LOAD_FAILED, {"card": card.id, "fault": last.code, "retry_after_s": rest})


def same_service(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    """Two copies of one service never share a card, asleep ones included."""
    if card.id not in draft.seats_of(service.name):
        return None
    seat = draft.book(card.id).of_service.get(service.name)
    return None if seat is None else Refusal(Code.SAME_SERVICE, {"card": card.id, "replica": seat.id})


def tenants_apart(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    for seat in draft.book(card.id).seats:
        other = seat.service
        if other is None:
            continue
        if other.tenant in service.apart_from or service.tenant in other.apart_from:
            return Refusal(Code.TENANTS_APART, {"card": card.id, "service": other.name})
    return None


def on_two_hosts(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    if two_hosts.may_come(draft, service, host):
        return None
    return Refusal(Code.TWO_HOSTS, {"card": card.id, "host": host.name})


def pressed(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    return no_newcomers(card, draft.policy)


def evicted_here(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    """Not where pressure took it from a moment ago: it would grow there again."""
    times = [e.at for e in draft.world.evictions if e.service == service.name and e.card == card.id]
    rest = max(times, default=draft.now) + draft.policy.evicted_apart_s - draft.now
    if not times or rest <= 0:
        return None
    return Refusal(Code.UNDER_PRESSURE, {"card": card.id, "retry_after_s": rest})


def awake_limit(draft: Draft, service: Service, card: Card, host: Host) -> Refusal | None:
    awake = awake_count(draft.book(card.id))
    if awake >= draft.policy.max_replicas_per_card:
        return Refusal(Code.REPLICA_LIMIT, {"card": card.id, "awake": awake})
    return None


#: What no room on the card would change.
LASTING: list[Filter] = [
    family,
    compute_capability,
    card_class,
    sliced,
    fast_enough,
    pool,
    elastic,
    host_heard,
    preflight,
    healthy,
    cordoned,
    image,
    weights,
    measured,
    pressed,
    quota,
    failed_here,
    same_service,
    tenants_apart,
    on_two_hosts,
    evicted_here,
]
