"""Repack in the control loop: what a decision does to its move, and when a search is due."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from console import state
from console.fleet.models import Pool
from console.jobs.models import Daily
from console.repack import proposals, searches
from console.state import moment
from scheduler.decision import Code, Decision, Verb
from scheduler.policy import Policy

#: By the mode of a pool: moves that wait for approval are proposed while people are there to approve them.
DUE = {Pool.Mode.ENFORCE: "repack_from_min", Pool.Mode.SUGGEST: "repack_propose_min"}


def begins(decision: Decision, now: float) -> bool:
    """True for a decision that begins no move, or whose move is still to be had: it is claimed with that."""
    if decision.move is None or decision.verb is not Verb.START:
        return True
    return proposals.begin(decision.move, moment(now))


def began(decision: Decision, copy: int) -> None:
    if decision.move is not None and decision.verb is Verb.START:
        proposals.started(decision.move, copy)


def answered(decision: Decision, now: float) -> bool:
    """Ends the move that this refusal is about; True when there is nothing to explain in the journal."""
    if decision.move is None or decision.refusal is None:
        return False
    done = decision.refusal.code is Code.ALREADY_SO
    proposals.end(decision.move, done, decision.refusal.code.value, moment(now))
    return done


def look(now: datetime | None = None) -> int:
    """Files the searches that are due, once a day and pool; how many. A pool with little stranded needs none."""
    now = timezone.localtime(now)
    rules, filed = state.policy(), 0
    proposals.lapse(now)
    for mode, field in DUE.items():
        due = _last_due(now, getattr(rules, field))
        _, new = Daily.objects.get_or_create(name=f"repack_{mode}", defaults={"done_at": now})
        if new or not Daily.objects.filter(name=f"repack_{mode}", done_at__lt=due).update(done_at=now):
            continue
        for pool in Pool.objects.filter(mode=mode):
            filed += worth(pool, rules) and searches.ask(pool, None)
    return filed


def _last_due(now: datetime, minute: int) -> datetime:
    """The last moment at which it was that minute of the day; `now` is site time."""
    today = now.replace(hour=minute // 60, minute=minute % 60, second=0, microsecond=0)
    return today if today <= now else today - timedelta(days=1)


def worth(pool: Pool, rules: Policy) -> bool:
    """Enough is stranded; or something was lent, which shall come back."""
    stranded = pool.stranded_pct
    return pool.purpose == Pool.Purpose.ELASTIC or (
        stranded is not None and stranded >= rules.of_pool(pool.name).repack_from_pct
    )
