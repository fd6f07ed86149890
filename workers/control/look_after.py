"""Jobs that need a push: not taken, or left behind by a worker that died; and what is due once a day."""

from __future__ import annotations

from datetime import timedelta

from celery import current_app
from django.db.models import F
from django.utils import timezone

from console.jobs.models import Daily, Job

TAKE_WITHIN = timedelta(seconds=10)
MOST_TRIES = 3
DAILY = {"advise": timedelta(minutes=15), "prune": timedelta(days=1)}


def run() -> None:
    now = timezone.now()
    left = Job.objects.filter(state=Job.State.RUNNING, lease_until__lt=now)
    left.filter(tries__gte=MOST_TRIES).update(
        state=Job.State.FAILED, ended_at=now, note=f"执行进程中断 {MOST_TRIES} 次，已放弃"
    )
    left.filter(tries__lt=MOST_TRIES).update(state=Job.State.WAITING, holder="", note="执行进程中断，重新开始")
    for kind, every in DAILY.items():
        _due(kind, every)
    waiting = Job.objects.filter(state=Job.State.WAITING).order_by("pk").values_list("pk", flat=True)
    for job in waiting[:100]:
        push(job)


def push(job: int) -> None:
    """Ask a jobs worker to take it; a message too many finds the job taken."""
    current_app.send_task("jobs.run", args=[job], queue="jobs", expires=TAKE_WITHIN.total_seconds(), retry=False)


def _due(kind: str, every: timedelta) -> None:
    """Start daily work once: the row is claimed by whoever moves its time."""
    now = timezone.now()
    row, new = Daily.objects.get_or_create(name=kind, defaults={"done_at": now})
    if new or not Daily.objects.filter(name=kind, done_at__lte=now - every).update(done_at=now):
        return
    Job.objects.create(kind=kind)


def cancel(job: int) -> bool:
    """Ask a job to end; True when there was something to end."""
    waiting = Job.objects.filter(pk=job, state=Job.State.WAITING)
    if waiting.update(state=Job.State.CANCELLED, ended_at=timezone.now()):
        return True
    return bool(Job.objects.filter(pk=job, state=Job.State.RUNNING).update(cancel=True, tries=F("tries")))
