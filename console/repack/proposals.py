"""Proposals as rows: kept, decided on, closed. Every change holds only where the old value still does."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from console.accounts.models import User
from console.catalog.models import Replica, Service
from console.fleet.models import Pool
from console.jobs.models import Job
from console.repack.models import Move, Proposal
from scheduler.sketch import Proposal as Found

#: A proposal not finished by then is out of date: the next night has its own.
GOOD_FOR = timedelta(hours=30)
LAPSED, REPLACED, STOPPED, BY_HAND = "lapsed", "replaced", "stopped", "by_hand"
Status = Move.Status


def keep(found: Found, now: datetime, by: User | None, job: Job | None, exact: bool = False) -> Proposal | None:
    """Writes a proposal in place of the pool's open one; None where a move of that one is running, or there is none."""
    pool = Pool.objects.filter(name=found.pool).first()
    if pool is None or not found.steps:
        return None
    try:
        with transaction.atomic():
            for old in Proposal.objects.filter(pool=pool, closed_at=None):
                if old.moves.filter(status=Status.RUNNING).exists():
                    return None
                end_rest(old, REPLACED, now)
            return _written(found, pool, now, by, job, exact)
    except IntegrityError:  # somebody else's came first
        return None


def _written(found: Found, pool: Pool, now: datetime, by: User | None, job: Job | None, exact: bool) -> Proposal:
    row = Proposal.objects.create(
        pool=pool,
        at=now,
        by=by,
        job=job,
        method=Proposal.Method.EXACT if exact else Proposal.Method.HEURISTIC,
        free_mib=found.before.free_mib,
        stranded_before_mib=round(found.before.stranded_mib),
        stranded_after_mib=round(found.after.stranded_mib),
        empty_before=found.empty_before,
        empty_after=found.empty_after,
        until=now + GOOD_FOR,
    )
    services = dict(Service.objects.filter(name__in={s.service for s in found.steps}).values_list("name", "pk"))
    alive = set(Replica.objects.filter(pk__in=[s.replica for s in found.steps]).values_list("pk", flat=True))
    steps = [s for s in found.steps if s.service in services and s.replica in alive]
    Move.objects.bulk_create(
        Move(
            proposal=row,
            number=number,
            service_id=services[step.service],
            replica_id=step.replica,
            source=list(step.source),
            target=list(step.target),
            after_pct=step.after.pct,
        )
        for number, step in enumerate(steps, 1)
    )
    return row


def decide(move: Move, status: Status, by: User, now: datetime) -> bool:
    """Approve or skip a move that has not begun; False where it is not any more as it was shown."""
    if status is Status.APPROVED:
        values: dict[str, object] = {"status": status, "decided_by": by}
        return bool(Move.objects.filter(pk=move.pk, status=Status.PROPOSED).update(**values))
    waiting = Move.objects.filter(pk=move.pk, status__in=(Status.PROPOSED, Status.APPROVED))
    done = bool(waiting.update(status=Status.SKIPPED, decided_by=by, why=BY_HAND, ended_at=now))
    close_finished(now)
    return done


def begin(move: int, now: datetime) -> bool:
    """Claims the move for the plan that starts its copy; False where a person was faster."""
    ready = Move.objects.filter(pk=move, status__in=(Status.PROPOSED, Status.APPROVED))
    return bool(ready.update(status=Status.RUNNING, began_at=now))


def started(move: int, copy: int) -> None:
    Move.objects.filter(pk=move, status=Status.RUNNING).update(copy=copy)


def end(move: int, done: bool, why: str, now: datetime) -> None:
    """The move is over. One that had begun and is not done has failed, and the rest of its proposal stops."""
    running = Move.objects.filter(pk=move, status=Status.RUNNING)
    if done:
        running.update(status=Status.DONE, ended_at=now)
    elif running.update(status=Status.FAILED, why=why, ended_at=now):
        for proposal in Proposal.objects.filter(moves=move):
            end_rest(proposal, STOPPED, now)
    else:
        waiting = Move.objects.filter(pk=move, status__in=(Status.PROPOSED, Status.APPROVED))
        waiting.update(status=Status.SKIPPED, why=why, ended_at=now)
    close_finished(now)


def end_rest(proposal: Proposal, why: str, now: datetime) -> None:
    """What has not begun is skipped."""
    rest = proposal.moves.filter(status__in=(Status.PROPOSED, Status.APPROVED))
    rest.update(status=Status.SKIPPED, why=why, ended_at=now)
    close_finished(now)


def lapse(now: datetime) -> None:
    """Proposals whose time is over end, and those of which nothing is left because their services are gone.

    A move that has begun and is not done by then never will be: its pool is observed now, or its row lost its copy.
    """
    for proposal in Proposal.objects.filter(closed_at=None, until__lte=now):
        proposal.moves.filter(status=Status.RUNNING).update(status=Status.FAILED, why=LAPSED, ended_at=now)
        end_rest(proposal, LAPSED, now)
    close_finished(now)


def close_finished(now: datetime) -> None:
    left = Move.objects.filter(proposal=OuterRef("pk"), status__in=Move.OPEN)
    Proposal.objects.filter(~Exists(left), closed_at=None).update(closed_at=now)


def may_act() -> QuerySet[Move]:
    """Moves that the planner may take up: running ones; approved ones; in enforcing pools all."""
    by_itself = Q(status=Status.PROPOSED, proposal__pool__mode=Pool.Mode.ENFORCE)
    approved = Q(status=Status.APPROVED) & ~Q(proposal__pool__mode=Pool.Mode.OBSERVE)
    return Move.objects.filter(Q(status=Status.RUNNING) | by_itself | approved, replica__isnull=False)
