"""A tiny farm in memory: records plans as the recorder does, and lets phases follow after their times.

Pure and without a clock: `step` moves `now`. Callers wait, are told the outlook, and are answered when a copy is ready.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from scheduler import modes
from scheduler.decision import Decision, Reason, Verb
from scheduler.draft import changed
from scheduler.hold import Outlook, outlook
from scheduler.lifecycle import legal
from scheduler.memory import Seat, ours_mib
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.pressed import samples_after
from scheduler.world import Card, Eviction, Failure, LoadTimes, Phase, Replica, Swap, Want, World
from tests.scheduler.build import NOW, POLICY

WENT = frozenset({Reason.IDLE, Reason.ROOM})


@dataclass
class Farm:
    """`load_s` a service's real load time; `fails` (service, card) whose starts fail; `dead` silent hosts."""

    world: World
    policy: Policy = POLICY
    now: float = NOW
    load_s: dict[str, float] = field(default_factory=dict)
    stop_s: float = 5.0
    wake_s: float = 3.0
    fails: set[tuple[str, str]] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)
    journal: list[tuple[float, Decision]] = field(default_factory=list)
    answered: dict[str, float] = field(default_factory=dict)
    told: dict[str, list[tuple[float, Outlook]]] = field(default_factory=dict)
    calls: dict[int, int] = field(default_factory=dict)  # replica: calls in flight
    grown: dict[int, int] = field(default_factory=dict)  # replica: MiB its process really has
    foreign: dict[str, int] = field(default_factory=dict)  # card: MiB that somebody else took
    peak_pct: dict[str, float] = field(default_factory=dict)  # card: the highest use that was ever measured
    was_ready: dict[str, list[float]] = field(default_factory=dict)  # service: when a copy became so
    advised: list[tuple[float, Decision, str]] = field(default_factory=list)  # what a pool's mode did not let act
    faults: dict[str, tuple[str, bool]] = field(default_factory=dict)  # service: (code, fatal) of its failed starts
    pressed: list[tuple[float, Decision]] = field(default_factory=list)  # the journal's evictions
    next_id: int = 1000

    # What a test does

    def call(self, service: str, *, stream: bool = False) -> None:
        """A caller comes and waits."""
        demand = self.world.services[service].demand
        since = self.now if demand.held_since is None else demand.held_since
        self._demand(
            service,
            held=demand.held + 1,
            held_streams=demand.held_streams + stream,
            held_since=since,
            last_call_at=self.now,
        )

    def hang_up(self, service: str) -> None:
        self._demand(service, held=0, held_streams=0, held_since=None)

    def change(self, replica: int, **fields: object) -> None:
        self._put(replace(self.world.replicas[replica], **fields))

    def step(self, seconds: float = 1.0) -> list[Decision]:
        """One tick of the loop, then time passes and the machines follow."""
        self._refresh()
        self.world = replace(self.world, evictions=self._evictions())
        decisions = plan(self.world, self.policy, self.now)
        for decision in decisions:
            if decision.refusal is None and (why := modes.advice(decision, self.world)):
                self.advised.append((self.now, decision, why))
                continue
            self.journal.append((self.now, decision))
            if decision.refusal is None:
                self._record(decision)
                if decision.reason is Reason.PRESSURE and "frees_mib" in decision.numbers:
                    self.pressed.append((self.now, decision))
        for name, service in self.world.services.items():
            if service.demand.held:
                told = outlook(self.world, self.policy, service, decisions, self.now)
                self.told.setdefault(name, []).append((self.now, told))
        self.now += seconds
        for replica in list(self.world.replicas.values()):
            self._advance(replica)
        self._answer()
        return decisions

    def until(self, done: Callable[[Farm], bool], limit_s: float = 600.0, step_s: float = 1.0) -> float:
        """Steps until it is so; seconds it took. Fails past the limit."""
        began = self.now
        while not done(self):
            assert self.now - began < limit_s, f"not so after {limit_s} s: {self.phases()}"
            self.step(step_s)
        return self.now - began

    # What a test looks at

    def phases(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for replica in sorted(self.world.replicas.values(), key=lambda r: r.id):
            found.setdefault(replica.service, []).append(f"{replica.phase}@{replica.cards[0]}")
        return found

    def ready(self, service: str) -> list[Replica]:
        return [r for r in self.world.replicas.values() if r.service == service and r.phase is Phase.READY]

    def did(self, service: str, verb: Verb | None = None) -> list[Decision]:
        acted = (d for _, d in self.journal if d.refusal is None and d.service == service)
        return [d for d in acted if verb is None or d.verb is verb]

    def refusals(self, service: str) -> list[str]:
        return [d.refusal.code for _, d in self.journal if d.refusal and d.service == service]

    # How the machines behave

    def _demand(self, service: str, **fields: object) -> None:
        old = self.world.services[service]
        self._service(service, demand=replace(old.demand, **fields))

    def _service(self, service: str, **fields: object) -> None:
        services = dict(self.world.services)
        services[service] = replace(services[service], **fields)
        self.world = replace(self.world, services=services)

    def _put(self, replica: Replica) -> None:
        self.world = replace(self.world, replicas={**self.world.replicas, replica.id: replica})

    def _drop(self, replica: int) -> None:
        self.world = replace(self.world, replicas={i: r for i, r in self.world.replicas.items() if i != replica})

    def _refresh(self) -> None:
        """Reports: hosts heard, memory measured, calls counted."""
        hosts = {n: h if n in self.dead else replace(h, seen_at=self.now) for n, h in self.world.hosts.items()}
        replicas = {id: self._reported(replica) for id, replica in self.world.replicas.items()}
        self.world = replace(self.world, hosts=hosts, replicas=replicas)
        cards = {card.id: self._measured(card) for card in self.world.cards.values()}
        self.world = replace(self.world, cards=cards)

    def _reported(self, replica: Replica) -> Replica:
        seen: dict[str, object] = {}
        if replica.id in self.grown and replica.phase is not Phase.ASLEEP:
            seen["measured_mib"] = self.grown[replica.id]
        if replica.phase in (Phase.READY, Phase.DRAINING):
            count = self.calls.get(replica.id, 0)
            seen |= {"in_flight": count, "quiet": replica.phase is Phase.DRAINING and not count}
        new = {name: value for name, value in seen.items() if getattr(replica, name) != value}
        return replace(replica, **new) if new else replica

    def _measured(self, card: Card) -> Card:
        on = [r for r in self.world.replicas.values() if card.id in r.cards]
        seats = [Seat(r, self.world.services.get(r.service)) for r in on]
        taken = card.driver_reserved_mib + ours_mib(seats, self.policy) + self.foreign.get(card.id, 0)
        self.peak_pct[card.id] = max(self.peak_pct.get(card.id, 0.0), taken * 100 / card.total_mib)
        seen = card if card.unavailable_mib == taken else replace(card, unavailable_mib=taken)
        samples = samples_after(seen, card.pressed_samples, self.policy)
        return seen if samples == card.pressed_samples else replace(seen, pressed_samples=samples)

    def _evictions(self) -> tuple[Eviction, ...]:
        """As the journal tells them: closed by the first copy that became ready since, or by whoever let it go."""
        found = []
        for at, d in self.pressed:
            answered = any(w >= at for w in self.was_ready.get(d.service, ())) or self._let_go(d.service, at)
            found.append(Eviction(d.service, str(d.numbers["card"]), at, d.verb is Verb.DRAIN and not answered))
        return tuple(found)

    def _let_go(self, service: str, since: float) -> bool:
        unforced = (d for at, d in self.journal if at >= since and d.refusal is None and d.service == service)
        gone = (Verb.DRAIN, Verb.SLEEP, Verb.STOP)
        return any(d.verb in gone and d.reason not in (Reason.PRESSURE, Reason.FAULT) for d in unforced)

    def _record(self, decision: Decision) -> None:
        old = self.world.replicas.get(decision.replica) if decision.replica is not None else None
        assert legal(decision, old), decision
        if old is None:
            self.next_id += 1
            new = Replica(self.next_id, decision.service, decision.cards, Want.READY, Phase.STARTING)
            self._put(changed(replace(new, attempt=0), decision, self.now))
            return
        new = changed(old, decision, self.now)
        if "left_alone_until" in decision.numbers:
            new = replace(new, left_alone_until=decision.numbers["left_alone_until"])
        self._put(new)
        if decision.reason in WENT and decision.verb in (Verb.DRAIN, Verb.STOP) and decision.not_before is None:
            self._service(decision.service, last_reclaimed_at=self.now)
        if "room_for" in decision.numbers:
            swap = Swap(str(decision.numbers["room_for"]), decision.service, self.now)
            self.world = replace(self.world, swaps=(*self.world.swaps, swap))

    def _advance(self, replica: Replica) -> None:
        if self.world.cards[replica.cards[0]].host in self.dead:
            return
        took = self.now - replica.want_since
        if replica.phase is Phase.STARTING and replica.want is Want.READY:
            self._load(replica, took)
        elif replica.want is Want.ASLEEP and replica.phase is Phase.DRAINING and took >= self.stop_s:
            self._put(replace(replica, phase=Phase.ASLEEP, since=self.now))
        elif replica.want is Want.STOPPED and (took >= self.stop_s or replica.phase is Phase.FAILED):
            self._drop(replica.id)

    def _load(self, replica: Replica, took: float) -> None:
        if not replica.waking and (replica.service, replica.cards[0]) in self.fails:
            self._fail(replica)
        elif took >= (self.wake_s if replica.waking else self.load_s.get(replica.service, 10.0)):
            ready = replace(
                replica,
                phase=Phase.READY,
                since=self.now,
                loaded_at=self.now,
                in_flight=0,
                waking=False,
                failures_here=0,
            )
            self._put(ready)
            self.was_ready.setdefault(replica.service, []).append(self.now)
            self._service(replica.service, failures=())
            self._learn(replica, took)

    def _learn(self, replica: Replica, took: float) -> None:
        name = "wake_times" if replica.waking else "load_times"
        key = (replica.service, self.world.cards[replica.cards[0]].host)
        times = dict(getattr(self.world, name))
        times[key] = LoadTimes((*times.get(key, LoadTimes()).seconds, took))
        self.world = replace(self.world, **{name: times})

    def _fail(self, replica: Replica) -> None:
        here = replica.failures_here + 1
        code, fatal = self.faults.get(replica.service, ("crashed", False))
        ended = replace(replica, phase=Phase.FAILED, failures_here=here, failed_at=self.now, fault=code, fatal=fatal)
        self._put(ended)
        failure = Failure(replica.cards[0], self.now, code, "exit 1", fatal)
        self._service(replica.service, failures=(*self.world.services[replica.service].failures, failure))

    def _answer(self) -> None:
        for name, service in self.world.services.items():
            ready = [r for r in self.ready(name) if r.want is Want.READY]
            if service.demand.held and ready:
                self.answered[name] = self.now
                self.hang_up(name)
                self._put(replace(ready[0], last_call_at=self.now))
