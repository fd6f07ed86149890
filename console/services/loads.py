"""How long a load or a wake of a service takes on each host, and what that rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from console.catalog.models import LoadTime, Service
from console.fleet.models import Card, Host
from console.forecasts import reads
from console.state import claim_only
from scheduler.estimate import Estimate, load_estimate, wake_estimate
from scheduler.policy import Policy
from scheduler.storage import LocalGain, line, local_gain, reading_s
from scheduler.world import Host as CoreHost
from scheduler.world import LoadTimes, World
from scheduler.world import Service as CoreService


@dataclass(frozen=True, slots=True)
class HostLoad:
    """`times` is how many real loads the estimate rests on; 0: reckoned from bandwidth, not measured."""

    host: str
    load: Estimate
    wake: Estimate
    times: int
    wakes: int
    bandwidth_mib_s: int
    reading_s: float
    gain: LocalGain | None  # what the weights on a local disk would gain; None: they are on one
    alike: int = 0  # further hosts of which the very same is known


def loads(service: Service, rules: Policy) -> list[HostLoad]:
    """One for each host with a card the service may use. Four queries."""
    rows = LoadTime.objects.filter(service=service).select_related("host")
    times = {(row.kind, row.host.name): LoadTimes(tuple(row.seconds)) for row in rows}
    cards = Card.objects.filter(host__declared_gone=False)
    if service.card_classes:
        cards = cards.filter(card_class__in=service.card_classes)
    pools = [pool.pk for pool in service.pools.all()]
    if pools:
        cards = cards.filter(pool__in=pools)
    hosts = list(Host.objects.filter(pk__in=cards.values("host")))
    core = replace(claim_only(service, rules), shards=service.model.shards)
    world = World(
        hosts={
            row.name: CoreHost(row.name, None, bandwidth_mib_s=row.bandwidth_mib_s, storage=row.storage)
            for row in hosts
        },
        reads=reads(),
        cards={},
        services={service.name: core},
        replicas={},
        load_times={(service.name, host): t for (kind, host), t in times.items() if kind == "start"},
        wake_times={(service.name, host): t for (kind, host), t in times.items() if kind == "wake"},
    )
    return [_host(world, rules, core, row, times) for row in hosts]


def _host(
    world: World, rules: Policy, core: CoreService, row: Host, times: Mapping[tuple[str, str], LoadTimes]
) -> HostLoad:
    none, name = LoadTimes(), row.name
    load = load_estimate(world, rules, core, name)
    return HostLoad(
        host=name,
        load=load,
        wake=wake_estimate(world, rules, core, name),
        times=len(times.get(("start", name), none).seconds[-rules.load_times_kept :]),
        wakes=len(times.get(("wake", name), none).seconds[-rules.load_times_kept :]),
        bandwidth_mib_s=round(line(world, rules, core, name).mib_s or 0),
        reading_s=reading_s(world, rules, core, name),
        gain=local_gain(world, rules, core, world.hosts[name], load.seconds),
    )


def summed(found: list[HostLoad]) -> list[HostLoad]:
    """Hosts of which the same is known, as on a farm of one kind where nothing was loaded yet, are one line."""
    kinds: dict[HostLoad, list[HostLoad]] = {}
    for one in found:
        kinds.setdefault(replace(one, host=""), []).append(one)
    return [replace(same[0], alike=len(same) - 1) for same in kinds.values()]
