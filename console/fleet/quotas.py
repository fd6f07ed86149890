"""Quotas: rows to the core's, and the one way to write them."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.db.models import Sum

from console.accounts.models import Tenant
from console.fleet.models import Pool
from console.fleet.models import Quota as QuotaRow
from console.same_rows import Standing
from scheduler.allotment import Quota

QUOTAS = Standing(
    lambda: QuotaRow.objects.order_by(), "pk", "tenant__slug", "pool__name", "guaranteed_mib", "borrowable_mib"
)


class Overpromised(Exception):
    """The pool's companies would be promised more than it can ever plan with, by `short_mib`."""

    def __init__(self, short_mib: int) -> None:
        super().__init__(short_mib)
        self.short_mib = short_mib


class Overtaken(Exception):
    """It is not any more what the person saw."""


def quotas() -> dict[tuple[str, str], Quota]:
    """By (tenant, pool). One query."""
    rows = QUOTAS.all()
    return {(tenant, pool): Quota(guaranteed, borrowable) for _, tenant, pool, guaranteed, borrowable in rows}


def quota_of(tenant_id: int, pool_id: int) -> Quota | None:
    row = QuotaRow.objects.filter(tenant=tenant_id, pool=pool_id).first()
    return None if row is None else Quota(row.guaranteed_mib, row.borrowable_mib)


def put(tenant: Tenant, pool: Pool, seen: Quota | None, new: Quota | None, plannable_mib: int) -> None:
    """Writes `new` where it still is as `seen`; None: no row. Raises Overtaken, and Overpromised for a guarantee that
    grows beyond what the pool has left."""
    with transaction.atomic():
        Pool.objects.select_for_update().filter(pk=pool.pk).first()  # one at a time: the sum is the pool's
        if new is not None and new.guaranteed_mib > (0 if seen is None else seen.guaranteed_mib):
            others = QuotaRow.objects.filter(pool=pool).exclude(tenant=tenant)
            promised = others.aggregate(mib=Sum("guaranteed_mib"))["mib"] or 0
            if (short := promised + new.guaranteed_mib - plannable_mib) > 0:
                raise Overpromised(short)
        if not _written(tenant, pool, seen, new):
            raise Overtaken


def _written(tenant: Tenant, pool: Pool, seen: Quota | None, new: Quota | None) -> bool:
    if seen is None:
        return new is None or _made(tenant, pool, new)
    mine = QuotaRow.objects.filter(tenant=tenant, pool=pool, **_values(seen))
    return bool(mine.delete()[0] if new is None else mine.update(**_values(new)))


def _made(tenant: Tenant, pool: Pool, new: Quota) -> bool:
    """False where another page made it a moment ago."""
    try:
        with transaction.atomic():
            QuotaRow.objects.create(tenant=tenant, pool=pool, **_values(new))
    except IntegrityError:
        return False
    return True


def _values(quota: Quota) -> dict[str, int]:
    return {"guaranteed_mib": quota.guaranteed_mib, "borrowable_mib": quota.borrowable_mib}
