"""What this gateway tells control: who it is, which routes it acts on, what it holds and has in flight."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Any

import msgspec

from console.gateway.counts import Counts
from console.gateway.holds import Holds
from console.gateway.limits import Limits
from console.gateway.probes import Probes
from console.gateway.routes import Routes
from console.gateway.wire import Wire

EXPIRES_S = 5
TOGETHER_S = 0.02  # many holds that begin together are said together


class Registration:
    """Writes at least once a second, and at once when told; then the nudges that were asked for before it.

    That order lets the plan a nudge causes see the hold that caused it.
    """

    def __init__(self, name: str, routes: Routes, counts: Counts, holds: Holds, probes: Probes, limits: Limits) -> None:
        self.name, self.boot = name, secrets.token_hex(8)
        self._routes, self._counts, self._holds, self._probes, self._limits = routes, counts, holds, probes, limits
        self._last_calls: dict[str, float] = {}
        self._nudges: set[str] = set()
        self._soon = asyncio.Event()

    def called(self, service: str) -> None:
        """An admitted call: it keeps its service."""
        self._last_calls[service] = time.time()

    def nudge(self, service: str) -> None:
        """Control shall look at once."""
        self._nudges.add(service)
        self._soon.set()

    def soon(self) -> None:
        """Something changed that control waits for."""
        self._soon.set()

    def body(self, at: float) -> bytes:
        held = self._holds.all()
        services: dict[str, dict[str, Any]] = {}
        for name in held.keys() | self._last_calls.keys():
            now = held.get(name)
            services[name] = {
                "held": now.held if now else 0,
                "held_streams": now.held_streams if now else 0,
                "held_since": now.held_since if now else None,
                "last_call_at": self._last_calls.get(name),
                "expected_until": now.expected_until if now else None,
                "queued": now.queued if now else 0,
                "limited": now.limited if now else 0,
            }
        return msgspec.json.encode(
            {
                "name": self.name,
                "boot": self.boot,
                "at": at,
                "routes_version": self._routes.blob.version,
                "in_flight": {str(replica): count for replica, count in self._counts.all().items()},
                "services": services,
                "reached": self._probes.reached(),
            }
        )

    async def follow(self, wire: Wire) -> None:
        """Runs until cancelled. While Redis is away nudges wait: the first registration after it carries the holds."""
        while True:
            async with wire.patiently("registration"):
                self._soon.clear()
                nudges, self._nudges = self._nudges, set()
                at = time.time()
                try:
                    await wire.register(self.name, self.body(at), at, EXPIRES_S)
                    for service in sorted(nudges):
                        await wire.nudge(service)
                except BaseException:
                    self._nudges |= nudges
                    raise
            await self._pause()

    async def _pause(self) -> None:
        await asyncio.sleep(TOGETHER_S)
        try:
            async with asyncio.timeout(self._limits.register_s - TOGETHER_S):
                await self._soon.wait()
        except TimeoutError:
            return
