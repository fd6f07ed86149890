"""The agent's one door to Redis: it appends reports to its own stream. All its user may do (docs/wire.md)."""

from __future__ import annotations

import logging

import redis

from workers.host.limits import Limits
from workers.messages import HostReport, encode

log = logging.getLogger(__name__)


class Wire:
    def __init__(self, url: str, host: str, limits: Limits) -> None:
        self._key = f"host:{host}:report"
        self._keep = limits.report_keep
        self._away = False
        self._redis: redis.Redis = redis.Redis.from_url(
            url,
            protocol=2,  # one shape of answers, whatever the server speaks
            socket_timeout=3,
            socket_connect_timeout=2,
            health_check_interval=10,
        )

    def send(self, report: HostReport) -> bool:
        """False while Redis is away: the next report says it all again. Said in the log once an outage."""
        try:
            self._redis.xadd(self._key, {"b": encode(report)}, maxlen=self._keep, approximate=True)
        except redis.RedisError as error:
            if not self._away:
                log.warning("reports: Redis is away: %s", type(error).__name__)
            self._away = True
            return False
        if self._away:
            log.warning("reports: Redis is back")
        self._away = False
        return True

    def close(self) -> None:
        self._redis.close()
