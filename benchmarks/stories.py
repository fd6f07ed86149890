"""30 simulated days of a 32-card farm: `python -m benchmarks.stories [--quick] [--strict] [--json FILE] [--days N]`.

Every row of the field's results: ours beside "everything resident" on the same calls, machines and seed, with what the
field reported before and after. Three seeds; the rows that rest on the interference model also at half and double
strength. All of it is simulated (`scheduler.simulation`); the traffic is that of `stories_farm`, fixed beforehand.
Each side of a run is a process of its own, as many at once as there are cores; what a run says is printed as it ends.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context

from benchmarks import frame
from benchmarks.stories_bound import least_cards
from benchmarks.stories_farm import BEGAN, DAY_S, calls, growths, habits, weekly, world
from benchmarks.stories_peers import everything_resident, resident
from scheduler.planner import plan
from scheduler.policy import DEFAULT
from scheduler.simulation import Machine, Measures, Trace, simulate
from scheduler.simulation.state import Planner

SEEDS = (1, 2, 3)
STRENGTHS = (0.5, 2.0)
DAYS, DAYS_QUICK = 30, 2
OURS, THEIRS = "ours", "theirs"
#: Nobody watches cards where everything is resident: no card ever counts as under pressure.
UNWATCHED = replace(DEFAULT, pressure_pct=100, pressure_buffer_pct=0)


@dataclass(frozen=True, slots=True)
class Run:
    """One seed at one strength of interference, both ways."""

    seed: int
    strength: float
    ours: Measures
    theirs: Measures


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table: how it is read off, its goal, what the field reported. `at_most`: less is better."""

    measure: str
    unit: str
    read: Callable[[Measures, Measures], float | None]  # (of one side, of everything resident)
    goal: float
    at_most: bool
    before: str = ""
    after: str = ""


def main(argv: list[str] | None = None) -> int:
    parser = frame.parser("stories", __doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=0, metavar="N", help="simulated days")
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), metavar="N", help="simulations side by side")
    asked = parser.parse_args(argv)
    days = asked.days or (DAYS_QUICK if asked.quick else DAYS)
    seeds = (asked.seed,) if asked.quick else SEEDS
    wanted = [(seed, 1.0) for seed in seeds] + [(seeds[0], each) for each in STRENGTHS if not asked.quick]
    found = {(r.seed, r.strength): r for r in told(finished(wanted, days, asked.at_once))}
    runs = [found[key] for key in wanted]
    shown = [frame_row(line, [r for r in runs if r.strength == 1.0]) for line in LINES]
    shown += [row for line in INTERFERENCE for row in at_strengths(line, runs)]
    return frame.finish("stories", shown, notes(runs, days, asked), asked)


def finished(wanted: Sequence[tuple[int, float]], days: int, at_once: int) -> Iterator[Run]:
    """Each run once both its sides are there; every side is a process of its own, the longest-waiting seed first."""
    sides: dict[tuple[int, float], dict[str, Measures]] = defaultdict(dict)
    with ProcessPoolExecutor(max(1, at_once), mp_context=get_context("spawn")) as processes:
        going = {
            processes.submit(side, which, seed, strength, days): (seed, strength, which)
            for seed, strength in wanted
            for which in (OURS, THEIRS)
        }
        for done in as_completed(going):
            seed, strength, which = going[done]
            there = sides[seed, strength]
            there[which] = done.result()
            if len(there) == len((OURS, THEIRS)):
                yield Run(seed, strength, there[OURS], there[THEIRS])


def told(runs: Iterable[Run]) -> Iterator[Run]:
    """What each run says is printed as soon as it is known: the worst of the seeds is known only at the end."""
    began = time.monotonic()
    for one in runs:
        print(f"seed {one.seed}, interference x {one.strength:g}: after {time.monotonic() - began:.0f} s", flush=True)
        frame.shown(frame_row(line, [one], one.strength) for line in (*LINES, *INTERFERENCE))
        yield one


def side(which: str, seed: int, strength: float, days: int) -> Measures:
    """The calls of this seed, planned by us or with everything resident."""
    found = habits(seed)
    farm, policy = world([h.service for h in found]), DEFAULT
    planner: Planner = plan
    if which == THEIRS:
        farm, policy = resident(farm, {h.service.name: weekly(h) for h in found}), UNWATCHED
        planner = everything_resident
    trace, machine = Trace(calls(found, days, seed), growths(found, days, seed)), Machine(interference=strength)
    return simulate(farm, policy, trace, BEGAN + days * DAY_S, began=BEGAN, machine=machine, planner=planner)


# How rows are read off


def pct(share: float | None) -> float | None:
    return None if share is None else 100 * share


def of(count: int, whole: int) -> float:
    return 100 * count / whole if whole else 0.0


def quantile(which: str, share: float) -> Callable[[Measures, Measures], float | None]:
    """Seconds to the first token of online services, in percent of everything resident's."""

    def read(m: Measures, theirs: Measures) -> float | None:
        own, other = m.first_token[which].at(share), theirs.first_token[which].at(share)
        return None if own is None or not other else 100 * (own / other - 1)

    return read


def rise(which: str) -> Callable[[Measures, Measures], float | None]:
    """How far the P99 of first tokens is above that of the same calls on cards of their own, in percent."""

    def read(m: Measures, theirs: Measures) -> float | None:
        own, alone = m.first_token[which].at(0.99), m.alone[which].at(0.99)
        return None if own is None or not alone else 100 * (own / alone - 1)

    return read


LINES = [
    Line("GPU utilisation, cards in use", "%", lambda m, _: pct(m.utilisation), 34.6, False, "7.2 / 22", "34.6 / 58"),
    Line("memory held by residents", "%", lambda m, _: pct(m.resident_share), 64, True, "92", "64"),
    Line("models a card in use", "", lambda m, _: m.models_a_card, 2.8, False, "1", "2.8"),
    Line("fragmentation F", "%", lambda m, _: pct(m.fragmentation), 12, True, "35", "12"),
    Line("cold starts a day", "", lambda m, _: m.a_day(m.cold_starts), 9, True, "40", "9"),
    Line("sessions answered at once (preload hits)", "%", lambda m, _: pct(m.hit_share), 75, False, "", "75-85"),
    Line("harmful reclaims", "%", lambda m, _: of(m.harmful_reclaims, m.reclaims), 0.1, True, "5", "~0"),
    Line("reclaims regretted", "%", lambda m, _: of(m.regrets, m.reclaims), 10, True),
    Line("calls not answered", "%", lambda m, _: of(m.told + m.cut + m.cut_by_kills, m.calls), 0.1, True),
    Line("wait of held calls, p95", "s", lambda m, _: m.waits.at(0.95), 30, True),
    Line("busy services' p95 by day against theirs", "%", quantile("online day", 0.95), -20, True, "", "-20"),
    Line("busy services' p99 by day against theirs", "%", quantile("online day", 0.99), -20, True, "", "-20"),
    Line("scale-up until all copies are ready, longest", "s", lambda m, _: max(m.scale_ups, default=None), 120, True,
         "10+ min", "~120"),
    Line("out-of-memory kills", "", lambda m, _: float(m.kills), 0, True, "", "0"),
    Line("growths absorbed without pressure", "%", lambda m, _: of(m.absorbed, m.growths), 50, False),
    Line("pressure relieved in, longest", "s", lambda m, _: max(m.relieved, default=None), 30, True, "", "9"),
    Line("victim rebuilt in, longest", "s", lambda m, _: max(m.rebuilt, default=None), 60, True, "", "8.3"),
    Line("calls cut by scale-in or reclaim", "", lambda m, _: float(m.cut), 0, True, "", "0"),
]  # fmt: skip
INTERFERENCE = [
    Line("P99 of online neighbours above alone, by day", "%", rise("online day"), 8, True, "", "+8"),
    Line("P99 of online neighbours above alone, by night", "%", rise("online night"), 12, True, "", "+12"),
]


def frame_row(line: Line, runs: list[Run], strength: float = 1.0) -> frame.Row:
    """Ours is the worst of the seeds; all of them and everything resident stand beside it."""
    mine = {f"seed {r.seed}": line.read(r.ours, r.theirs) for r in runs}
    known = [value for value in mine.values() if value is not None]
    peers = {name: round(value, 2) for name, value in mine.items() if value is not None}
    peers |= {
        f"everything resident, seed {r.seed}": round(value, 2)
        for r in runs
        if (value := line.read(r.theirs, r.theirs)) is not None
    }
    sign = "<=" if line.at_most else ">="
    measure = line.measure if strength == 1.0 else f"{line.measure}, interference x {strength:g}"
    if not known:
        return frame.Row(measure, None, line.unit, f"{sign} {line.goal:g}", None, peers)
    worst = max(known) if line.at_most else min(known)
    met = worst <= line.goal if line.at_most else worst >= line.goal
    return frame.Row(measure, round(worst, 2), line.unit, f"{sign} {line.goal:g}", met, peers)


def at_strengths(line: Line, runs: list[Run]) -> list[frame.Row]:
    strengths = sorted({r.strength for r in runs})
    return [frame_row(line, [r for r in runs if r.strength == strength], strength) for strength in strengths]


def notes(runs: list[Run], days: int, asked: argparse.Namespace) -> list[str]:
    """What the rows rest on, what the field reported, and what is not in them."""
    first = runs[0].ours
    said = [
        f"simulated: {days} days, {first.calls:,} calls, {first.plans:,} plans on seed {runs[0].seed}",
        "`ours` is the worst of the seeds; peers hold every seed and everything resident on the same calls",
        "first tokens leave the hold out; a call's pace is that of the moment it begins",
        "utilisation is over cards in use: all of them with everything resident, with us the rest is free for more",
        "a growth beyond a claim comes at 200 MiB/s; batch is slowed by the product's own controllers, in both columns",
        "a load lasts weights / bandwidth + 8 s, whatever the policy expects; nobody dies of other causes than memory",
        f"cards in use: ours {first.cards_in_use:.1f}, everything resident {runs[0].theirs.cards_in_use:.1f} of 32",
    ]
    said.append(bound(runs[0], days))
    field = [f"{line.measure}: {line.before or '-'} / {line.after}" for line in (*LINES, *INTERFERENCE) if line.after]
    said.append("the field, before / after: " + "; ".join(field))
    if asked.quick:
        said.append(f"quick: {days} days, one seed, interference at its usual strength only")
    left = [line.measure for line in LINES if all(line.read(r.ours, r.theirs) is None for r in runs)]
    return [*said, *(f"nothing of it happened in these days: {measure}" for measure in left)]


def bound(first: Run, days: int) -> str:
    """The utilisation that no planner exceeds here; the work is what was measured of ours."""
    found, m = habits(first.seed), first.ours
    stays_s = float(DEFAULT.idle_unload_s + DEFAULT.grace_s)
    trace = calls(found, days, first.seed)
    cards = least_cards(world([h.service for h in found]), trace, days, (0.0, stays_s))
    all_known, by_rule = (100 * m.busy_card_s / m.seconds / count for count in cards)
    return (
        f"no planner can use the cards it holds more than {all_known:.1f} % if it knows every call beforehand, nor "
        f"more than {by_rule:.1f} % if who was called stays for {stays_s:.0f} s (benchmarks/stories_bound.py): the "
        f"calls keep {m.busy_card_s / m.seconds:.1f} cards busy, and what is hot or called must be loaded"
    )


if __name__ == "__main__":
    raise SystemExit(main())
