"""A host on paper: answers wants with reports, its engines take as many ticks as told. No processes, no Redis."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from workers.messages import CardSample, HostReport, HostWant, Process, ReplicaReport, ReplicaWant, encode


@dataclass
class Engine:
    want: ReplicaWant
    phase: str = "starting"
    since: float = 0.0
    took_s: float | None = None


@dataclass
class PaperHost:
    """`load_s` and `wake_s` by its own clock; memory appears at once and goes `lag` reports after the process."""

    name: str
    cards: list[str]
    total_mib: int = 81920
    reserved_mib: int = 600
    load_s: float = 10.0
    wake_s: float = 3.0
    lag: int = 0
    boot: str = "b1"
    seq: int = 0
    generation: int = 0
    engines: dict[int, Engine] = field(default_factory=dict)
    lagging: list[tuple[int, str, int]] = field(default_factory=list)  # (reports left, card, MiB)
    fail: set[str] = field(default_factory=set)  # services whose starts fail
    door: dict[int, int] = field(default_factory=dict)  # replica → calls in flight
    calls: dict[int, tuple[int, int]] = field(default_factory=dict)  # replica → (running, waiting) in its engine
    foreign: dict[str, int] = field(default_factory=dict)  # card → MiB that somebody else took
    grown: dict[int, int] = field(default_factory=dict)  # replica → MiB its process really has
    kv_used_pct: dict[int, float] = field(default_factory=dict)  # replica → of its KV memory; absent: unknown
    waiting: dict[int, int] = field(default_factory=dict)  # replica → calls queued in its engine
    slice_of: str = ""  # its cards are slices of this one
    starts: list[tuple[float, int, str]] = field(default_factory=list)

    def take(self, want: HostWant, now: float) -> None:
        if want.generation < self.generation:
            return
        self.generation = want.generation
        for wanted in want.replicas:
            self._one(wanted, now)
        named = {wanted.id for wanted in want.replicas}
        self.engines = {key: engine for key, engine in self.engines.items() if key in named}

    def _one(self, wanted: ReplicaWant, now: float) -> None:
        engine = self.engines.get(wanted.id)
        if engine is None or engine.want.attempt < wanted.attempt:
            phase = "starting" if wanted.want == "ready" else "stopped"
            self.engines[wanted.id] = Engine(wanted, phase, now)
            if phase == "starting":
                self.starts.append((now, wanted.id, wanted.cards[0]))
            return
        engine.want = wanted
        if wanted.want == "drained" and engine.phase == "ready":
            self._move(engine, "draining", now)
        elif wanted.want == "ready" and engine.phase == "draining":
            self._move(engine, "ready", now)
        elif wanted.want == "ready" and engine.phase == "asleep":
            self._move(engine, "starting", now)
            engine.took_s = self.wake_s
        elif wanted.want == "asleep" and engine.phase in ("ready", "draining") and self._quiet(wanted):
            self._move(engine, "asleep", now)
        elif wanted.want == "stopped" and engine.phase != "stopped" and self._quiet(wanted):
            if engine.phase not in ("failed", "stopped") and self.lag:
                self.lagging += [(self.lag, card, self.memory(engine)) for card in wanted.cards]
            self._move(engine, "stopped", now)

    def _quiet(self, wanted: ReplicaWant) -> bool:
        return wanted.force or not self.door.get(wanted.id)

    @staticmethod
    def _move(engine: Engine, phase: str, now: float) -> None:
        engine.phase, engine.since = phase, now

    def memory(self, engine: Engine) -> int:
        spec = engine.want.engine
        return {"stopped": 0, "failed": 0, "asleep": 1300}.get(
            engine.phase, self.grown.get(engine.want.id, spec.fixed_mib + spec.kv_granted_mib - 1024)
        )

    def crash(self, replica: int, now: float) -> None:
        self._move(self.engines[replica], "failed", now)

    def report(self, now: float) -> HostReport:
        for engine in self.engines.values():
            took = engine.took_s if engine.took_s is not None else self.load_s
            if engine.phase == "starting" and engine.want.service in self.fail:
                self._move(engine, "failed", now)
            elif engine.phase == "starting" and now - engine.since >= took:
                self._move(engine, "ready", now)
        self.seq += 1
        self.lagging = [(left - 1, card, mib) for left, card, mib in self.lagging if left > 0]
        return HostReport(
            host=self.name,
            at=now,
            boot=self.boot,
            seq=self.seq,
            generation=self.generation,
            version="paper",
            door_url=f"http://127.0.0.1:1/{self.name}",
            door_ok=True,
            memory_mib=512 * 1024,
            memory_free_mib=400 * 1024,
            bandwidth_mib_s=2000,
            cards_at=now,
            cards=[self._card(index, card) for index, card in enumerate(self.cards)],
            replicas=[self._replica(engine) for engine in self.engines.values()],
        )

    def body(self, now: float) -> dict[str, tuple[float, bytes]]:
        return {self.name: (now, encode(self.report(now)))}

    def _card(self, index: int, uuid: str) -> CardSample:
        here = [engine for engine in self.engines.values() if uuid in engine.want.cards]
        processes = [
            Process(engine.want.id, self.memory(engine), "engine", engine.want.id)
            for engine in here
            if self.memory(engine)
        ]
        used = sum(process.used_mib or 0 for process in processes)
        used += sum(mib for _, card, mib in self.lagging if card == uuid) + self.foreign.get(uuid, 0)
        free = self.total_mib - self.reserved_mib - used
        sizes = (self.total_mib, self.reserved_mib, free, 10)
        return CardSample(uuid, index, "A800", *sizes, processes=processes, slice_of=self.slice_of)

    def _replica(self, engine: Engine) -> ReplicaReport:
        want = engine.want
        report = ReplicaReport(
            id=want.id,
            attempt=want.attempt,
            phase=engine.phase,
            cards=want.cards,
            since=engine.since,
            measured_mib=self.memory(engine) or None,
            door_in_flight=self.door.get(want.id, 0),
            kv_used_pct=self.kv_used_pct.get(want.id),
            running=self.calls.get(want.id, (0, 0))[0],
            waiting=self.waiting.get(want.id, self.calls.get(want.id, (0, 0))[1]),
            can_sleep=True,
        )
        if engine.phase == "ready":
            took = engine.took_s if engine.took_s is not None else self.load_s
            report = replace(report, took_s=took, took="wake" if engine.took_s is not None else "start")
        if engine.phase == "failed":
            report = replace(report, fault="crashed", fault_text="RuntimeError: boom")
        return report
