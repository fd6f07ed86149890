"""A farm in the night of a repack: keeps the moves of a proposal as control's rows do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from scheduler.decision import Code, Decision, Verb
from scheduler.draft import Draft
from scheduler.fragmentation import Stranded
from scheduler.move import Move
from scheduler.repack import propose
from scheduler.sketch import Proposal
from scheduler.world import Phase
from tests.plays.farm import Farm


@dataclass
class Night(Farm):
    """`ended`: what became of each move, by number. `unserved`: services seen without any ready copy."""

    ended: dict[int, str] = field(default_factory=dict)
    unserved: set[str] = field(default_factory=set)
    watched: tuple[str, ...] = ()

    def ask(self, pool: str = "default") -> Proposal:
        """Search, and take every move up."""
        self._refresh()
        found = propose(self.world, self.policy, self.now, pool)
        moves = [Move(n, 1, n, s.replica, s.service, s.target) for n, s in enumerate(found.steps, 1)]
        self.world = replace(self.world, moves=tuple(moves), site_minute=self.policy.repack_from_min)
        self.watched = tuple({s.service for s in found.steps})
        return found

    def step(self, seconds: float = 1.0) -> list[Decision]:
        before = set(self.world.replicas)
        decisions = super().step(seconds)
        for decision in (d for d in decisions if d.move is not None):
            if decision.refusal is not None:
                self._end(decision)
            elif decision.verb is Verb.START:
                (copy,) = set(self.world.replicas) - before
                self.world = replace(
                    self.world,
                    moves=tuple(replace(m, copy=copy) if m.id == decision.move else m for m in self.world.moves),
                )
        self.unserved |= {name for name in self.watched if not self.ready(name)}
        return decisions

    def _end(self, decision: Decision) -> None:
        (move,) = [m for m in self.world.moves if m.id == decision.move]
        done = decision.refusal.code is Code.ALREADY_SO
        self.ended[move.number] = "done" if done else "failed" if move.copy is not None else "skipped"
        failed = self.ended[move.number] == "failed"
        left = () if failed else tuple(m for m in self.world.moves if m.id != move.id)
        if failed:
            self.ended |= {m.number: "stopped" for m in self.world.moves if m.number not in self.ended}
        self.world = replace(self.world, moves=left)

    @property
    def over(self) -> bool:
        return not self.world.moves and not any(r.phase is not Phase.READY for r in self.world.replicas.values())

    def stranded(self, pool: str = "default") -> Stranded:
        self._refresh()
        return Draft(self.world, self.policy, self.now).stranded()[pool]
