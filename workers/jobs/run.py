"""Taking a job: the row is claimed by conditional update, its lease renewed while it goes on.

A killed worker's job has an expired lease: control lets it be taken again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterator
from datetime import timedelta
from socket import gethostname
from typing import Any
from uuid import uuid4

from celery import shared_task
from django.db.models import F, Q
from django.utils import timezone

from console.jobs.models import Job
from workers.jobs import advise, preview, prune, repack

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=30)

#: A job is a generator: it yields its progress (0..1) between steps, and may be ended there. What it returns, if
#: anything, is its result.
KINDS: dict[str, Callable[[dict[str, Any]], Iterator[float]]] = {
    "advise": advise.run,
    "policy-preview": preview.run,
    "prune": prune.run,
    "repack": repack.run,
}


@shared_task(name="jobs.run")  # type: ignore[untyped-decorator]
def run(job: int) -> None:
    work(job)


def work(job: int) -> None:
    """Take the job if it is free, do it, and leave its row in an end state."""
    me = f"{gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
    now = timezone.now()
    taken = Job.objects.filter(pk=job, state=Job.State.WAITING).update(
        state=Job.State.RUNNING, holder=me, lease_until=now + LEASE, started_at=now, tries=F("tries") + 1
    )
    if not taken:
        return
    row = Job.objects.get(pk=job)
    mine = Job.objects.filter(pk=job, holder=me, state=Job.State.RUNNING)
    try:
        result: list[Any] = []
        for progress in _with_result(KINDS[row.kind]({**row.arguments, "job": job}), result):
            kept = mine.filter(cancel=False).update(progress=progress, lease_until=timezone.now() + LEASE)
            if not kept:
                mine.filter(Q(cancel=True)).update(state=Job.State.CANCELLED, ended_at=timezone.now())
                return
    except Exception as error:
        log.exception("job %d (%s)", job, row.kind)
        mine.update(state=Job.State.FAILED, ended_at=timezone.now(), note=f"{type(error).__name__}: {error}"[:200])
        return
    found = {"result": result[0]} if result and result[0] is not None else {}
    mine.update(state=Job.State.DONE, progress=1.0, ended_at=timezone.now(), **found)


def _with_result(going: Iterator[float], result: list[Any]) -> Iterator[float]:
    """The same steps; what it returned is put into `result`, to be written by who still holds the job."""
    if isinstance(going, Generator):
        result.append((yield from going))
    else:
        yield from going
