"""What a tenant may hold of a pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quota:
    """MiB that were promised to it, and how far beyond it may go while others leave theirs unused."""

    guaranteed_mib: int
    borrowable_mib: int

    @property
    def limit_mib(self) -> int:
        return self.guaranteed_mib + self.borrowable_mib


#: By (tenant, pool). Absent: no limit, and nothing promised.
Quotas = Mapping[tuple[str, str], Quota]
