"""The parts of one gateway process, and who tells whom."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from pathlib import Path

from console.gateway.breaker import Breaker
from console.gateway.call import Call
from console.gateway.choice import choose
from console.gateway.counts import Counts
from console.gateway.holds import Holds
from console.gateway.latency import Latency
from console.gateway.limits import Limits
from console.gateway.probes import Probes
from console.gateway.registration import Registration
from console.gateway.routes import Replica, Routes, Service
from console.gateway.snapshot import Snapshot
from console.gateway.spool import Spool
from console.gateway.tokens import Sizes
from console.gateway.turns import Bound, batch_most, bound, lane
from console.gateway.wire import Wire
from relay import Address, Client

log = logging.getLogger(__name__)


class Gateway:
    """State in memory only; every part can be looked at by tests. Make it inside a running loop."""

    def __init__(self, name: str, home: Path, redis_url: str, limits: Limits) -> None:
        self.name, self.limits = name, limits
        self.spool = Spool(home / "spool" / name, limits)
        self.snapshot = Snapshot(limits)
        self.routes = Routes(self._routes_changed, self._version_taken)
        self.holds = Holds(limits, self._hold_changed)
        self.counts = Counts(self._emptied, self.holds.turn)
        self.sizes = Sizes(limits)
        self.latency = Latency(name, limits)
        self.breaker = Breaker(limits)
        self.client = Client(connect_s=limits.connect_s)
        self.probes = Probes(self.routes, self.breaker, self.client, self.door_of, self._recovered, limits)
        self.registration = Registration(name, self.routes, self.counts, self.holds, self.probes, limits)
        self.wire = Wire(redis_url)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def ready(self) -> bool:
        return self.snapshot.ready and self.routes.blob.rev > 0

    @property
    def whole(self) -> bool:
        """False once a part has ended by an error: calls go on, but what it kept fresh grows old."""
        return not any(task.done() for task in self._tasks)

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(part, name=name)
            for name, part in {
                "snapshot": self.snapshot.follow(),
                "routes": self.routes.follow(self.wire),
                "registration": self.registration.follow(self.wire),
                "latency": self.latency.follow(self.wire),
                "usage": self.spool.follow(self.wire, self.name),
                "probes": self.probes.follow(),
            }.items()
        ]
        for task in self._tasks:
            task.add_done_callback(_report_end)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        async with self.wire.patiently("end"):
            await self.wire.unregister(self.name)
        await self.wire.close()
        await self.snapshot.close()
        self.client.close()
        self.spool.close()

    def pick(self, service: Service, call: Call, *, but: Collection[int] = ()) -> Replica | Bound | None:
        """A replica with room for the call; else what it must wait for at those that would take it; None: there is
        none. `but`: replicas left out besides those it tried."""
        blob, usable, tried = self.routes.blob, self.breaker.usable, {*call.tried, *but}
        there = [(r, bound(blob, self.counts, r, call)) for r in lane(service, call)]
        free = choose([r for r, why in there if why is None], tried, usable, self.counts.of)
        if free is not None:
            return free
        return next((why for r, why in there if why and r.id not in tried and usable(r.id)), None)

    def why_batch(self, service: Service) -> str:
        """Of the tightest limit on batch calls where the service runs; empty: none."""
        blob = self.routes.blob
        found = [(batch_most(blob, r, card), r, card) for r in service.replicas for card in r.batch]
        limits = [(most, r, card) for most, r, card in found if most is not None]
        if not limits:
            return ""
        most, replica, card = min(limits, key=lambda one: one[0])
        return "day" if most == replica.batch_calls else blob.batch[card].why

    def door_of(self, replica: Replica) -> tuple[Address, str] | None:
        """Address and bearer token of the replica's host; None when the routes do not say."""
        host = self.routes.blob.hosts.get(replica.host)
        try:
            return (Address.of(host.door), self.snapshot.door_token(replica.host)) if host else None
        except ValueError:
            log.error("door of %s is no address", replica.host)
            return None

    def _hold_changed(self, service: str, begun: bool) -> None:
        if begun:
            self.registration.nudge(service)
        else:
            self.registration.soon()

    def _routes_changed(self, names: set[str]) -> None:
        services = self.routes.blob.services
        self.breaker.forget_others(self.routes.ids)
        self.holds.kept({name for name in names if name not in services or services[name].replicas})
        self.holds.wake(names)

    def _version_taken(self) -> None:
        self.registration.soon()

    def _emptied(self, replica: int) -> None:
        if replica not in self.routes.ids:
            self.registration.soon()

    def _recovered(self, replica: Replica) -> None:
        self.holds.wake({name for name, service in self.routes.blob.services.items() if replica in service.replicas})


def _report_end(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical("part %s of the gateway ended", task.get_name(), exc_info=error)
