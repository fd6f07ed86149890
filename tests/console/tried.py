"""A preview with a result, made by hand: both sides as the job would store them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from console.accounts.models import User
from console.jobs.models import Job
from console.previews.jobs import KIND
from scheduler.simulation.compare import Comparison, Figures, Side

OLD = Figures(
    calls=900, cold_starts=40, waited=60, wait_mean_s=9.0, wait_p95_s=20.0, wait_p99_s=28.0, refused=5, evictions=7,
    reclaims=90, harmful=1, memory_mib_h=2_048_000, fen=512_300,
)  # fmt: skip
NEW = Figures(
    calls=900, cold_starts=28, waited=41, wait_mean_s=8.5, wait_p95_s=19.0, wait_p99_s=28.0, refused=5, evictions=7,
    reclaims=70, harmful=0, memory_mib_h=2_560_000, fen=640_000,
)  # fmt: skip


def side(one: Figures, **tenants: Figures) -> Side:
    return Side(one, {"lowfreq": one}, tenants or {"estate": one}, {"property-service": one}, pressures=0)


def result(old: Figures = OLD, new: Figures = NEW, **more: Any) -> dict[str, Any]:
    both = asdict(Comparison(side(old), side(new)))
    about = {"since": 1.0, "until": 2.0, "calls": 900, "events": 700, "bunched": 300, "hours": 90, "took_s": 12.3}
    return both | about | more


def job(by: User, state: str = "done", **more: Any) -> Job:
    arguments = {
        "by": by.pk, "layer": "group", "subject": "", "changes": {"idle_unload_s": 900},
        "until": "2026-11-30T08:00:00+00:00", "seed": 7,
    }  # fmt: skip
    arguments |= more.pop("arguments", {})
    found = {"result": result()} if state == "done" else {}
    return Job.objects.create(kind=KIND, state=state, arguments=arguments, **found, **more)
