"""plan(world, policy, now) -> decisions. The list of stages is the table of contents of the core."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.budget import budget, tighten
from scheduler.decision import Decision
from scheduler.draft import Draft
from scheduler.faults import faults
from scheduler.growth import all_refused, growth
from scheduler.kv import kv_growth
from scheduler.maintenance import maintenance
from scheduler.moves import moves_begin, moves_on
from scheduler.notices import notices
from scheduler.orders import orders
from scheduler.policy import Policy
from scheduler.prefetch import prefetch
from scheduler.preload import preload
from scheduler.pressure import pressure
from scheduler.reclaim import reclaim
from scheduler.scale_in import scale_in
from scheduler.settle import settle
from scheduler.throttle import throttle
from scheduler.world import World

Stage = Callable[[Draft, Policy, float], None]

#: In this order, each charged with what the ones before decided.
STAGES: list[Stage] = [
    tighten,  # services whose card budget is spent may have less from here on
    orders,  # 0. what people asked for with a button
    maintenance,  # hosts that are to be empty by a time
    notices,  # 1. a call takes a notice back; time makes it a drain
    moves_on,  # repack moves under way: the copy is ready, the old one goes; it failed, it goes itself
    faults,  # 2. failed ones: again, or given up
    pressure,  # 3. cards that are nearly full by measurement: who goes before somebody is killed
    throttle,  # preloads that nobody waits for give way to a neighbour they slow
    growth,  # 4. wishes: wake, start, make room, or refuse; give back what was made in vain
    kv_growth,  # engines that have outgrown their KV memory: a copy, a larger grant, or fewer calls
    preload,  # 5. what is expected soon is loaded ahead, into room that nobody needs
    settle,  # 6. drained ones sleep or stop
    budget,  # 7. copies that a spent budget no longer pays for get a notice
    scale_in,  # copies that a long quiet time proved too many
    reclaim,  # 8. idle ones get a notice
    prefetch,  # 9. in idle moments: what was called yesterday at this hour
    moves_begin,  # 10. and at night the next move of a repack proposal
]

#: Too many hosts fell silent at once: nothing is moved, and who wishes is told.
FROZEN_STAGES: list[Stage] = [orders, all_refused]


def plan(world: World, policy: Policy, now: float, *, until: Stage | None = None) -> list[Decision]:
    """What to do now, and what cannot be done and why; the same for the same arguments.

    At most one decision a replica; each legal; each service that wishes and is not served has one refusal.
    `until`: the last stage that is asked, for a dry run whose question is answered there.
    """
    draft = Draft(world, policy, now)
    for stage in FROZEN_STAGES if world.frozen else STAGES:
        stage(draft, policy, now)
        if stage is until:
            break
    return draft.decisions
