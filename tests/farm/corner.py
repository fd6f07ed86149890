"""A corner of the farm for one test: a pool of one card that nobody is on, services that fit on it one at a time."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

from tests.farm.harness import Farm, wait_for

HOST = "gpu-03"
_MAKE = """
from console.accounts.models import Tenant
from console.catalog.models import Model, Replica, Service
from console.fleet.models import Card, Pool
pool, _ = Pool.objects.get_or_create(name='corner', defaults={{'label': '一张卡'}})
taken = {{uuid for cards in Replica.objects.filter(ended_at=None).values_list('cards', flat=True) for uuid in cards}}
card = Card.objects.filter(host__name='{host}').exclude(uuid__in=taken).order_by('-index')[0]
Card.objects.filter(pk=card.pk).update(pool=pool)
model, _ = Model.objects.get_or_create(slug='corner-2g', defaults=dict(name='corner', weights='corner-2g',
    weights_mib={weights}, kv_bytes_per_token=57344, max_context=32768))
Model.objects.filter(pk=model.pk).update(weights_mib={weights})
for name, priority in {services!r}.items():
    row, _ = Service.objects.update_or_create(name=name, defaults=dict(label=name, tenant=Tenant.objects.first(),
        model=model, weights_mib={weights}, kv_cap_mib=9216, headroom_mib=512, max_model_len=8192, tier='cold',
        priority=priority, profile='online'))
    row.pools.set([pool])
print(card.uuid)
"""


@dataclass
class Corner:
    """Names of services by priority, all bound to one card."""

    farm: Farm
    services: dict[str, int]
    card: str = ""
    weights_mib: int = 2000  # a load of 4 s: init 2, weights 1, warm-up 1

    def __post_init__(self) -> None:
        code = _MAKE.format(host=HOST, weights=self.weights_mib, services=self.services)
        self.card = self.farm.django(code).split()[-1]
        wait_for("the gateway knows the corner", self._known, 20)

    def _known(self) -> bool:
        name = next(iter(self.services))
        headers = {"Authorization": f"Bearer {self.farm.key(name)}"}
        return httpx.get(f"{self.farm.gateway}/v1/models/{name}", headers=headers, timeout=5).status_code == 200

    def rest(self, service: str) -> None:
        """Until its last call is so long ago that it counts as idle for others' sake."""
        query = (
            "select strftime('%s', 'now') - max(strftime('%s', r.last_call_at), strftime('%s', s.last_call_at))"
            " from catalog_replica r join catalog_service s on s.id = r.service_id"
            " where s.name = ? and r.ended_at is null"
        )
        wait_for(f"{service} idle", lambda: (self.farm.rows(query, service)[0][0] or 0) > 6, 30)

    def learned(self, service: str, seconds: float) -> None:
        """Ten loads of it on this host took that long."""
        self.farm.django(
            "from console.catalog.models import *\nfrom console.fleet.models import Host\n"
            f"LoadTime.objects.update_or_create(service=Service.objects.get(name='{service}'), kind='start',"
            f" host=Host.objects.get(name='{HOST}'), defaults={{'seconds': [{seconds}] * 10}})"
        )

    def cordon(self) -> None:
        self.farm.django(
            f"from console.fleet.models import Card\nCard.objects.filter(uuid='{self.card}').update(cordoned=True)"
        )
