"""Policies in layers: the group's, over it a pool's, over that a service's; the narrowest value that was set wins.

A `Policy` carries what was set below it, so whoever holds one asks `of_pool` or `of_service` and gets a Policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Layer = Literal["group", "pool", "service"]
Values = Mapping[str, float]

NOTHING: Values = {}


@dataclass(frozen=True, slots=True)
class Overrides:
    """Values set for pools and services, by name of the pool or service and of the field."""

    pools: Mapping[str, Values] = field(default_factory=dict)
    services: Mapping[str, Values] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.pools or self.services)

    def of(self, pool: str, service: str) -> Values:
        """What is set for a service in a pool; either name may be empty."""
        wide, narrow = self.pools.get(pool, NOTHING), self.services.get(service, NOTHING)
        return {**wide, **narrow} if wide and narrow else narrow or wide

    def origin(self, name: str, pool: str, service: str) -> Layer | None:
        """The layer that a value comes from; None: the group's, or nobody set it."""
        if name in self.services.get(service, NOTHING):
            return "service"
        return "pool" if name in self.pools.get(pool, NOTHING) else None


#: Of a policy below which nothing was set: most are, and each plan asks a thousand times.
NOTHING_SET = Overrides()
