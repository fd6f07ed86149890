"""Where a replica goes when it goes: to sleep in host memory, or away, and why away."""

from __future__ import annotations

from scheduler.decision import Code, Refusal
from scheduler.draft import Draft
from scheduler.estimate import load_estimate
from scheduler.hold import hold_cap_s
from scheduler.hosts import host_of
from scheduler.kept import whitelisted
from scheduler.memory import HUNDRED
from scheduler.victims import used
from scheduler.wishes import waited_for
from scheduler.world import Host, Phase, Replica, Service, Tier, Want


def may_sleep(draft: Draft, replica: Replica) -> bool:
    """By tier, by what engine and service can, by the card's limit of sleepers, by the host's memory."""
    service = draft.services.get(replica.service)
    return service is not None and service.tier is not Tier.COLD and why_no_sleep(draft, replica) is None


def sleeps_idle(draft: Draft, replica: Replica) -> bool:
    """The same of one that goes though nobody waits for its room: then a cold one may sleep, too."""
    service = draft.services.get(replica.service)
    if service is None or service.tier is not Tier.COLD:
        return may_sleep(draft, replica)
    return _cold_sleeps(draft, replica, service) and why_no_sleep(draft, replica) is None


def _cold_sleeps(draft: Draft, replica: Replica, service: Service) -> bool:
    """Would its next caller's hold be over before it were loaded, and is there room in the share for cold sleepers?"""
    host = host_of(draft.world, replica)
    return host is not None and outlasts_hold(draft, service, host) and _in_share(draft, replica, service, host)


def _in_share(draft: Draft, replica: Replica, service: Service, host: Host, gone: int | None = None) -> bool:
    """Do cold sleepers stay within their share of host memory and seats with this one, and without `gone`?"""
    share = draft.policy.cold_sleep_pct
    cold = [r for r in _cold_sleepers(draft, host) if r.id != gone]
    weights = sum(draft.services[r.service].weights_mib for r in cold) + service.weights_mib
    seats = max(sum(card in r.cards for r in cold) + 1 for card in replica.cards)
    fits = weights * HUNDRED <= _for_sleepers_mib(draft, host) * share
    return fits and seats * HUNDRED <= draft.policy.max_sleepers_per_card * share


def gives_way(draft: Draft, replica: Replica) -> Replica | None:
    """The cold sleeper, unused for longest, that stops so that this one may sleep; None: none would help, or need."""
    service, host = draft.services.get(replica.service), host_of(draft.world, replica)
    if service is None or host is None or sleeps_idle(draft, replica) or not (service.can_sleep and replica.can_sleep):
        return None
    cold = service.tier is Tier.COLD
    if cold and not (draft.policy.cold_sleep_pct and outlasts_hold(draft, service, host)):
        return None
    may_go = [
        r for r in _cold_sleepers(draft, host) if _stays_for_nobody(draft, r) and used(draft, r) < used(draft, replica)
    ]
    for one in sorted(may_go, key=lambda r: (used(draft, r), r.id)):
        weights = draft.services[one.service].weights_mib
        seats = (_sleepers(draft, card) - (card in one.cards) for card in replica.cards)
        fits = service.weights_mib <= host_room_mib(draft, host) + weights
        fits = fits and max(seats) < draft.policy.max_sleepers_per_card
        if fits and (not cold or _in_share(draft, replica, service, host, one.id)):
            return one
    return None


def _stays_for_nobody(draft: Draft, sleeper: Replica) -> bool:
    service = draft.services[sleeper.service]
    settled = sleeper.phase is Phase.ASLEEP and sleeper.want is Want.ASLEEP and sleeper.id not in draft.touched
    return settled and not waited_for(service, draft.now) and not whitelisted(draft, sleeper, service)


def outlasts_hold(draft: Draft, service: Service, host: Host) -> bool:
    """Is it known from real loads there that a plain caller of the stopped service would wait in vain?"""
    answers, key = draft.fact(_nothing_known), (service.name, host.name)
    if key not in answers:
        load = load_estimate(draft.world, draft.policy, service, host.name)
        answers[key] = not load.rough and load.seconds > hold_cap_s(draft.policy, service)
    return answers[key]


def _nothing_known(draft: Draft) -> dict[tuple[str, str], bool]:
    """Answers of `outlasts_hold`, by service and host, in the course of a plan."""
    return {}


def _cold_sleepers(draft: Draft, host: Host) -> list[Replica]:
    """Each of the host once."""
    found = {r.id: r for card in draft.cards_of(host.name) for r in draft.on_card(card) if _cold_sleeper(draft, r)}
    return list(found.values())


def _cold_sleeper(draft: Draft, replica: Replica) -> bool:
    service = draft.services.get(replica.service)
    return service is not None and service.tier is Tier.COLD and falling_asleep(replica)


def why_no_sleep(draft: Draft, replica: Replica) -> Refusal | None:
    """What stands in the way of a sleep, whatever the tier; None: nothing does."""
    service, host = draft.services.get(replica.service), host_of(draft.world, replica)
    if service is None or host is None or not (service.can_sleep and replica.can_sleep):
        return Refusal(Code.CANNOT_SLEEP)
    room, weights = host_room_mib(draft, host), service.weights_mib
    if weights > room:
        return Refusal(Code.HOST_MEMORY, {"host": host.name, "short_mib": weights - room, "host_room_mib": room})
    for card in replica.cards:
        if (sleepers := _sleepers(draft, card)) >= draft.policy.max_sleepers_per_card:
            return Refusal(Code.SLEEPER_LIMIT, {"card": card, "asleep": sleepers})
    return None


def falling_asleep(replica: Replica) -> bool:
    """Asleep, or told to be."""
    return replica.phase is Phase.ASLEEP or (replica.phase is Phase.DRAINING and replica.want is Want.ASLEEP)


def _sleepers(draft: Draft, card: str) -> int:
    return sum(falling_asleep(r) for r in draft.on_card(card))


def host_room_mib(draft: Draft, host: Host) -> int:
    """Host memory that further sleepers' weights may take: all but the floor and those who sleep there."""
    cards = draft.cards_of(host.name)
    return _for_sleepers_mib(draft, host) - (draft.table(_sleeping_mib)[cards[0]] if cards else 0)


def _sleeping_mib(draft: Draft, card: str) -> int:
    """What sleepers' weights take on the host of the card."""
    cards = draft.cards_of(draft.world.cards[card].host)
    sleepers = {r.id: r.service for c in cards for r in draft.on_card(c) if falling_asleep(r)}
    return sum(draft.services[s].weights_mib for s in sleepers.values() if s in draft.services)


def _for_sleepers_mib(draft: Draft, host: Host) -> int:
    """Host memory that sleepers may take in all."""
    floor = max(draft.policy.host_floor_mib, host.memory_mib * draft.policy.host_floor_pct // HUNDRED)
    return host.memory_mib - floor
