"""The rows a World is made of, as tuples with the names of their columns where there are many.

A thousand models take three times as long as a thousand tuples, and the loop reads them every second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Sum

from console.catalog.models import Replica, Scaling, Service
from console.fleet.models import Card, Host, Pool
from console.usage.models import HourlyCalls

REPLICA_COLUMNS = (
    "pk", "service__name", "cards", "want", "phase", "attempt", "phase_attempt", "kv_granted_mib", "measured_mib",
    "residue_mib", "phase_since", "want_since", "loaded_at", "last_call_at", "door_in_flight", "unrouted_version",
    "reason", "drain_at", "stage", "left_alone_until", "failures_here", "failed_at", "fault", "fatal", "can_sleep",
    "progress", "running", "waiting", "external",
    "quiet_p99_ms", "kv_used_pct", "kv_full_samples",
)  # fmt: skip
SERVICE_COLUMNS = (
    "pk", "name", "tenant__slug", "weights_mib", "kv_cap_mib", "headroom_mib", "overhead_mib", "profile", "tier",
    "priority", "min_replicas", "max_replicas", "card_classes", "model__min_compute_cap", "max_model_len",
    "model__kv_bytes_per_token", "whitelisted_until", "first_token_s", "can_sleep", "hold_cap_s", "failures",
    "wished_at", "last_reclaimed_at", "last_call_at", "max_num_seqs", "cards_per_replica", "starts_28d",
    "p99_target_ms",
    "slice_required",
    "resident_hours", "batch_hours", "let_go_at", "model__shards",
)  # fmt: skip


def card_rows(only: Collection[int] | None = None) -> list[Card]:
    """In the order of the board, each with its host and pool: one object for all cards of a host, not one each.

    `only`: of these hosts.
    """
    hosts, pools = Host.objects.in_bulk(only), Pool.objects.in_bulk()
    rows = Card.objects.order_by() if only is None else Card.objects.order_by().filter(host__in=only)
    found = [row for row in rows if row.host_id in hosts]
    host_of, pool_of = Card._meta.get_field("host"), Card._meta.get_field("pool")
    for row in found:  # a plain assignment would check each of a thousand
        host_of.set_cached_value(row, hosts[row.host_id])
        pool_of.set_cached_value(row, pools[row.pool_id])
    return sorted(found, key=lambda row: (row.host.name, row.index))


def week(since: datetime, only: Collection[str] | None = None) -> Mapping[str, tuple[int, float | None]]:
    """Calls since then and mean seconds of one good answer (None: unknown), by service name. `only`: of these."""
    rows = HourlyCalls.objects.filter(hour__gte=since).values_list("service")
    rows = rows if only is None else rows.filter(service__in=only)
    sums = rows.annotate(n=Sum("calls"), ms=Sum("total_ms"), good=Sum("ok")).order_by()
    return {name: (calls, ms / good / 1000 if good else None) for name, calls, ms, good in sums}


def replicas() -> Iterable[Any]:
    """Those that have not ended."""
    return Replica.objects.filter(ended_at=None).values_list(*REPLICA_COLUMNS, named=True)


ScalingRow = tuple[int, str, int, int, datetime | None, int, datetime | None]


def scalings() -> Iterable[ScalingRow]:
    """(service, looks, raised to, waiting then, raised at, came from, came from at) of services that may scale."""
    columns = ("service_id", "looks", "raised_to", "raised_waiting", "raised_at", "came_from", "came_from_at")
    return Scaling.objects.order_by().values_list(*columns)


def services(names: Iterable[str] | None = None) -> Iterator[tuple[Any, frozenset[str]]]:
    """(row, names of its pools) of these services, or of all; rows as tuples with the names of the columns."""
    rows, links = Service.objects.order_by("pk"), Service.pools.through.objects.order_by()
    if names is not None:
        rows, links = rows.filter(name__in=names), links.filter(service__name__in=names)
    named = _named(links)
    for row in rows.values_list(*SERVICE_COLUMNS, named=True):
        yield row, frozenset(named.get(row.pk, ()))


def pools_of() -> Mapping[int, set[str]]:
    """Names of the pools that services name, by the service's id."""
    return _named(Service.pools.through.objects.order_by())


def _named(links: Any) -> Mapping[int, set[str]]:
    found: dict[int, set[str]] = defaultdict(set)
    for service, pool in links.values_list("service_id", "pool__name"):
        found[service].add(pool)
    return found
