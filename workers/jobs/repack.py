"""The search for a repack proposal: the heuristic's answer at once, then the exact search betters it where it can.

It reads a World and writes a proposal; what moves is decided by the planner, move by move.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from django.utils import timezone

from console import state
from console.accounts.models import User
from console.jobs.models import Job
from console.repack import proposals
from console.repack.models import Move, Proposal
from console.wire import read_gateways
from scheduler import repack_cpsat
from scheduler.repack import propose

#: What of the progress is behind us once the heuristic has answered.
HEURISTIC_DONE = 0.2


def run(arguments: dict[str, object]) -> Iterator[float]:
    """`pool`: its name; `by`: id of who asked; `job`: set by the worker. Yields the share done."""
    now, rules = time.time(), state.policy()
    world = state.world(now, read_gateways(), rules=rules)
    by = User.objects.filter(pk=_number(arguments.get("by"))).first()
    job = Job.objects.filter(pk=_number(arguments.get("job"))).first()
    yield 0.0
    first = propose(world, rules, now, str(arguments["pool"]))
    row = proposals.keep(first, timezone.now(), by, job)
    yield HEURISTIC_DONE
    if not repack_cpsat.available():
        return
    search = repack_cpsat.Search(world, rules, now, first)
    try:
        for share in search.run():
            yield HEURISTIC_DONE + (1 - HEURISTIC_DONE) * share
    finally:
        search.stop()
    better = search.better()
    if better is not None and _untouched(row):
        proposals.keep(better, timezone.now(), by, job, exact=True)


def _untouched(row: Proposal | None) -> bool:
    """Nobody has decided on a move of the first answer yet, and none has begun: it may be replaced."""
    return row is None or not row.moves.exclude(status=Move.Status.PROPOSED).exists()


def _number(value: object) -> int:
    """Of a row; 0 is nobody's."""
    return value if isinstance(value, int) else 0
