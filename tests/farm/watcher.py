"""Looks at a farm from the outside, all the time: what must never be seen, whoever was killed.

Reads what a machine shows (processes, their sockets, the cards' memory), not what the platform believes.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import redis

from tests.farm.harness import Farm
from workers.simulator.cards import CardState, Record, read_cards, read_host, read_records
from workers.simulator.faults import Faults

LOOK_S = 0.25
LOADING = frozenset({"init", "weights", "warmup"})


@dataclass
class Watcher:
    """`faults` collects every breach; empty is what a test wants."""

    farm: Farm
    faults: list[str] = field(default_factory=list)
    looks: int = 0
    most_loads: Counter[str] = field(default_factory=Counter)

    def __enter__(self) -> Watcher:
        self.halt = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.halt.set()
        self.thread.join(10)

    def _run(self) -> None:
        while not self.halt.wait(LOOK_S):
            for host in sorted((self.farm.home / "hosts").iterdir()):
                self._memory(read_cards(host / "sim"))
                self._loads(host / "sim")
            self.looks += 1

    def _memory(self, cards: Iterable[CardState]) -> None:
        """Claims are packed below the buffer: measured use that reaches into it means weights were oversold."""
        for card in cards:
            used = sum(process.used_mib for process in card.processes)
            allocatable = card.total_mib - card.reserved_mib - -(-card.total_mib * 8 // 100)
            if used > allocatable:
                self.faults.append(f"{card.uuid}: {used} MiB in use of {allocatable} allocatable")

    def _loads(self, sim: Path) -> None:
        """One start at a time on a card."""
        loading: Counter[str] = Counter()
        for record in live_records(sim):
            if record.stage in LOADING:
                loading.update(record.held_mib.keys())
        for card, count in loading.items():
            self.most_loads[card] = max(self.most_loads[card], count)
            if count > 1:
                self.faults.append(f"{card}: {count} starts at once")

    def check_rest(self) -> None:
        """What must be true once the farm is whole: no orphan, no lost replica, counts zero. Raises AssertionError."""
        assert not self.faults, self.faults[:5]
        assert self.looks > 0
        deadline = time.monotonic() + 30
        while (wrong := self._wrong()) and time.monotonic() < deadline:
            time.sleep(0.3)
        assert not wrong, wrong

    def _wrong(self) -> list[str]:
        return [*self._orphans(), *self._counts(), *self._doors()]

    def _orphans(self) -> list[str]:
        """Engines and rows name each other, one to one."""
        rows = {
            pk
            for (pk,) in self.farm.rows(
                "select id from catalog_replica where ended_at is null and phase in ('ready', 'asleep')"
            )
        }
        engines = []
        for process in self.farm.processes("engine"):
            try:
                engines.append(int(process.environ()["GONGKA_REPLICA"]))
            except psutil.Error:
                return ["an engine is just ending"]
        twice = [replica for replica, count in Counter(engines).items() if count > 1]
        wrong = [f"engine without a row: {replica}" for replica in set(engines) - rows]
        wrong += [f"row without an engine: {replica}" for replica in rows - set(engines)]
        return wrong + [f"two engines of {replica}" for replica in twice]

    def _counts(self) -> list[str]:
        with redis.Redis.from_url(self.farm.ready["redis"], protocol=2) as client:
            bodies = [client.get(f"gateway:{name.decode()}") for name in client.zrange("gateways", 0, -1)]
        counted = [body for body in bodies if body and json.loads(body)["in_flight"]]
        return [f"a gateway counts {body!r}" for body in counted]

    def _doors(self) -> list[str]:
        wrong = []
        for name, url in self.farm.rows("select name, door_url from fleet_host"):
            token = (self.farm.home / "hosts" / name / "door.token").read_text().strip()
            try:
                answer = httpx.get(f"{url}/counts", headers={"Authorization": f"Bearer {token}"}, timeout=5)
            except httpx.HTTPError as error:
                wrong.append(f"door of {name}: {error}")
                continue
            wrong += [f"door of {name} counts {r}: {n}" for r, n in answer.json()["in_flight"].items() if n]
        return wrong


def live_records(sim: Path) -> list[Record]:
    """Processes that hold memory of the host's cards and live."""
    host = read_host(sim)
    records = read_records(sim, Faults(sim), host.release_s, time.time())
    return [record for record in records if record.died_at is None]
