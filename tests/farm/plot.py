"""A plot of the farm for one test: cards of their own in a pool of their own, and services that know no others."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.farm.harness import Farm, wait_for

_MAKE = """
import json
from console.accounts.models import Tenant
from console.catalog.models import Model, Replica, Service
from console.fleet.models import Card, Pool

pool, _ = Pool.objects.get_or_create(name={name!r}, defaults={{'label': {name!r}}})
chosen = []
living = Replica.objects.filter(ended_at=None).values_list('cards', flat=True)
taken = {{uuid for cards in living for uuid in cards}}
for host in {hosts!r}:
    free = Card.objects.filter(host__name=host).exclude(uuid__in=taken).exclude(pool=pool)
    card = free.order_by('-index')[0]
    chosen.append((card.pk, card.uuid))
    Card.objects.filter(pk=card.pk).update(pool=pool)
for name, columns in {services!r}.items():
    kv_bytes = columns.pop('kv_bytes_per_token', 57344)
    weights = columns['weights_mib']
    model, _ = Model.objects.get_or_create(slug=name, defaults=dict(name=name, weights=f'plot-{{weights}}',
        weights_mib=weights, kv_bytes_per_token=kv_bytes, max_context=131072))
    row, _ = Service.objects.update_or_create(name=name, defaults=dict(dict(label=name, model=model,
        tenant=Tenant.objects.first(), tier='cold', tier_fixed=True), **columns))
    row.pools.set([pool])
print(json.dumps(chosen))
"""


@dataclass
class Plot:
    """`hosts`: a card on each that nobody is on; `services`: their columns by name."""

    farm: Farm
    name: str
    hosts: list[str]
    services: dict[str, dict[str, Any]]
    uuids: list[str] = field(default_factory=list)  # in the order of `hosts`
    numbers: list[int] = field(default_factory=list)  # the cards' ids

    def __post_init__(self) -> None:
        code = _MAKE.format(name=self.name, hosts=self.hosts, services=self.services)
        chosen = json.loads(self.farm.django(code).splitlines()[-1])
        self.numbers, self.uuids = map(list, zip(*chosen, strict=True))
        wait_for("the gateway knows the plot", self._known, 20)

    def _known(self) -> bool:
        name = list(self.services)[-1]
        headers = {"Authorization": f"Bearer {self.farm.key(name)}"}
        return httpx.get(f"{self.farm.gateway}/v1/models/{name}", headers=headers, timeout=5).status_code == 200

    def one(self, service: str) -> tuple[int, str, str]:
        """(id, host, card) of its one ready copy."""
        ((pk, host, cards),) = self.farm.replicas(service)
        return pk, host, cards[0]
