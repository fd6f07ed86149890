"""A farm put back as it was found: what a test made, loaded, moved or set is undone, whoever left it and however."""

from __future__ import annotations

import json
from typing import Any

from tests.farm.harness import Farm, wait_for
from workers.simulator.faults import clear_faults

LIMIT_S = 120.0
#: Rows as they were found; and every copy that nobody keeps ready is asked to stop, as by the operator's button.
_PUT_BACK = """
import json
from datetime import timedelta
from django.utils import timezone
from console.catalog.models import Order, Replica, Service
from console.fleet.models import Card, Pool
from console.policies.models import PolicyValue

found, now = json.loads({found!r}), timezone.now()
PolicyValue.objects.all().delete()
PolicyValue.objects.bulk_create(PolicyValue(**row) for row in found['policy'])
for uuid, pool in found['cards']:
    Card.objects.filter(uuid=uuid).exclude(pool_id=pool, cordoned=False).update(pool_id=pool, cordoned=False)
Pool.objects.exclude(mode='enforce').update(mode='enforce')
made = Service.objects.exclude(name__in=found['services'])
made.update(min_replicas=0, tier='cold', whitelisted_until=None)
strays = Replica.objects.filter(ended_at=None).exclude(service__name__in=found['hot'])
for service in set(strays.values_list('service', flat=True)):
    if not Order.objects.filter(service=service, act='stop', done_at=None).exists():
        Order.objects.create(service_id=service, act='stop', force=True, at=now, until=now + timedelta(minutes=10))
"""
_REMOVE = """
from console.catalog.models import Service
Service.objects.exclude(name__in={services!r}).delete()
"""


def found(farm: Farm) -> dict[str, Any]:
    """What a farm is put back to; read before the first test."""
    policy = farm.rows("select layer, subject, name, value from policies_policyvalue")
    return {
        "policy": [dict(zip(("layer", "subject", "name", "value"), row, strict=True)) for row in policy],
        "cards": farm.rows("select uuid, pool_id from fleet_card"),
        "services": [name for (name,) in farm.rows("select name from catalog_service")],
        "hot": farm.ready["hot"],
    }


def tidy(farm: Farm) -> None:
    """As it was found: only what is kept ready is loaded, nothing moves, no order is open."""
    for sim in farm.home.glob("hosts/*/sim"):
        clear_faults(sim)
    put_back = _PUT_BACK.format(found=json.dumps(farm.found))

    def empty() -> bool:
        """Asked again and again: a call that was still held may have brought one more."""
        farm.django(put_back)
        return not loaded(farm) and not farm.rows("select 1 from catalog_order where done_at is null")

    wait_for("nothing is left of what tests loaded", empty, LIMIT_S, 0.5)
    if {name for (name,) in farm.rows("select name from catalog_service")} - set(farm.found["services"]):
        farm.django(_REMOVE.format(services=farm.found["services"]))


def loaded(farm: Farm) -> list[tuple[Any, ...]]:
    """(service, id, phase) of living copies that nobody keeps ready."""
    rows = farm.rows(
        "select s.name, r.id, r.phase from catalog_replica r join catalog_service s on s.id = r.service_id"
        " where r.ended_at is null"
    )
    return [row for row in rows if row[0] not in farm.found["hot"]]
