"""Faults that are switched on from outside: `faults.json` in the host's folder, read again whenever it changes.

    python -m workers.simulator.faults DIR set KIND [TARGET] [name=value ...]
    python -m workers.simulator.faults DIR clear [KIND] [TARGET]
    python -m workers.simulator.faults DIR list

TARGET is `replica:ID`, `service:NAME`, `card:UUID` or `*` (everything, the default); the most specific one counts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.simulator.machine import FAULTS_FILE, locked, write_json

# kind -> its values with defaults. `once` (any kind that kills an engine): the fault clears itself when it fires.
KINDS: dict[str, dict[str, Any]] = {
    "load_delay": {"seconds": 0.0, "factor": 1.0},  # a load takes weights time * factor + seconds
    "load_crash": {"at_pct": 50.0, "text": "RuntimeError: CUDA error: an illegal memory access", "once": False},
    "readiness": {"listen_s": 0.0, "health_s": 0.0, "models_s": 0.0, "serve_s": 0.0},  # after process start
    "crash": {"after_tokens": 0, "how": "engine", "once": False},  # 0: before the first byte; how: engine or kill
    "hang": {},  # calls are accepted and never answered, health stays good
    "slow": {"factor": 2.0},  # every token takes this much longer
    "growth": {"mib": 100},  # memory that 100 calls add
    "release": {"seconds": 15.0, "share": 1.0},  # after a death: how late, and how much of it comes back
    "leave": {"mib": 300},  # stays behind on the card after each death
    "foreign_memory": {"mib": 1024, "name": "python3", "pid": 0},  # of a process the platform did not start
    "telemetry": {"lost": False},  # a card cannot be measured (`*`: the whole host); lost: off the bus
    "card_order": {"order": ""},  # "2,0,1": the index each card of cards.json has now
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One switched-on fault; `values` has every name of its kind."""

    kind: str
    target: str
    values: dict[str, Any]

    def number(self, name: str) -> float:
        return float(self.values[name])

    def whole(self, name: str) -> int:
        return int(self.values[name])


class Faults:
    """A cheap view of one host's faults: one `stat` a look, and a read only when the file was replaced."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FAULTS_FILE
        self._seen: tuple[int, int] | None = None
        self._faults: dict[str, dict[str, Fault]] = {}

    def find(self, kind: str, *targets: str) -> Fault | None:
        """The fault of `kind` for the first of `targets` that has one, else the one for `*`."""
        of_kind = self.all_of(kind)
        for target in (*targets, "*"):
            if target in of_kind:
                return of_kind[target]
        return None

    def all_of(self, kind: str) -> dict[str, Fault]:
        """Target to fault."""
        try:
            stat = os.stat(self._path)
        except FileNotFoundError:
            self._seen, self._faults = None, {}
            return {}
        if (stat.st_mtime_ns, stat.st_ino) != self._seen:
            self._seen = (stat.st_mtime_ns, stat.st_ino)
            self._faults = {}
            for fault in list_faults(self._path.parent):
                self._faults.setdefault(fault.kind, {})[fault.target] = fault
        return self._faults.get(kind, {})


def list_faults(directory: Path) -> list[Fault]:
    """All faults of the host in `directory`, oldest first."""
    try:
        rows = json.loads((directory / FAULTS_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return [Fault(row["kind"], row["target"], KINDS[row["kind"]] | row["values"]) for row in rows]


def set_fault(directory: Path, kind: str, target: str = "*", **values: Any) -> Fault:
    """Switches a fault on, in place of one of the same kind and target. Raises ValueError for what does not exist."""
    if kind not in KINDS:
        raise ValueError(f"no fault {kind!r}; there are {', '.join(KINDS)}")
    if target != "*" and target.partition(":")[0] not in ("replica", "service", "card"):
        raise ValueError(f"target {target!r} is not replica:ID, service:NAME, card:UUID or *")
    unknown = set(values) - set(KINDS[kind])
    if unknown:
        raise ValueError(f"{kind} has no {', '.join(sorted(unknown))}; it has {', '.join(KINDS[kind]) or 'no values'}")
    fault = Fault(kind, target, KINDS[kind] | values)
    with locked(directory, "faults"):
        kept = [one for one in list_faults(directory) if (one.kind, one.target) != (kind, target)]
        _write(directory, [*kept, fault])
    return fault


def clear_faults(directory: Path, kind: str | None = None, target: str | None = None) -> int:
    """Switches off all faults that match; returns how many there were."""
    with locked(directory, "faults"):
        before = list_faults(directory)
        kept = [one for one in before if kind not in (None, one.kind) or target not in (None, one.target)]
        _write(directory, kept)
    return len(before) - len(kept)


def _write(directory: Path, faults: list[Fault]) -> None:
    rows = [{"kind": one.kind, "target": one.target, "values": one.values} for one in faults]
    write_json(directory / FAULTS_FILE, rows)


def _value(text: str) -> Any:
    """`name=2` is a number, `name=true` a truth value, all else words."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def main(arguments: Sequence[str]) -> int:
    """The command line; returns the exit status (2: not understood)."""
    match arguments:
        case [folder, "set", kind, *rest]:
            targets = [word for word in rest if "=" not in word]
            values = {name: _value(text) for name, _, text in (word.partition("=") for word in rest if "=" in word)}
            try:
                set_fault(Path(folder), kind, *targets[:1], **values)
            except ValueError as error:
                print(error, file=sys.stderr)
                return 2
        case [folder, "clear", *rest] if len(rest) <= 2:
            print(f"cleared {clear_faults(Path(folder), *rest)}")
        case [folder, "list"]:
            for fault in list_faults(Path(folder)):
                print(fault.kind, fault.target, json.dumps(fault.values, ensure_ascii=False))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
