"""When is the farm whole? Page and gateway answer, every host has reported, what should be hot is ready."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import httpx
import redis

LOOK_S = 0.25
ANSWER_S = 2.0


@dataclass(slots=True)
class Farm:
    """The addresses to ask, and what is expected of the answers."""

    web_url: str
    gateway_url: str
    redis_url: str
    hosts: Collection[str]
    hot: Collection[str]  # services that keep at least one replica

    def missing(self) -> list[str]:
        """What is not there yet, in words; empty when the farm is whole."""
        fronts = [
            name
            for name, url in (("web", f"{self.web_url}/healthz"), ("gateway", f"{self.gateway_url}/readyz"))
            if not self._answers(url)
        ]
        return fronts or missing_of(self._routes(), self.hosts, self.hot)

    def _answers(self, url: str) -> bool:
        try:
            return httpx.get(url, timeout=ANSWER_S, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def _routes(self) -> dict[str, Any]:
        try:
            with redis.Redis.from_url(self.redis_url, socket_timeout=ANSWER_S) as store:
                body: Any = store.get("routes")
        except redis.RedisError:
            return {}
        routes: dict[str, Any] = json.loads(body) if body else {}
        return routes


def missing_of(routes: dict[str, Any], hosts: Collection[str], hot: Collection[str]) -> list[str]:
    """Which hosts have not reported, which hot services are not ready, by the routes blob."""
    if not routes:
        return ["control"]
    seen, services = routes.get("hosts", {}), routes.get("services", {})
    return [f"host {name}" for name in hosts if name not in seen] + [
        f"service {name}" for name in hot if services.get(name, {}).get("state") != "ready"
    ]


def wait(look: Callable[[], list[str]], tend: Callable[[], None], limit_s: float) -> list[str]:
    """Looks until nothing is missing or `limit_s` has passed; what is missing then. `tend` runs between looks."""
    deadline = time.monotonic() + limit_s
    while (missing := look()) and time.monotonic() < deadline:
        tend()
        time.sleep(LOOK_S)
    return missing
