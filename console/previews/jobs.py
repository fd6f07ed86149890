"""A preview is a job of one person: filed here, done by a jobs worker, ended by a button, kept to be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from console.accounts.models import User
from console.jobs.models import Job
from console.policies.change import Changes
from console.policy_pages.scope import Scope
from console.previews.past import window

KIND = "policy-preview"
UNDER_WAY = (Job.State.WAITING, Job.State.RUNNING)
KEPT = 20  # of one person; older ones go when a new one is asked for
LOOKED_AT = 200  # the latest ones, when one with the same values is looked for
SEED = 7


def ask(scope: Scope, changes: Changes, by: User, now: datetime) -> tuple[Job, bool]:
    """(the job, whether it is new): while one of this person is under way, that one."""
    with transaction.atomic():
        User.objects.select_for_update().get(pk=by.pk)  # one at a time, also of two clicks
        under_way = of(by).filter(state__in=UNDER_WAY).first()
        if under_way is not None:
            return under_way, False
        _prune(by)
        arguments = {
            "by": by.pk,
            "layer": str(scope.layer),
            "subject": scope.subject,
            "changes": dict(changes),
            "until": window(now)[1].isoformat(),
            "seed": SEED,
        }
        return Job.objects.create(kind=KIND, arguments=arguments), True


def of(by: User) -> QuerySet[Job]:
    """Newest first."""
    return Job.objects.filter(kind=KIND, arguments__by=by.pk).order_by("-pk")


def cancel(job: Job) -> bool:
    """True when there was something to end: one that waits ends at once, one that runs at its next step."""
    mine = Job.objects.filter(pk=job.pk, kind=KIND)
    if mine.filter(state=Job.State.WAITING).update(state=Job.State.CANCELLED, ended_at=timezone.now()):
        return True
    return bool(mine.filter(state=Job.State.RUNNING).update(cancel=True, tries=F("tries")))


def latest(layer: str, subject: str, changes: Mapping[str, float | None]) -> Job | None:
    """The last preview of these very values that has a result, or is on its way to one."""
    there = Job.objects.filter(kind=KIND, arguments__layer=layer, arguments__subject=subject)
    rows = there.filter(Q(state=Job.State.DONE) | Q(state__in=UNDER_WAY)).defer("result").order_by("-pk")
    return next((job for job in rows[:LOOKED_AT] if job.arguments["changes"] == dict(changes)), None)


def _prune(by: User) -> None:
    old = list(of(by).values_list("pk", flat=True)[KEPT - 1 :])
    Job.objects.filter(pk__in=old).delete()
