"""Whether engines answer, seen from here: of broken replicas when their pause is over, of hosts nobody called lately.

What a host's engines answered last goes to control, which then knows a silent agent from a dead host.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from console.gateway.breaker import Breaker
from console.gateway.limits import Limits
from console.gateway.routes import Replica, Routes
from relay import Address, Client, RelayError

DoorOf = Callable[[Replica], tuple[Address, str] | None]


class Probes:
    """`recovered(replica)` is called when a broken one answers again."""

    def __init__(
        self,
        routes: Routes,
        breaker: Breaker,
        client: Client,
        door_of: DoorOf,
        recovered: Callable[[Replica], None],
        limits: Limits,
    ) -> None:
        self._routes, self._breaker, self._client, self._limits = routes, breaker, client, limits
        self._door_of, self._recovered = door_of, recovered
        self._reached: dict[str, float] = {}  # host → epoch seconds

    def answered(self, host: str) -> None:
        """An engine of this host gave an answer, good or bad: the way to it is open."""
        self._reached[host] = time.time()

    def reached(self) -> dict[str, float]:
        return dict(self._reached)

    async def follow(self) -> None:
        """Look every `probe_s`. Runs until cancelled."""
        while True:
            began = time.monotonic()
            await asyncio.gather(*(self._probe(replica) for replica in self._due()))
            await asyncio.sleep(max(0.0, began + self._limits.probe_s - time.monotonic()))

    def _due(self) -> list[Replica]:
        """Broken replicas whose pause is over, and all of hosts that were not reached for `probe_s`."""
        routed = {r.id: r for service in self._routes.blob.services.values() for r in service.replicas}
        hosts = {replica.host for replica in routed.values()}
        self._reached = {host: at for host, at in self._reached.items() if host in hosts}
        old = time.time() - self._limits.probe_s
        silent = {replica.id for replica in routed.values() if self._reached.get(replica.host, 0.0) < old}
        return [routed[id] for id in silent | ({*self._breaker.due(time.monotonic())} & routed.keys())]

    async def _probe(self, replica: Replica) -> None:
        well = await self._healthy(replica)
        broken = not self._breaker.usable(replica.id)
        now = time.monotonic()
        if well:
            self.answered(replica.host)
        if well and broken:
            self._breaker.served(replica.id)
            self._recovered(replica)
        elif not well and not broken:
            self._breaker.failed(replica.id, now)
        elif not well and replica.id in self._breaker.due(now):
            self._breaker.probe_failed(replica.id, now)

    async def _healthy(self, replica: Replica) -> bool:
        door = self._door_of(replica)
        if door is None:
            return False
        address, token = door
        headers = [("authorization", f"Bearer {token}")]
        target = f"/r/{replica.id}/health"
        try:
            async with asyncio.timeout(self._limits.probe_timeout_s):
                with await self._client.request(address, "GET", target, headers) as response:
                    await response.read(1024)
                    return response.status == 200
        except (RelayError, TimeoutError):
            return False
