"""Seven days of 32 cards under two policies: `python -m benchmarks.preview [--quick] [--strict] [--json FILE]`.

The traffic is that of the stories' benchmark, counted into hours and sessions as the site records it, and brought back
from those as a preview does. As in the job, the two policies run beside each other, each in a process of its own: the
goal is for the clock of who waits. The processor time of one of them stands beside it.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from dataclasses import replace

from benchmarks import frame
from benchmarks.stories_farm import BEGAN, DAY_S, calls, habits, world
from console.previews import trace
from scheduler.policy import DEFAULT
from scheduler.simulation.compare import Scene
from scheduler.tiers import WEEK
from workers.jobs.sides import compare

GOAL_S = 30.0
DAYS_QUICK = 1
GAP_S = 1200.0
PROMPT, ANSWER = 420, 160  # tokens of a call


def main(argv: list[str] | None = None) -> int:
    asked = frame.parser("preview", __doc__.splitlines()[0]).parse_args(argv)
    days = DAYS_QUICK if asked.quick else WEEK
    scene, bunched = recorded(days, asked.seed)
    began, worked = time.monotonic(), time.process_time()
    for _ in compare(scene, DEFAULT, replace(DEFAULT, idle_unload_s=600)):
        pass
    took_s, own_s = time.monotonic() - began, time.process_time() - worked
    measure = f"both policies on {days} days of 32 cards"
    rows = [frame.at_most(measure, round(took_s, 1), "s", GOAL_S * days / WEEK)]
    whole = sum(map(sum, scene.days.values()))
    notes = [f"{whole:,} calls as {len(scene.calls):,} events; {bunched:,} of them bunched"]
    notes.append(f"one policy: {own_s:.1f} s of processor; load of the machine at the end {os.getloadavg()[0]:.1f}")
    if asked.quick:
        notes.append(f"quick: {days} day, and its share of the goal")
    return frame.finish("preview", rows, notes, asked)


def recorded(days: int, seed: int) -> tuple[Scene, int]:
    """(the stories' traffic as it is brought back from what a site records of it, calls that are bunched)."""
    found = habits(seed)
    sums: dict[tuple[str, float], list[float]] = defaultdict(lambda: [0, 0.0])
    by_day: dict[str, list[int]] = defaultdict(lambda: [0] * WEEK)
    sessions: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for call in calls(found, days, seed):
        hour = sums[call.service, call.at - call.at % trace.HOUR_S]
        hour[0] += 1
        hour[1] += call.prefill_s + call.decode_s
        by_day[call.service][int((call.at - BEGAN) // DAY_S)] += 1
        own = sessions[call.service]
        first = own.pop()[0] if own and call.at - own[-1][1] <= GAP_S else call.at
        own.append((first, call.at))
    hours = [
        trace.Hour(name, start, int(n), int(n), int(1000 * s), int(n) * PROMPT, int(n) * ANSWER)
        for (name, start), (n, s) in sums.items()
    ]
    farm = world([habit.service for habit in found])
    made = trace.calls(hours, sessions, seed)
    return Scene(farm, BEGAN, BEGAN + days * DAY_S, made, dict(by_day)), trace.bunched(hours)


if __name__ == "__main__":
    raise SystemExit(main())
