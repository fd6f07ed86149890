"""What a real load says of the storage it read from."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from console import state
from console.catalog.models import Reads, Replica, Service
from console.fleet.models import Host
from scheduler import reads as core
from scheduler.storage import learned, loader_of
from scheduler.world import Phase


def learn(row: Any, took_s: float) -> None:
    """One start that ended well; beside another load it shared the storage, and says nothing of it."""
    others = Replica.objects.filter(host_id=row.host_id, ended_at=None, phase=Phase.STARTING).exclude(pk=row.pk)
    if others.exists():
        return
    rules = state.policy()
    name = Service.objects.values_list("name", flat=True).get(pk=row.service_id)
    service = state.services_named([name], rules)[name]
    storage = Host.objects.values_list("storage", flat=True).get(pk=row.host_id)
    row_of, _ = Reads.objects.get_or_create(host_id=row.host_id, loader=loader_of(storage, service))
    known = core.Reads(*row_of.sums)
    sums = list(astuple(learned(rules, known, service.weights_mib, took_s)))
    Reads.objects.filter(pk=row_of.pk, loads=row_of.loads).update(sums=sums, loads=row_of.loads + 1)
