"""Searches are jobs: filed here, done by a jobs worker, ended by a button."""

from __future__ import annotations

from django.db.models import F
from django.utils import timezone

from console.fleet.models import Pool
from console.jobs.models import Job

KIND = "repack"
UNDER_WAY = (Job.State.WAITING, Job.State.RUNNING)


def ask(pool: Pool, by: int | None) -> bool:
    """Files a search unless one of this pool is waiting or running. `by`: id of the person; None: nightly."""
    if Job.objects.filter(kind=KIND, arguments__pool=pool.name, state__in=UNDER_WAY).exists():
        return False
    Job.objects.create(kind=KIND, arguments={"pool": pool.name, "by": by})
    return True


def cancel(job: int) -> bool:
    """True when there was something to end: one that waits ends at once, one that runs at its next step."""
    mine = Job.objects.filter(pk=job, kind=KIND)
    if mine.filter(state=Job.State.WAITING).update(state=Job.State.CANCELLED, ended_at=timezone.now()):
        return True
    return bool(mine.filter(state=Job.State.RUNNING).update(cancel=True, tries=F("tries")))
