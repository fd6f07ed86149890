"""The rows a World is made of, as tuples with the names of their columns where there are many.

A thousand models take three times as long as a thousand tuples, and the loop reads them every second: what stands as
it stood is not even translated again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model, Sum
from django.db.models.base import ModelState

from console.catalog.models import Order, Replica, Scaling, Service
from console.fleet.models import Card, Host, Pool
from console.policies.models import PolicyValue
from console.repack import proposals
from console.same_rows import Standing
from console.usage.models import HourlyCalls

M = TypeVar("M", bound=Model)
REPLICAS = Standing(
    lambda: Replica.objects.filter(ended_at=None),
    "pk", "service__name", "cards", "want", "phase", "attempt", "phase_attempt", "kv_granted_mib", "measured_mib",
    "residue_mib", "phase_since", "want_since", "loaded_at", "last_call_at", "door_in_flight", "unrouted_version",
    "reason", "drain_at", "stage", "left_alone_until", "failures_here", "failed_at", "fault", "fatal", "can_sleep",
    "progress", "running", "waiting", "external",
    "quiet_p99_ms", "kv_used_pct", "kv_full_samples",
)  # fmt: skip
SERVICES = Standing(
    lambda: Service.objects.order_by("pk"),
    "pk", "name", "tenant__slug", "weights_mib", "kv_cap_mib", "headroom_mib", "overhead_mib", "profile", "tier",
    "priority", "min_replicas", "max_replicas", "card_classes", "model__min_compute_cap", "max_model_len",
    "model__kv_bytes_per_token", "whitelisted_until", "first_token_s", "can_sleep", "hold_cap_s", "failures",
    "wished_at", "last_reclaimed_at", "last_call_at", "max_num_seqs", "cards_per_replica", "starts_28d",
    "p99_target_ms",
    "slice_required",
    "resident_hours", "batch_hours", "let_go_at", "model__shards",
)  # fmt: skip


def _columns(model: type[Model]) -> tuple[str, ...]:
    """All of a model's own, in the order in which it takes them."""
    return tuple("pk" if field.primary_key else field.attname for field in model._meta.concrete_fields)


CARDS = Standing(lambda: Card.objects.order_by(), *_columns(Card))
HOSTS = Standing(lambda: Host.objects.order_by(), *_columns(Host))
POOLS = Standing(lambda: Pool.objects.order_by(), *_columns(Pool))
POOL_TENANTS = Standing(lambda: Pool.tenants.through.objects.order_by(), "pk", "pool_id", "tenant__slug")
#: What the planner needs of a card, in the order of the board.
PLANNED_CARDS = Standing(
    lambda: Card.objects.order_by("host__name", "index"),
    "pk", "uuid", "host_id", "host__name", "index", "card_class", "compute_cap", "price_fen_h", "pool__name",
    "cordoned", "total_mib", "reserved_mib", "free_mib", "baseline_mib", "healthy", "group", "pressed_samples",
    "slice_of", "release", "batch_calls", "batch_calls_at", "batch_lowered_at",
)  # fmt: skip
POLICY_VALUES = Standing(lambda: PolicyValue.objects.order_by("pk"), "pk", "layer", "subject", "name", "value")
PLANNED_HOSTS = Standing(
    lambda: Host.objects.filter(declared_gone=False),
    "pk", "name", "seen_at", "memory_mib", "bandwidth_mib_s", "cordoned", "maintenance_at", "rack", "storage",
)  # fmt: skip
ORDERS = Standing(
    lambda: Order.objects.filter(done_at=None).order_by("id"),
    "id", "act", "service__name", "until", "replica_id", "count", "force",
)  # fmt: skip
MOVES = Standing(
    lambda: proposals.may_act().order_by("proposal_id", "number"),
    "id", "proposal_id", "number", "replica_id", "service__name", "target", "copy_id",
)  # fmt: skip
NAMES = Standing(lambda: Service.objects.order_by(), "pk", "name")
POOLS_OF = Standing(lambda: Service.pools.through.objects.order_by(), "pk", "service_id", "pool__name")


def card_rows(only: Collection[int] | None = None) -> list[Card]:
    """In the order of the board, each with its host and pool: one object for all cards of a host, not one each.

    `only`: of these hosts.
    """
    if only is None:
        machines, rows = HOSTS.all(), CARDS.all()
    else:
        machines = HOSTS.of(Host.objects.order_by().filter(pk__in=only))
        rows = CARDS.of(Card.objects.order_by().filter(host__in=only))
    hosts = {one.pk: one for one in _whole(Host, machines)}
    pools = {one.pk: one for one in _whole(Pool, POOLS.all())}
    found = list(_whole(Card, (row for row in rows if row.host_id in hosts)))
    for card in found:  # a plain assignment would check each of a thousand
        card._state.fields_cache = {"host": hosts[card.host_id], "pool": pools[card.pool_id]}
    return sorted(found, key=lambda card: (hosts[card.host_id].name, card.index))


def _whole(model: type[M], rows: Iterable[Any]) -> Iterator[M]:
    """What `from_db` makes of rows of all columns, without its call for each of thirty fields of 300 cards a page."""
    names = [field.attname for field in model._meta.concrete_fields]
    for row in rows:
        one = model.__new__(model)
        one.__dict__.update(zip(names, row, strict=True))
        one._state = ModelState()
        one._state.adding, one._state.db = False, DEFAULT_DB_ALIAS
        yield one


#: Calls, and mean seconds of one good answer (None: unknown), by service name.
Week = Mapping[str, tuple[int, float | None]]
Sums = tuple[int, int, int]  # calls, milliseconds of good answers, good answers


def week(since: datetime, only: Collection[str] | None = None) -> Week:
    """Of the hours since then. `only`: of these services."""
    return {name: told(sums) for name, sums in calls(since, only=only).items()}


def calls(since: datetime, until: datetime | None = None, only: Collection[str] | None = None) -> Mapping[str, Sums]:
    """By service name. `until`: of the hours before."""
    rows = HourlyCalls.objects.filter(hour__gte=since).values_list("service")
    rows = rows if only is None else rows.filter(service__in=only)
    rows = rows if until is None else rows.filter(hour__lt=until)
    sums = rows.annotate(n=Sum("calls"), ms=Sum("total_ms"), good=Sum("ok")).order_by()
    return {name: (n, ms, good) for name, n, ms, good in sums}


def told(sums: Sums) -> tuple[int, float | None]:
    n, ms, good = sums
    return n, ms / good / 1000 if good else None


def pools() -> Iterator[tuple[Any, frozenset[str]]]:
    """(row, slugs of the companies it is for; none: any). Two queries."""
    tenants: dict[int, set[str]] = defaultdict(set)
    for link in POOL_TENANTS.all():
        tenants[link.pool_id].add(link.tenant__slug)
    for row in POOLS.all():
        yield row, frozenset(tenants.get(row.pk, ()))


def cards() -> list[Any]:
    """In the order of the board, as far as a plan needs them."""
    return PLANNED_CARDS.all()


def replicas() -> list[Any]:
    """Those that have not ended."""
    return REPLICAS.all()


ScalingRow = tuple[int, str, int, int, datetime | None, int, datetime | None]
SCALINGS = Standing(
    lambda: Scaling.objects.order_by(),
    "service_id", "looks", "raised_to", "raised_waiting", "raised_at", "came_from", "came_from_at",
)  # fmt: skip


def scalings() -> Iterable[ScalingRow]:
    """(service, looks, raised to, waiting then, raised at, came from, came from at) of services that may scale."""
    return SCALINGS.all()


def service_keys() -> Mapping[str, int]:
    """Of all services, by name."""
    return {row.name: row.pk for row in NAMES.all()}


NO_POOLS: frozenset[str] = frozenset()


def services(names: Iterable[str] | None = None) -> Iterator[tuple[Any, frozenset[str]]]:
    """(row, names of its pools) of these services, or of all; rows as tuples with the names of the columns."""
    if names is None:
        rows, links = SERVICES.all(), POOLS_OF.all()
    else:
        rows = SERVICES.of(Service.objects.order_by("pk").filter(name__in=names))
        links = POOLS_OF.of(Service.pools.through.objects.order_by().filter(service__name__in=names))
    named = _named(links)
    frozen = {pk: frozenset(pools) for pk, pools in named.items()}
    for row in rows:
        yield row, frozen.get(row.pk, NO_POOLS)


def pools_of() -> Mapping[int, set[str]]:
    """Names of the pools that services name, by the service's id."""
    return _named(POOLS_OF.all())


def _named(links: Iterable[Any]) -> Mapping[int, set[str]]:
    found: dict[int, set[str]] = defaultdict(set)
    for link in links:
        found[link.service_id].add(link.pool__name)
    return found
