"""What the loop ticks every few seconds: usage into hours, jobs that need a push, tiers when they are due."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from console.policies import change
from workers.control import forecasts, fragments, look_after, moves, reclaims, requests, roll_up, tiers, watch


@shared_task(name="control.roll_up")  # type: ignore[untyped-decorator]
def count_usage() -> None:
    roll_up.run()


@shared_task(name="control.look_after_jobs")  # type: ignore[untyped-decorator]
def look_after_jobs() -> None:
    look_after.run()


@shared_task(name="control.recompute_tiers")  # type: ignore[untyped-decorator]
def recompute_tiers() -> None:
    tiers.run()


@shared_task(name="control.count_starts")  # type: ignore[untyped-decorator]
def count_starts() -> None:
    fragments.count_starts()


@shared_task(name="control.measure_fragmentation")  # type: ignore[untyped-decorator]
def measure_fragmentation() -> None:
    fragments.measure()


@shared_task(name="control.apply_policies")  # type: ignore[untyped-decorator]
def apply_policies() -> None:
    change.apply_due(timezone.now())


@shared_task(name="control.run_requests")  # type: ignore[untyped-decorator]
def run_requests() -> None:
    requests.run()


@shared_task(name="control.tell_requests")  # type: ignore[untyped-decorator]
def tell_requests() -> None:
    requests.tell()


@shared_task(name="control.watch")  # type: ignore[untyped-decorator]
def look_ahead() -> None:
    watch.run()


@shared_task(name="control.count_reclaims")  # type: ignore[untyped-decorator]
def count_reclaims() -> None:
    reclaims.run()


@shared_task(name="control.forecast")  # type: ignore[untyped-decorator]
def forecast() -> None:
    forecasts.run()


@shared_task(name="control.look_at_repack")  # type: ignore[untyped-decorator]
def look_at_repack() -> None:
    moves.look()
