"""Which layer a page of the policy shows: the group, a pool, or a service."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import Http404
from django.urls import reverse
from django.utils.translation import gettext as _

from console.catalog.models import Service
from console.fleet.models import Pool
from console.policies.models import Layer
from scheduler.layers import Layer as CoreLayer


@dataclass(frozen=True, slots=True)
class Scope:
    """`pool`: whose values lie over the group's here; of a service only where it names a single pool."""

    layer: Layer
    subject: str
    label: str
    pool: str = ""

    @property
    def core(self) -> CoreLayer:
        value: CoreLayer = self.layer.value  # type: ignore[assignment]
        return value

    @property
    def service(self) -> str:
        return self.subject if self.layer is Layer.SERVICE else ""

    @property
    def query(self) -> str:
        return urlencode({"layer": self.layer.value, "subject": self.subject} if self.subject else {})

    @property
    def url(self) -> str:
        return reverse("policies") + (f"?{self.query}" if self.query else "")


def scope_of(layer: str, subject: str) -> Scope:
    """Raises Http404 where there is no such thing."""
    if layer == Layer.POOL:
        pool = Pool.objects.filter(name=subject).first()
        if pool is not None:
            return Scope(Layer.POOL, pool.name, pool.label, pool.name)
    elif layer == Layer.SERVICE:
        service = Service.objects.prefetch_related("pools").filter(name=subject).first()
        if service is not None:
            pools = [pool.name for pool in service.pools.all()]
            return Scope(Layer.SERVICE, service.name, service.label, pools[0] if len(pools) == 1 else "")
    elif layer in ("", Layer.GROUP) and not subject:
        return Scope(Layer.GROUP, "", _("集团默认"))
    raise Http404


def pools() -> list[Scope]:
    return [Scope(Layer.POOL, name, label, name) for name, label in Pool.objects.values_list("name", "label")]
