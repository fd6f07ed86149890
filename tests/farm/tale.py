"""What a farm tells when a test fails on it: enough to find the cause from the output alone."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import redis

from tests.farm.harness import Farm

DECISIONS, LINES, BYTES = 30, 25, 20_000
_DECISIONS = f"""
select d.at, d.verb, s.name, d.replica_id, d.reason, d.refusal, d.numbers from journal_decision d
left join catalog_service s on s.id = d.service_id order by d.id desc limit {DECISIONS}
"""
_COPIES = """
select r.id, s.name, h.name, r.want, r.phase, r.attempt, r.phase_attempt, r.stage, r.running, r.waiting,
r.door_in_flight, r.drain_at, r.last_call_at, r.fault, r.fault_text, r.cards from catalog_replica r
join catalog_service s on s.id = r.service_id join fleet_host h on h.id = r.host_id where r.ended_at is null order by 1
"""
_EVENTS = """
select e.at, e.phase, s.name, e.replica_id, e.seconds, e.how, e.text from journal_event e
left join catalog_service s on s.id = e.service_id order by e.id desc limit 15
"""
_HOSTS = "select name, boot, seen_at, cards_at, want_generation, report_generation, door_ok from fleet_host order by 1"
_ORDERS = """
select o.id, o.act, s.name, o.at, o.done_at, o.outcome from catalog_order o
join catalog_service s on s.id = o.service_id order by o.id desc limit 8
"""
_POLICY = "select layer, subject, name, value from policies_policyvalue order by 1, 2, 3"


def tale(farm: Farm) -> str:
    """Rows, routes and ends of logs; what cannot be had says why, for this is read when things are broken."""
    parts: list[tuple[str, Callable[[], Iterable[object]]]] = [
        (f"last {DECISIONS} decisions, newest last", lambda: farm.rows(_DECISIONS)[::-1]),
        ("last events", lambda: farm.rows(_EVENTS)[::-1]),
        ("living copies", lambda: farm.rows(_COPIES)),
        ("hosts", lambda: farm.rows(_HOSTS)),
        ("orders", lambda: farm.rows(_ORDERS)[::-1]),
        ("policy", lambda: [" ".join(map(str, row)) for row in farm.rows(_POLICY)]),
        ("gateways", lambda: registered(farm)),
        ("supervisor", lambda: supervised(farm)),
        *((path.stem, lambda path=path: troubles(path)) for path in sorted((farm.home / "logs").glob("*.log"))),
    ]
    return "\n".join(f"== {name}\n{_told(look)}" for name, look in parts)


def _told(look: Callable[[], Iterable[object]]) -> str:
    try:
        return "\n".join(_line(row) for row in look()) or "-"
    except (OSError, sqlite3.Error, redis.RedisError, KeyError, ValueError) as error:
        return f"not to be had: {error!r}"


def _line(row: object) -> str:
    return " | ".join("" if cell is None else str(cell) for cell in row) if isinstance(row, tuple) else str(row)


def registered(farm: Farm) -> list[str]:
    """What each gateway tells of itself, and which version of the routes there is."""
    with redis.Redis.from_url(farm.ready["redis"], socket_timeout=5, protocol=2) as client:
        names: Any = client.zrange("gateways", 0, -1)
        bodies: Any = [client.get(f"gateway:{name.decode()}") for name in names]
    return [body.decode() for body in bodies if body] + [f"routes {farm.routes().get('version')}"]


def supervised(farm: Farm) -> list[str]:
    """What the supervisor told, without its banner: there stand passwords, indented."""
    return [line for line in end_of(farm.home / "supervisor.log", 400) if line and not line.startswith(" ")][-LINES:]


def end_of(path: Path, lines: int = LINES) -> list[str]:
    with path.open("rb") as file:
        with contextlib.suppress(OSError):
            file.seek(-BYTES, 2)
        return file.read().decode(errors="replace").splitlines()[-lines:]


def troubles(path: Path) -> list[str]:
    """The end of a part's log where it tells of trouble, from its first word on."""
    lines = end_of(path, 400)
    first = next((n for n, line in enumerate(lines) if any(word in line for word in ("Traceback", "ERROR"))), None)
    return [] if first is None else lines[first:][-LINES:]
