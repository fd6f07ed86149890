"""A paper farm driven by real ticks over a real database: everything but Redis, processes and time."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from django.db import transaction

from console.catalog.models import Replica
from console.fleet.models import Host
from console.wire import Gateways, Latencies, Registration, ReplicaLatency, ServiceCount
from tests.control.paper import PaperHost
from workers.control import lease
from workers.control.record import Recorder
from workers.control.tick import Outcome, Tick

START = 1_795_949_446.0


@dataclass
class PaperFarm:
    """`tick()` moves the clock a second, exchanges messages with all hosts and returns the outcome."""

    hosts: dict[str, PaperHost]
    token: int
    now: float = START
    held: dict[str, tuple[int, float]] = field(default_factory=dict)  # service → (callers, since)
    called: dict[str, float] = field(default_factory=dict)
    in_flight: dict[int, int] = field(default_factory=dict)
    routes_version: int | None = None  # None: the gateway keeps up
    known: bool = True
    silent: set[str] = field(default_factory=set)
    outcome: Outcome | None = None
    p99_ms: dict[int, float] = field(default_factory=dict)  # replica → as the gateways measured
    disturbance_pct: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ticker = Tick(self.token, Recorder(self.token))

    def gateways(self) -> Gateways:
        version = self.routes_version
        if version is None:
            version = lease.route_version()
        services = {
            name: ServiceCount(count, 0, since, self.called.get(name)) for name, (count, since) in self.held.items()
        }
        services |= {n: ServiceCount(last_call_at=t) for n, t in self.called.items() if n not in services}
        counts = {str(replica): calls for replica, calls in self.in_flight.items()}
        ids = self.p99_ms.keys() | self.disturbance_pct.keys()
        seen = {i: ReplicaLatency(self.p99_ms.get(i), self.disturbance_pct.get(i)) for i in ids}
        registered = Registration("gw1", "b", self.now, version, counts, services)
        return Gateways(self.known, (registered,), Latencies(self.now, {}, seen))

    def tick(self, seconds: float = 1.0) -> Outcome:
        self.now += seconds
        bodies = {}
        for host in self.hosts.values():
            if host.name not in self.silent:
                bodies |= host.body(self.now)
        with transaction.atomic():
            lease.fence(self.token)
            self.outcome = self.ticker.run(bodies, self.gateways(), self.now)
        for want in self.outcome.wants:
            if want.host not in self.silent:
                self.hosts[want.host].take(want, self.now)
        return self.outcome

    def call(self, service: str, callers: int = 1) -> None:
        self.held[service] = (callers, self.now)
        self.called[service] = self.now

    def until(self, reached: object, within: int = 60) -> float:
        """Tick until `reached()`; the seconds it took."""
        began = self.now
        for _ in range(within):
            self.tick()
            if reached():  # type: ignore[operator]
                return self.now - began
        raise AssertionError(f"not within {within} s: {list(Replica.objects.values('service__name', 'want', 'phase'))}")

    def ready(self, service: str) -> list[Replica]:
        return list(Replica.objects.filter(service__name=service, phase="ready", want="ready", ended_at=None))


@pytest.fixture
def token(db: None) -> int:
    lease.ensure()
    taken = lease.take("test")
    assert taken is not None
    return taken


@pytest.fixture
def farm(token: int) -> PaperFarm:
    """Call after the rows of hosts and services are there: `farm.hosts` is read from the database at first use."""
    return PaperFarm(_Hosts(), token)


class _Hosts(dict[str, PaperHost]):
    """Paper hosts for the rows that are there when somebody looks."""

    def values(self):  # type: ignore[no-untyped-def]
        for row in Host.objects.prefetch_related("cards"):
            self[row.name]
        return super().values()

    def __missing__(self, name: str) -> PaperHost:
        cards = list(Host.objects.get(name=name).cards.values_list("uuid", flat=True))
        self[name] = PaperHost(name, cards)
        return self[name]
