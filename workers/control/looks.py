"""A look at the load of each service that may scale, every few seconds: its row is written, the plan sees it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from console import reading
from console.catalog.models import Scaling
from console.looks import written
from console.writing import update_each
from scheduler import looks
from scheduler import world as core
from scheduler.hosts import host_of, lost
from scheduler.policy import Policy
from scheduler.signals import copies, due, look
from scheduler.world import Replica, World

AT_ONCE = 64  # looks of one round; where more services are to be looked at, they take turns


def take(world: World, rules: Policy, now: float) -> World:
    """The world with the looks that are due. Runs under the fence: nobody else looks meanwhile."""
    of_service: dict[str, list[Replica]] = defaultdict(list)
    for replica in world.replicas.values():
        if not lost(host_of(world, replica), rules, now):  # the plan does not count them either
            of_service[replica.service].append(replica)
    asked = [service for service in world.services.values() if _to_look_at(service, service.name in of_service)]
    seen = {
        service.name: look(service, copies(of_service[service.name]), rules.of_service(service.name), now)
        for service in _in_turn(asked, rules, now)
    }
    if not seen:
        return world
    _write(seen)
    services = {name: replace(world.services[name], scaling=scaling) for name, scaling in seen.items()}
    return replace(world, services={**world.services, **services})


def _to_look_at(service: core.Service, copied: bool) -> bool:
    """With anything to see: copies, calls that wait, or copies at the last look, which are gone now."""
    known = service.scaling
    return service.max_replicas > 1 and bool(copied or service.waiting or (known is not None and known.live > 0))


def _in_turn(asked: list[core.Service], rules: Policy, now: float) -> list[core.Service]:
    """Those that are due; of many the longest unseen, so many that each has its look in time, and no round has all."""
    found = [service for service in asked if due(service, rules.of_service(service.name), now)]
    most = max(AT_ONCE, -(-len(asked) // rules.scale_look_s))
    if len(found) <= most:
        return found
    return sorted(found, key=lambda service: service.scaling.looked_at if service.scaling else 0.0)[:most]


def _write(seen: Mapping[str, looks.Scaling]) -> None:
    """A row that is there is written, one that is not yet is made: nobody else writes them."""
    keys = reading.service_keys()
    rows = {keys[name]: written(scaling) for name, scaling in seen.items() if name in keys}
    new = rows.keys() - set(update_each(Scaling, list(rows.items()), ("looks",)))
    Scaling.objects.bulk_create(
        [Scaling(service_id=pk, looks=rows[pk]) for pk in sorted(new)],
        update_conflicts=True,
        unique_fields=["service"],
        update_fields=["looks"],
    )
