"""The gateway's only door to Redis. Away is normal: calls on routed services never wait for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

BELL_BLOCK_MS = 1000
PAUSE_S = 0.3
USAGE_KEPT = 200_000
SLOTS_EXPIRE_S = 600


def connect(url: str, *, single: bool = False) -> Redis:
    return Redis.from_url(
        url,
        protocol=2,  # redis-py answers XREAD as list or dict by protocol: one shape here
        socket_timeout=3,
        socket_connect_timeout=1,
        retry=Retry(NoBackoff(), 0),  # an outage must be seen: after it everything is said again
        single_connection_client=single,
    )


class Wire:
    """Reads of routes, writes of registrations, nudges and usage; every call may raise `RedisError` or `OSError`."""

    def __init__(self, url: str) -> None:
        self._redis = connect(url)
        # Records must arrive in order with no gap (control counts only above its cursor), so they travel on one
        # connection that never reconnects unseen.
        self._usage = connect(url, single=True)
        self._away: set[str] = set()

    @asynccontextmanager
    async def patiently(self, what: str) -> AsyncIterator[None]:
        """Swallows an outage after a short pause; says once that it began and once that it is over."""
        try:
            yield
            if what in self._away:
                self._away.discard(what)
                log.warning("redis is back (%s)", what)
        except (RedisError, OSError, TimeoutError) as error:
            if what not in self._away:
                self._away.add(what)
                log.warning("redis away (%s): %s", what, type(error).__name__)
            await asyncio.sleep(PAUSE_S)

    @property
    def reachable(self) -> bool:
        return not self._away

    async def get(self, key: str) -> bytes | None:
        return cast("bytes | None", await self._redis.get(key))

    async def wait_bell(self, cursor: str) -> tuple[str, bool]:
        """(new cursor, whether the bell rang) after at most a second."""
        found: Any = await self._redis.xread({"routes:bell": cursor}, block=BELL_BLOCK_MS)
        return (found[0][1][-1][0].decode(), True) if found else (cursor, False)

    async def register(self, name: str, body: bytes, at: float, expires_s: int) -> None:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.set(f"gateway:{name}", body, ex=expires_s)
            pipe.zadd("gateways", {name: at})
            await pipe.execute()

    async def unregister(self, name: str) -> None:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.delete(f"gateway:{name}")
            pipe.zrem("gateways", name)
            await pipe.execute()

    async def nudge(self, service: str) -> None:
        await self._redis.xadd("nudge", {"service": service}, maxlen=1000, approximate=True)

    async def send_slot(self, name: str, body: bytes, kept: int) -> None:
        """One slot of latencies; those of a gateway that is gone are forgotten after ten minutes."""
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.xadd(f"gateway:{name}:slots", {"b": body}, maxlen=kept, approximate=False)
            pipe.expire(f"gateway:{name}:slots", SLOTS_EXPIRE_S)
            await pipe.execute()

    async def acknowledged(self, name: str) -> int:
        """Highest usage record of this gateway that control has stored; 0 when it says nothing."""
        return int(await self._usage.get(f"usage:ack:{name}") or 0)

    async def send_usage(self, record: bytes) -> None:
        await self._usage.xadd("usage", {"b": record}, maxlen=USAGE_KEPT, approximate=True)

    async def close(self) -> None:
        for redis in (self._redis, self._usage):
            try:
                await redis.aclose()
            except (RedisError, OSError):
                log.info("redis was away at the end")
