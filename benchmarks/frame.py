"""The one language benchmarks speak: rows of (measure, ours, unit, peers, goal, met), as a table and as JSON.

`python -m benchmarks.NAME [--quick] [--strict] [--json FILE] [--seed N]`. Exit 0 when it ran, 1 with `--strict` when a
goal is missed, 2 when it could not run (and why).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Row:
    """One measure. `met` is None only where it was left out or cannot be had here, with the reason in the notes."""

    measure: str
    ours: float | None
    unit: str
    goal: str = ""
    met: bool | None = None
    peers: Mapping[str, float] = field(default_factory=dict)
    stretch: str = ""


def arguments(name: str, about: str, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """`quick`, `strict`, `json` (a path or None) and `seed`."""
    return parser(name, about).parse_args(argv)


def parser(name: str, about: str) -> argparse.ArgumentParser:
    """The same to be added to, for a benchmark with arguments of its own."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=about)
    parser.add_argument("--quick", action="store_true", help="the same claims on less, within 50 s")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a goal is missed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn")
    return parser


def at_most(measure: str, ours: float, unit: str, limit: float, **more: Any) -> Row:
    """A row whose goal is an upper bound."""
    return Row(measure, round(ours, 2), unit, f"<= {limit:g}", ours <= limit, **more)


def shown(rows: Iterable[Row]) -> list[Row]:
    """All of them, each printed as it comes: whoever waits for a long measurement sees what is known already."""
    found = []
    for row in rows:
        print(_line(row, WIDTH), flush=True)
        found.append(row)
    return found


def finish(
    name: str, rows: Sequence[Row], notes: Sequence[str], asked: argparse.Namespace, *, printed: bool = False
) -> int:
    """Print the table (`printed`: only the notes, the rows are there), write the JSON if asked; the exit code."""
    if not printed:
        _table(name, rows)
    for note in notes:
        print(f"· {note}")
    if asked.json is not None:
        asked.json.write_text(json.dumps(document(name, rows, notes), ensure_ascii=False, indent=1) + "\n")
    return 1 if asked.strict and any(row.met is False for row in rows) else 0


def document(name: str, rows: Sequence[Row], notes: Sequence[str]) -> dict[str, Any]:
    return {
        "benchmark": name,
        "commit": commit(),
        "machine": machine(),
        "rows": [asdict(row) for row in rows],
        "notes": list(notes),
    }


def commit() -> str:
    """Of the tree; empty where it is no checkout."""
    try:
        answer = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip()


def machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()}


#: Of a measure's name, where rows are printed before all names are known.
WIDTH = 74


def _table(name: str, rows: Sequence[Row]) -> None:
    width = max((len(row.measure) for row in rows), default=0)
    print(f"{name}\n")
    for row in rows:
        print(_line(row, width))


def _line(row: Row, width: int) -> str:
    ours = "—" if row.ours is None else f"{row.ours:,.1f}"
    peers = "  ".join(f"{who} {value:g}" for who, value in row.peers.items())
    word = {True: "met", False: "MISSED", None: ""}[row.met]
    return f"{row.measure:<{width}}  {ours:>12} {row.unit:<8} {row.goal:<10} {word:<6} {peers}".rstrip()
