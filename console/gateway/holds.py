"""Calls that wait for their model: one list per service, bounded, in fair order among tenants."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from console.gateway.errors import too_many_held
from console.gateway.limits import MIB, Limits

TOKENS = "tokens"  # the bound whose waiters show a want of capacity


@dataclass(slots=True, eq=False)
class Waiter:
    service: str
    tenant: str
    stream: bool
    size_bytes: int
    since: float  # epoch seconds, told to control
    queued: str = ""  # its model is ready: it waits for its turn, because of this bound; empty: for a load
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, limit_s: float) -> None:
        """Until the service's routes changed since the last wait, or `limit_s`; either way look again."""
        try:
            async with asyncio.timeout(max(0.0, limit_s)):
                await self.woken.wait()
        except TimeoutError:
            return
        finally:
            self.woken.clear()  # only now: a change while the caller was being told must not be slept over


@dataclass(frozen=True, slots=True)
class Held:
    """What the registration says of one service."""

    held: int
    held_streams: int
    held_since: float | None
    expected_until: float | None = None  # callers who were told to come back are waited for until then
    # not among the held, for their model is ready:
    queued: int = 0  # until tokens in flight end
    limited: int = 0  # until batch calls in flight end


class Holds:
    """All waiters of this process. `changed(service, begun)` is called when a hold begins or ends."""

    def __init__(self, limits: Limits, changed: Callable[[str, bool], None]) -> None:
        self._limits = limits
        self._changed = changed
        self._waiting: dict[str, list[Waiter]] = {}
        self._promises: dict[str, float] = {}  # service → until, epoch
        self._count = self._bytes = 0
        self._queued: dict[str, int] = {}

    def enter(self, service: str, tenant: str, stream: bool, size_bytes: int, *, queued: str = "") -> Waiter:
        """Join the list. Raises `Refused` (429) when it, this process or the memory for bodies is full."""
        waiting = self._waiting.setdefault(service, [])
        full = len(waiting) >= self._limits.held_per_service or self._count >= self._limits.held_in_all
        if full or self._bytes + size_bytes > self._limits.held_bodies_mib * MIB:
            if not waiting:
                del self._waiting[service]
            raise too_many_held(self._limits.retry_after_s)
        waiter = Waiter(service, tenant, stream, size_bytes, time.time())
        waiting.append(waiter)
        self._count += 1
        self._bytes += size_bytes
        self.queue(waiter, queued)
        self._changed(service, not queued)
        return waiter

    def queue(self, waiter: Waiter, queued: str) -> None:
        """It waits for a turn because of a bound, or (empty) for a load: control hears of the latter at once."""
        before, waiter.queued = waiter.queued, queued
        if bool(before) == bool(queued):
            return
        self._queued[waiter.service] = left = self._queued.get(waiter.service, 0) + (1 if queued else -1)
        if not left:
            del self._queued[waiter.service]
        if not queued and waiter in self._waiting[waiter.service]:
            self._changed(waiter.service, True)

    def turn(self) -> None:
        """A call has ended somewhere: of each service the first who waits for a turn looks again."""
        for service in self._queued:
            first = next((waiter for waiter in self.order(service) if waiter.queued), None)
            if first is not None:
                first.woken.set()

    def leave(self, waiter: Waiter) -> None:
        waiting = self._waiting[waiter.service]
        waiting.remove(waiter)
        self.queue(waiter, "")
        if not waiting:
            del self._waiting[waiter.service]
        self._count -= 1
        self._bytes -= waiter.size_bytes
        self._changed(waiter.service, False)

    def promise(self, service: str, seconds: float) -> None:
        """A caller was told to come back: the load goes on for it until then."""
        until = time.time() + min(seconds + self._limits.come_back_s, self._limits.promise_s)
        self._promises[service] = max(until, self._promises.get(service, 0.0))

    def wake(self, services: Collection[str]) -> None:
        """Their routes changed: all waiters look again, in fair order."""
        for service in services:
            for waiter in self.order(service):
                waiter.woken.set()

    def kept(self, services: Collection[str]) -> None:
        """These are ready (or gone): what was promised is done."""
        for service in services:
            self._promises.pop(service, None)

    def order(self, service: str) -> list[Waiter]:
        """One of each tenant in turn, tenants by their first arrival, each tenant's own by arrival."""
        turns: dict[str, int] = {}
        placed: list[tuple[int, int, Waiter]] = []
        for arrival, waiter in enumerate(self._waiting.get(service, ())):
            turn = turns[waiter.tenant] = turns.get(waiter.tenant, 0) + 1
            placed.append((turn, arrival, waiter))
        placed.sort(key=lambda place: place[:2])
        return [waiter for _, _, waiter in placed]

    def of(self, service: str) -> int:
        """Calls that wait for it here, for a load or a turn."""
        return len(self._waiting.get(service, ()))

    def position(self, waiter: Waiter) -> int:
        """From 1."""
        return self.order(waiter.service).index(waiter) + 1

    def all(self) -> dict[str, Held]:
        """Service → what is held and promised; absent is nothing of either."""
        now = time.time()
        self._promises = {name: until for name, until in self._promises.items() if until > now}
        result = {name: Held(0, 0, None, until) for name, until in self._promises.items()}
        for name, waiting in self._waiting.items():
            held = [waiter for waiter in waiting if not waiter.queued]
            streams = sum(waiter.stream for waiter in held)
            since = min((waiter.since for waiter in held), default=None)
            queued = sum(waiter.queued == TOKENS for waiter in waiting)
            limited = len(waiting) - len(held) - queued
            result[name] = Held(len(held), streams, since, self._promises.get(name), queued, limited)
        return result

    def __len__(self) -> int:
        return self._count
