"""Services that nobody called before: each test makes its own, so that none depends on who ran before it."""

from __future__ import annotations

import itertools

import httpx

from tests.farm.harness import Farm, wait_for

_MAKE = """
from console.catalog.models import Service
row = Service.objects.get(name={like!r})
pools = list(row.pools.all())
row.pk, row.name, row.label, row.last_call_at = None, {name!r}, {name!r}, None
row.save(force_insert=True)
row.pools.set(pools)
"""


_numbers = itertools.count(1)


def cold(farm: Farm, like: str) -> str:
    """Another service of that kind, under a name of its own, once the gateway knows it."""
    name = f"{like}-{next(_numbers)}"
    farm.django(_MAKE.format(like=like, name=name))
    headers = {"Authorization": f"Bearer {farm.key(name)}"}
    address = f"{farm.gateway}/v1/models/{name}"
    wait_for(f"the gateway knows {name}", lambda: httpx.get(address, headers=headers, timeout=5).status_code == 200, 30)
    return name
