"""A look at the load of each service that may scale, every few seconds: its row is written, the plan sees it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from console.catalog.models import Scaling, Service
from console.looks import written
from scheduler import world as core
from scheduler.hosts import host_of, lost
from scheduler.policy import Policy
from scheduler.signals import copies, due, look
from scheduler.world import Replica, World


def take(world: World, rules: Policy, now: float) -> World:
    """The world with the looks that are due. Runs under the fence: nobody else looks meanwhile."""
    of_service: dict[str, list[Replica]] = defaultdict(list)
    for replica in world.replicas.values():
        if not lost(host_of(world, replica), rules, now):  # the plan does not count them either
            of_service[replica.service].append(replica)
    seen = {
        service.name: look(service, copies(of_service[service.name]), rules.of_service(service.name), now)
        for service in world.services.values()
        if _to_look_at(service, service.name in of_service, rules, now)
    }
    if not seen:
        return world
    rows = Service.objects.filter(name__in=seen).values_list("name", "pk")
    Scaling.objects.bulk_create(
        [Scaling(service_id=pk, looks=written(seen[name])) for name, pk in rows],
        update_conflicts=True,
        unique_fields=["service"],
        update_fields=["looks"],
    )
    services = {name: replace(world.services[name], scaling=scaling) for name, scaling in seen.items()}
    return replace(world, services={**world.services, **services})


def _to_look_at(service: core.Service, copied: bool, rules: Policy, now: float) -> bool:
    """Due, and with anything to see: copies, calls that wait, or copies at the last look, which are gone now."""
    known = service.scaling
    something = copied or service.waiting or (known is not None and known.live > 0)
    return bool(something) and due(service, rules.of_service(service.name), now)
