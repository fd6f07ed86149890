"""The controller of batch calls and a neighbour that slows with them, as one loop over half an hour."""

from __future__ import annotations

from dataclasses import replace

from scheduler.isolation import caps, stepped, steps
from tests.scheduler.build import NOW, POLICY
from tests.scheduler.cases import cases
from tests.scheduler.test_isolation import MIDNIGHT, NOON, beside, limit_of, slow


@cases(("per_call_pct", "seqs"), [(19 / 16, 16), (40 / 16, 16), (2.0, 32), (7.0, 8)])
@cases("at", [MIDNIGHT, NOON])
def test_the_loop_brings_the_neighbour_back_and_keeps_it_there(per_call_pct, seqs, at):
    """All the batch that may run runs. After the first minutes the neighbour is over in a small share of the time."""
    allowed = POLICY.neighbour_rise_day_pct if at == NOON else POLICY.neighbour_rise_night_pct
    world, over_s, calls = beside(seqs, seqs=seqs, site_minute=at), 0, []
    for second in range(0, 1800, 10):
        cap = caps(world, []).get("c1")
        by_day = limit_of(world, now=NOW + second)
        limits = [limit for limit in (by_day, None if cap is None else cap.calls) if limit is not None]
        running = min([seqs, *limits])
        calls.append(running)
        over_s += 10 * (second > 300 and running * per_call_pct > allowed)
        seen = {1: replace(world.replicas[1], in_flight=running)}
        seen[2] = replace(world.replicas[2], **slow(running * per_call_pct))
        world = replace(world, replicas=seen)
        for step in steps(world, POLICY, NOW + second):
            world = replace(world, cards={"c1": stepped(world.cards["c1"], step, NOW + second)})
    fits = max(1, int(allowed / per_call_pct))
    assert over_s <= 1500 / 6, "one look in each minute, taken back at the next"
    assert max(calls[60:]) <= fits + 1
    assert min(calls) >= 1
    assert sum(calls[60:]) / 120 >= 0.6 * min(fits, seqs, 4 if at == NOON else seqs), "and batch gets its share"
