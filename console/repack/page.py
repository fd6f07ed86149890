"""What the repack page shows: pools with what is stranded, open proposals as numbered moves, what came of past ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.models import Tenant
from console.fleet.models import Card, Pool
from console.jobs.models import Job
from console.journal.words import REFUSALS
from console.repack import proposals, searches
from console.repack.models import Move, Proposal

HISTORY = 20
TONES = {Move.Status.DONE: "ok", Move.Status.FAILED: "bad", Move.Status.RUNNING: "warn", Move.Status.APPROVED: "ok"}
#: Ends of a move that are no refusals of the planner.
ENDS: Mapping[str, Any] = {
    proposals.LAPSED: gettext_lazy("过了时限"),
    proposals.REPLACED: gettext_lazy("有了更新的方案"),
    proposals.STOPPED: gettext_lazy("前面一步失败"),
    proposals.BY_HAND: gettext_lazy("人工略过"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One move in words."""

    move: Move
    service: str
    tenant: Tenant
    source: str
    target: str
    tone: str
    why: str

    @property
    def waits(self) -> bool:
        """May a person still decide on it?"""
        return self.move.status in (Move.Status.PROPOSED, Move.Status.APPROVED)

    @property
    def undecided(self) -> bool:
        return self.move.status == Move.Status.PROPOSED


@dataclass(frozen=True, slots=True)
class Shown:
    """One proposal with its moves."""

    row: Proposal
    lines: list[Line]

    @property
    def undecided(self) -> int:
        return sum(line.undecided for line in self.lines)

    @property
    def done(self) -> int:
        return sum(line.move.status == Move.Status.DONE for line in self.lines)

    @property
    def done_pct(self) -> int:
        return 100 * self.done // len(self.lines) if self.lines else 0


@dataclass(frozen=True, slots=True)
class PoolLine:
    pool: Pool
    job: Job | None

    @property
    def pct(self) -> int:
        return round(100 * self.job.progress) if self.job is not None else 0


def pool_lines() -> list[PoolLine]:
    jobs = {
        job.arguments.get("pool"): job for job in Job.objects.filter(kind=searches.KIND, state__in=searches.UNDER_WAY)
    }
    return [PoolLine(pool, jobs.get(pool.name)) for pool in Pool.objects.order_by("label")]


def open_proposals() -> list[Shown]:
    return _shown(Proposal.objects.filter(closed_at=None))


def history() -> list[Shown]:
    """Closed ones of which something came, newest first."""
    moved = Proposal.objects.filter(closed_at__isnull=False, moves__began_at__isnull=False).distinct()
    return _shown(moved[:HISTORY])


def _shown(rows: Iterable[Proposal]) -> list[Shown]:
    found = list(rows.select_related("pool", "by").prefetch_related("moves__service__tenant"))  # type: ignore[attr-defined]
    names = _names({card for row in found for move in row.moves.all() for card in (*move.source, *move.target)})
    return [Shown(row, [_line(move, names) for move in row.moves.all()]) for row in found]


def _names(cards: set[str]) -> dict[str, str]:
    rows = Card.objects.filter(uuid__in=cards).select_related("host")
    return {row.uuid: f"{row.number:02d}" if row.number is not None else str(row) for row in rows}


def _line(move: Move, names: Mapping[str, str]) -> Line:
    def cards(ids: Iterable[str]) -> str:
        return _("、").join(names.get(one, one[-6:]) for one in ids)

    why = ENDS.get(move.why, REFUSALS.get(move.why, move.why))
    tone = TONES.get(Move.Status(move.status), "")
    return Line(move, move.service.label, move.service.tenant, cards(move.source), cards(move.target), tone, str(why))
