"""A service that its company's quota keeps from starting: by how much, and where to ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from console.catalog.models import Service
from console.fleet.models import Pool
from console.journal.words import Said
from scheduler.decision import Code


@dataclass(frozen=True, slots=True)
class OverQuota:
    """Numbers of the refusal, MiB; `ask`: the form of a request for as much."""

    pool: Pool
    holds_mib: int
    asked_mib: int
    guaranteed_mib: int
    borrowable_mib: int
    needed_mib: int
    tenant: int

    @property
    def ask(self) -> str:
        wanted = {"tenant": self.tenant, "pool": self.pool.pk, "guaranteed_mib": self.guaranteed_mib + self.needed_mib}
        return f"{reverse('request-new', args=['quota'])}?{urlencode(wanted)}"


def over_quota(service: Service, decisions: Sequence[Said]) -> OverQuota | None:
    """`decisions` of the service, newest first: it is kept out while that is the last word. One query if it is."""
    if not decisions or decisions[0].row.refusal != Code.QUOTA_EXCEEDED:
        return None
    numbers = decisions[0].row.numbers
    pool = Pool.objects.filter(name=numbers["pool"]).first()
    names = ("holds_mib", "asked_mib", "guaranteed_mib", "borrowable_mib", "needed_mib")
    if pool is None:
        return None
    return OverQuota(pool=pool, tenant=service.tenant_id, **{name: numbers[name] for name in names})
