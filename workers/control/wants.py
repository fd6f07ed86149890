"""From rows to what a host is told: the whole want of each live host."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec

from console.catalog.models import Replica, Service
from console.fleet.models import Host
from console.same_rows import Standing
from console.state import claim_of, moment
from console.unchanged import Unchanged
from scheduler.policy import Policy
from workers.messages import EngineSpec, HostWant, ReplicaWant

REPLICAS = Standing(
    lambda: Replica.objects.filter(ended_at=None, external=False).order_by("pk"),
    "pk", "host_id", "service_id", "attempt", "want", "cards", "kv_granted_mib", "force",
)  # fmt: skip
SERVICES = Standing(
    lambda: Service.objects.filter(pk__in=Replica.objects.filter(ended_at=None).values("service_id")).order_by(),
    "pk", "name", "weights_mib", "kv_cap_mib", "headroom_mib", "overhead_mib", "cards_per_replica", "max_model_len",
    "max_num_seqs", "can_sleep", "model__weights", "model__kv_bytes_per_token", "model__task",
)  # fmt: skip
_known: Unchanged[ReplicaWant] = Unchanged()
_packed: Unchanged[msgspec.Raw] = Unchanged()

SILENT_S = 15  # a host silent for longer is told nothing: its queue would only grow


def live_hosts(now: float) -> list[Host]:
    return list(Host.objects.filter(seen_at__gte=moment(now) - timedelta(seconds=SILENT_S)))


def silent_hosts(now: float) -> list[str]:
    live = Host.objects.filter(seen_at__gte=moment(now) - timedelta(seconds=SILENT_S))
    return list(Host.objects.exclude(pk__in=live).values_list("name", flat=True))


def whole(hosts: Iterable[Host], policy: Policy, now: float) -> list[HostWant]:
    """One want per host with every replica that has not ended."""
    by_host: dict[int, list[ReplicaWant]] = defaultdict(list)
    by_id = {row.pk: row for row in SERVICES.all()}
    for row in REPLICAS.all():
        by_host[row.host_id].append(_want(row, by_id[row.service_id], policy))
    return [HostWant(host.name, host.want_generation, now, by_host[host.pk]) for host in hosts]


def _want(row: Any, service: Any, policy: Policy) -> ReplicaWant:
    """The same one as long as nothing that it says is another."""
    return _known.of(row.pk, (row, service, policy), partial(_new, row, service, policy))


def _new(row: Any, service: Any, policy: Policy) -> ReplicaWant:
    return ReplicaWant(
        id=row.pk,
        attempt=row.attempt,
        want=row.want,
        service=service.name,
        cards=list(row.cards),
        engine=_engine(service, row.kv_granted_mib, policy),
        force=row.force,
        shutdown_s=policy.drain_min_s,
        stall_s=policy.engine_stall_s,
    )


def packed(want: HostWant) -> dict[str, Any]:
    """The keyword arguments of the `want` task, for the serializer READY_JSON."""
    replicas = _packed.of(want.host, want.replicas, partial(_json, want.replicas))
    return {"host": want.host, "generation": want.generation, "at": want.at, "replicas": replicas}


def _json(replicas: list[ReplicaWant]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(replicas))


def engine(service: Service, kv_granted_mib: int, policy: Policy) -> EngineSpec:
    """The claim as the engine is told it; the share of the card is the host's arithmetic."""
    (row,) = SERVICES.of(Service.objects.filter(pk=service.pk))
    return _engine(row, kv_granted_mib, policy)


def _engine(service: Any, kv_granted_mib: int, policy: Policy) -> EngineSpec:
    claim = claim_of(service, policy)
    return EngineSpec(
        kind="vllm",
        served_name=service.name,
        weights=service.model__weights,
        weights_mib=claim.weights_mib * service.cards_per_replica,
        max_model_len=service.max_model_len,
        max_num_seqs=_max_num_seqs(service, kv_granted_mib, policy),
        kv_bytes_per_token=service.model__kv_bytes_per_token,
        kv_granted_mib=kv_granted_mib,
        fixed_mib=claim.fixed_mib,
        overhead_mib=claim.overhead_mib,
        max_queued=policy.max_queued_calls,
        sleep_mode=service.can_sleep,
        tp=service.cards_per_replica,
        task=service.model__task,
    )


def _max_num_seqs(service: Any, kv_granted_mib: int, policy: Policy) -> int:
    """As many typical calls as the granted KV holds, at least one, at most what is declared."""
    per_call = service.model__kv_bytes_per_token * policy.typical_tokens / service.cards_per_replica
    declared: int = service.max_num_seqs
    fit = math.floor(kv_granted_mib * 2**20 / per_call) if per_call else declared
    return max(1, min(declared, fit))
