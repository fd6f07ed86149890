"""How a replica's thread looks at the machine: processes, health, log, metrics, the door's count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from workers.host import files
from workers.host import memo as states
from workers.host.engine import Engine, Gauges, Health
from workers.host.engines import ENGINES
from workers.host.launchers import Running
from workers.host.memo import Memo
from workers.host.surroundings import Surroundings
from workers.host.sync import Look


def moved_at(before: Look, gauges: Gauges, now: float) -> float | None:
    """Since when an engine with calls has counted no token; an engine that says nothing is judged by its health."""
    if not gauges.busy or gauges.tokens is None:
        return None
    still = before.moved_at is not None and gauges.tokens == before.gauges.tokens
    return before.moved_at if still else now


class Eyes:
    """Used by one thread."""

    def __init__(self, number: int, folder: Path, around: Surroundings) -> None:
        self._id, self._folder, self._around = number, folder, around
        self._engine: Engine | None = None
        self._scraped_at = 0.0
        self._absent = False

    def forget(self) -> None:
        """Nothing seen of an earlier life counts for the next."""
        if self._engine:
            self._engine.close()
        self._engine, self._scraped_at = None, 0.0

    def see(self, memo: Memo, before: Look, now: float) -> Look:
        """`before` has been told what the replica itself knows (its call, its signals); the rest is looked up."""
        around, limits = self._around, self._around.limits
        pids = self._pids(memo, before)
        look = replace(
            before,
            pids=pids,
            unsure=self._absent,
            routed=around.keeper.has(self._id),
            in_flight=around.keeper.in_flight(self._id),
            measured_mib=around.telemetry.measured_mib({one.pid for one in pids}) if pids else None,
        )
        if look.call is not None or not pids or not memo.lives:
            return replace(look, health=None, misses=0, sick=0)
        look = self._probe(memo, look)
        if memo.state == states.LOADING:
            stage, progress = ENGINES[memo.kind].progress(self.log())
            return replace(look, stage=stage, progress=progress)
        if now - self._scraped_at >= limits.scrape_s:
            self._scraped_at = now
            files.cut_back(self._folder / "log", limits.log_max_bytes, limits.log_keep_bytes)
            gauges = self._client().gauges()
            return replace(look, gauges=gauges, moved_at=moved_at(look, gauges, now))
        return look

    def log(self) -> str:
        return files.tail(self._folder / "log", self._around.limits.tail_bytes)

    def _pids(self, memo: Memo, before: Look) -> tuple[Running, ...]:
        """A process has no readable mark in the moment it executes another program: only twice missing is gone."""
        settled = memo.lives and not memo.term_at and not self._absent
        pids = tuple(self._around.launcher.scan(self._around.limits.scan_age_s if settled else 0.0).get(self._id, ()))
        self._absent = not pids and memo.lives and not self._absent
        return before.pids if self._absent else pids

    def _probe(self, memo: Memo, look: Look) -> Look:
        if not (self._folder / "sock").exists():
            return replace(look, health=Health.REFUSED, misses=0, sick=0)
        engine = self._client()
        health = engine.health()
        good, loading = health is Health.GOOD, memo.state == states.LOADING
        asks = good and not loading and memo.sleep_mode and (look.asleep is None or memo.state == states.ASLEEP)
        return replace(
            look,
            health=health,
            misses=look.misses + 1 if health is Health.SILENT else 0,
            sick=look.sick + 1 if health is Health.SICK else 0,
            names=engine.models() if good and loading else None,
            asleep=engine.asleep() if asks else look.asleep,
        )

    def _client(self) -> Engine:
        if self._engine is None:
            self._engine = Engine(self._folder / "sock", self._around.limits.probe_s)
        return self._engine
