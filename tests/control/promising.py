"""Twenty promises out of one pool at once: `python -m tests.control.promising` in a database of its own.

The tests' SQLite lives in memory, where threads share one cache and nobody waits for a lock: a site's does not.
"""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

AT_ONCE, PARTS = 20, 4
THERE_MIB = 40_000


def run() -> dict[str, object]:
    """How many were told what, and what is promised afterwards: each asks for a quarter of the pool."""
    from django.db import connections
    from django.db.models import Sum

    from console.accounts.models import Tenant
    from console.fleet.models import Quota as QuotaRow
    from console.fleet.quotas import Overpromised, put
    from scheduler.allotment import Quota
    from tests import factories

    pool, start = factories.pool(), Barrier(AT_ONCE)
    tenants = [factories.tenant(f"t{n}") for n in range(AT_ONCE)]

    def promise(tenant: Tenant) -> str:
        start.wait(120)
        try:
            put(tenant, pool, None, Quota(THERE_MIB // PARTS, 0), THERE_MIB)
        except Overpromised:
            return "over"
        finally:
            connections.close_all()
        return "promised"

    with ThreadPoolExecutor(AT_ONCE) as threads:
        told = Counter(threads.map(promise, tenants))
    return {"told": told, "mib": QuotaRow.objects.aggregate(mib=Sum("guaranteed_mib"))["mib"]}


def main() -> None:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    print(json.dumps(run()))


if __name__ == "__main__":
    main()
