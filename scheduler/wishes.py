"""Who wishes to be ready, for which reason, and in which order they are served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scheduler.decision import CONVENIENCE, Reason
from scheduler.draft import Draft
from scheduler.facts import not_lost
from scheduler.pools import resident_only
from scheduler.quota import owed
from scheduler.scaling import SCALE_OUT, wanted
from scheduler.world import Act, Order, Phase, Service, Tier, Want


@dataclass(frozen=True, slots=True)
class Wish:
    """`count` ready copies of a service. `waiting`: a caller waits, or an operator insists: room may be made.

    `numbers` are told with what grants it.
    """

    service: Service
    reason: Reason
    count: int
    waiting: bool
    numbers: Mapping[str, int | float | str] = field(default_factory=dict)

    @property
    def takes(self) -> bool:
        """May others have to go for it? For a scale-out only such as nobody uses."""
        return self.waiting or self.scales

    @property
    def scales(self) -> bool:
        """One more copy of what is served already."""
        return self.reason in SCALE_OUT


def waited_for(service: Service, now: float) -> bool:
    """Does a caller wait for it, or was one told to come back about now?"""
    demand = service.demand
    return demand.held > 0 or (demand.expected_until is not None and demand.expected_until > now)


def asked_for(draft: Draft, service: Service) -> bool:
    """Does the wish of an operator or a preload still stand? What went after it went knowingly."""
    wished_at = service.wished_at
    if wished_at is None or wished_at > draft.now:
        return False
    if service.last_reclaimed_at is not None and service.last_reclaimed_at >= wished_at:
        return False
    gone = (Phase.DRAINING, Phase.ASLEEP)
    copies = (r for r in draft.of_service(service.name) if r.phase in gone and r.reason in CONVENIENCE)
    return not any(r.want_since >= wished_at for r in copies)


def ordered(draft: Draft, service: Service) -> int:
    """Ready copies that open preload orders ask for."""
    return max((o.count for o in preloads(draft, service)), default=0)


def preloads(draft: Draft, service: Service) -> list[Order]:
    orders = draft.orders_of(service.name)
    return [o for o in orders if o.act is Act.PRELOAD and o.until > draft.now] if orders else []


def evicted(draft: Draft, service: Service) -> int:
    """Ready copies that would be there again if all that pressure took of late were rebuilt; 0: it took none.

    What is starting since then is their replacement.
    """
    oldest = draft.now - draft.policy.rebuild_within_s
    times = [e.at for e in draft.world.evictions if e.open and e.service == service.name and e.at >= oldest]
    if not times:
        return 0
    in_hand = draft.in_hand(service.name)
    coming = sum(r.phase is not Phase.READY and r.want_since >= min(times) for r in in_hand)
    return min(len(in_hand) + max(0, len(times) - coming), service.max_replicas)


def resident(service: Service, now: float) -> bool:
    """Is it within the hours in which it shall always be ready?"""
    return any(begins <= now < ends for begins, ends in service.resident)


def _on_lost_hosts(draft: Draft) -> set[str]:
    """Services that have a copy there, as this plan began: most of a thousand have none."""
    there = draft.fact(not_lost)
    return {r.service for r in draft.world.replicas.values() if not r.cards or r.cards[0] not in there}


def _lost(draft: Draft, service: Service) -> bool:
    return any(r.want is Want.READY and draft.lost(r) for r in draft.of_service(service.name))


def needs(draft: Draft, service: Service) -> list[tuple[int, Reason]]:
    """(ready copies, reason) of each thing that asks for the service; callers first."""
    asked, lost = [], draft.fact(_on_lost_hosts)
    if waited_for(service, draft.now):
        asked.append((1, Reason.HOLD))
    if service.wished_at is not None and asked_for(draft, service):
        asked.append((1, Reason.OPERATOR))
    if draft.orders_of(service.name) and (copies := ordered(draft, service)):
        asked.append((copies, Reason.OPERATOR))
    if lost and service.name in lost and _lost(draft, service):
        asked.append((max(1, service.min_replicas), Reason.REBUILD))
    if draft.world.evictions and (copies := evicted(draft, service)):
        asked.append((copies, Reason.REBUILD))
    if service.tier is Tier.HOT:
        asked.append((1, Reason.MINIMUM))
    if service.pools and resident_only(draft, service):
        asked.append((1, Reason.MINIMUM))
    if service.min_replicas:
        asked.append((service.min_replicas, Reason.MINIMUM))
    if service.resident and resident(service, draft.now):
        asked.append((1, Reason.MINIMUM))
    if service.scaling is not None and (more := wanted(draft, service)) is not None:
        asked.append((more.count, more.reason))
    return asked


def wishes(draft: Draft, among: Iterable[Service] | None = None) -> list[Wish]:
    """All unmet wishes, or those of some: callers by guarantee, priority, and who waits longest, the rest by name."""
    found = []
    for service in draft.services.values() if among is None else among:
        if not (asked := needs(draft, service)):
            continue  # most of a thousand services
        have = len(draft.in_hand(service.name))
        unmet = [(count, reason) for count, reason in asked if count > have]
        if unmet and all(reason in SCALE_OUT for _, reason in unmet):
            found.append(_scale_out(draft, service))
        elif unmet:
            count = max(count for count, reason in unmet if reason not in SCALE_OUT)
            urgent = waited_for(service, draft.now) or any(o.force for o in preloads(draft, service))
            found.append(Wish(service, unmet[0][1], count, urgent))
    promised = {w.service.name for w in found if owed(draft, w.service)} if draft.world.quotas else frozenset[str]()
    return sorted(found, key=lambda w: _order(w, draft.now, w.service.name in promised))


def _scale_out(draft: Draft, service: Service) -> Wish:
    """Once nothing else of the service is unmet: who has none comes before who has some."""
    more = wanted(draft, service)
    assert more is not None
    return Wish(service, more.reason, more.count, waiting=False, numbers=more.numbers)


def _order(wish: Wish, now: float, promised: bool) -> tuple[bool, bool, int, float, str]:
    """`promised`: its company's guarantee covers it; else a more important borrower would take what was just given."""
    since = wish.service.demand.held_since
    return not wish.waiting, not promised, -wish.service.priority, now if since is None else since, wish.service.name
