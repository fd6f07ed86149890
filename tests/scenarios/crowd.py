"""Callers of one service on the farm in memory: engines that run so many at once and queue the rest, gateways that
choose the least busy copy and shave, histograms, and looks: everything the scaling rules see, second by second.

An engine's first token comes later the more it runs (`slow_ms`); it takes `answer_s` for a whole answer.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from scheduler.admission import admission
from scheduler.decision import Reason, Verb
from scheduler.histogram import SLOT_S, Histogram, Tally, unpacked
from scheduler.looks import Scaling
from scheduler.p99 import p99
from scheduler.scaling import SCALE_OUT
from scheduler.signals import copies, due, look
from scheduler.world import Phase, Replica, Service, Want
from tests.plays.farm import Farm


@dataclass
class Call:
    arrived: float
    left_s: float
    began: float | None = None


@dataclass
class Crowd:
    farm: Farm
    name: str
    answer_s: float = 4.0
    first_ms: float = 200.0
    calls: dict[int, list[Call]] = field(default_factory=lambda: defaultdict(list))
    tallies: dict[int, Tally] = field(default_factory=lambda: defaultdict(Tally))  # by slot
    gone: dict[int, Histogram] = field(default_factory=dict)  # slots that are over
    changed_at: float = 0.0
    owed: float = 0.0  # part of a call that has not come yet
    served: int = 0
    dropped: int = 0
    refused: list[tuple[float, float]] = field(default_factory=list)  # (when, told to come back after)
    waits_s: list[float] = field(default_factory=list)  # from arrival to the engine's work on it
    p99s: list[tuple[float, float | None]] = field(default_factory=list)  # once a second
    peak: int = 0

    # What a test does

    def step(self, per_s: float = 0.0, at_once: int = 0) -> None:
        """A second: callers come, engines work, the loop plans."""
        self.owed += per_s + at_once
        while self.owed >= 1:
            self.owed -= 1
            self.arrive()
        self._work()
        self._tell()
        planned = self.farm.step()
        self._remember(planned)
        for number in [n for n, calls in self.calls.items() if calls and not self._alive(n)]:
            self.dropped += len(self.calls.pop(number))

    def steps(self, seconds: int, per_s: float = 0.0) -> None:
        for _ in range(seconds):
            self.step(per_s)

    def arrive(self, left_s: float | None = None, replica: int | None = None) -> bool:
        """One call, at the least busy copy or at this one; False: shaved."""
        ready = [r.id for r in self.ready()] if replica is None else [replica]
        limit = admission(self.farm.world, self.farm.policy, self.service, self.replicas(), self.farm.now)
        if limit is not None and sum(len(self.calls[n]) for n in ready) >= limit.calls:
            self.refused.append((self.farm.now, limit.retry_after_s))
            return False
        chosen = min(ready, key=lambda n: (len(self.calls[n]), n))
        self.calls[chosen].append(Call(self.farm.now, self.answer_s if left_s is None else left_s))
        return True

    # What a test looks at

    @property
    def service(self) -> Service:
        return self.farm.world.services[self.name]

    @property
    def scaling(self) -> Scaling:
        return self.service.scaling or Scaling()

    def replicas(self) -> list[Replica]:
        return [r for r in self.farm.world.replicas.values() if r.service == self.name]

    def ready(self) -> list[Replica]:
        return [r for r in self.replicas() if r.phase is Phase.READY and r.want is Want.READY]

    def slow_s(self, since: float, target_ms: float = 800.0) -> int:
        """Seconds since then with a P99 over the target."""
        return sum(at >= since and ms is not None and ms > target_ms for at, ms in self.p99s)

    # How engines and gateways behave

    def _alive(self, number: int) -> bool:
        found = self.farm.world.replicas.get(number)
        return found is not None and found.phase in (Phase.READY, Phase.DRAINING)

    def _work(self) -> None:
        for calls in self.calls.values():
            for call in calls:
                call.left_s -= call.began is not None
            self.served += sum(c.left_s <= 0 for c in calls)
            calls[:] = [c for c in calls if c.left_s > 0]
            running = sum(c.began is not None for c in calls)
            for call in [c for c in calls if c.began is None][: self.service.max_num_seqs - running]:
                running += 1
                self._begin(call, running)

    def _begin(self, call: Call, running: int) -> None:
        """The engine takes it from its queue; its first token comes later the more run beside it."""
        call.began = self.farm.now
        wait_s = self.farm.now - call.arrived
        self.waits_s.append(wait_s)
        slower = 1 + (running / 8) ** 2 / 2
        self.tallies[int(self.farm.now) // SLOT_S].add(wait_s * 1000 + self.first_ms * slower)

    def _tell(self) -> None:
        """What hosts and gateways report, and control's look at it."""
        farm, now = self.farm, self.farm.now
        slot = int(now) // SLOT_S
        for number in [n for n in self.tallies if n < slot]:
            self.gone[number] = unpacked(*self.tallies.pop(number).packed())
        known, samples = p99([self.gone], farm.policy, now, self.scaling.changed_at)
        self.p99s.append((now, known))
        running = waiting = 0
        for replica in self.replicas():
            calls = self.calls[replica.id]
            runs = sum(c.began is not None for c in calls)
            farm.calls[replica.id] = len(calls)
            if replica.phase is Phase.READY and replica.want is Want.READY:
                running, waiting = running + runs, waiting + len(calls) - runs
        self.peak = max(self.peak, running + waiting)
        self._service(running=running, waiting=waiting, p99_ms=known, p99_samples=samples)
        if due(self.service, farm.policy, now):
            self._service(scaling=look(self.service, copies(self.replicas()), farm.policy, now))

    def _remember(self, planned) -> None:
        """As the recorder does."""
        for d in planned:
            if d.refusal is not None or d.service != self.name:
                continue
            if d.reason in SCALE_OUT and "raised_from" in d.numbers:
                count = min(int(d.numbers["desired"]), self.service.max_replicas)
                raised = dict(raised_to=count, raised_waiting=int(d.numbers["waiting"]), raised_at=self.farm.now - 1)
                self._service(scaling=replace(self.scaling, **raised, came_from=0, came_from_at=None))
            elif d.reason is Reason.SURPLUS and d.verb is Verb.DRAIN and "came_from" in d.numbers:
                came = dict(came_from=int(d.numbers["came_from"]), came_from_at=self.farm.now - 1)
                self._service(scaling=replace(self.scaling, **came))

    def _service(self, **fields: object) -> None:
        services = dict(self.farm.world.services)
        services[self.name] = replace(services[self.name], **fields)
        self.farm.world = replace(self.farm.world, services=services)
