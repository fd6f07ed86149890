"""The night's repack: searched when its hour begins; its moves are open until they are done, as control keeps them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from scheduler.decision import Code, Decision, Verb
from scheduler.draft import Draft
from scheduler.move import Move
from scheduler.moves import in_window
from scheduler.repack import propose
from scheduler.simulation.copies import Copy
from scheduler.simulation.state import DAY_S, Farm, midnight, site_day

MINUTE_S = 60


def start(farm: Farm) -> None:
    """The first search is in the first night."""
    begins = midnight(farm, site_day(farm)) + farm.policy.repack_from_min * MINUTE_S
    farm.at(begins if begins > farm.now else begins + DAY_S, partial(search, farm))


def search(farm: Farm) -> None:
    """Moves for each pool in which enough is stranded; what an earlier night left undone is out of date."""
    farm.at(farm.now + DAY_S, partial(search, farm))
    farm.moves = [move for move in farm.moves if move.copy is not None]
    world = farm.picture()
    for pool, lost in sorted(Draft(world, farm.policy, farm.now).stranded().items()):
        if lost.pct >= farm.policy.of_pool(pool).repack_from_pct:
            _propose(farm, pool)
    if farm.moves:
        farm.ask(farm.now)


def _propose(farm: Farm, pool: str) -> None:
    """Only where the planner acts by itself: nobody approves anything here."""
    known = farm.world.pools.get(pool)
    if known is not None and known.mode != "enforce":
        return
    farm.proposals += 1
    for number, step in enumerate(propose(farm.picture(), farm.policy, farm.now, pool).steps, 1):
        farm.moves.append(Move(farm.next_move, farm.proposals, number, step.replica, step.service, step.target))
        farm.next_move += 1


def due(farm: Farm) -> bool:
    """Is the planner to be asked because a move may begin, or go on?"""
    minute = int((farm.now + farm.machine.site_offset_s) % DAY_S) // MINUTE_S
    open_now = in_window(farm.policy, minute)
    return any(open_now or move.copy is not None for move in farm.moves)


def began(farm: Farm, decision: Decision, copy: Copy) -> None:
    """The copy of a move was started."""
    if decision.move is not None and decision.verb is Verb.START:
        farm.moves = [replace(m, copy=copy.seen.id) if m.id == decision.move else m for m in farm.moves]


def answered(farm: Farm, decision: Decision) -> None:
    """The move is over. One that had begun and is not done has failed, and the rest of its proposal stops."""
    move = next((m for m in farm.moves if m.id == decision.move), None)
    if move is None or decision.refusal is None:
        return
    done = decision.refusal.code is Code.ALREADY_SO
    failed = not done and move.copy is not None
    farm.measures.moves += done
    farm.measures.moves_failed += failed
    farm.moves = [m for m in farm.moves if m.id != move.id and not (failed and m.proposal == move.proposal)]
