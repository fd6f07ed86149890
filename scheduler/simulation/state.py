"""The simulated farm at one moment, and its queue of events. Everything else here is functions over it."""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from scheduler.decision import Decision
from scheduler.looks import Scaling
from scheduler.move import Move
from scheduler.policy import Policy
from scheduler.pressed import samples_after
from scheduler.rows import changed
from scheduler.simulation.copies import Copy
from scheduler.simulation.measures import Measures
from scheduler.simulation.trace import Call, Machine
from scheduler.world import Demand, Eviction, LoadTimes, Phase, Pool, Service, Swap, Want, World

Planner = Callable[[World, Policy, float], list[Decision]]
NEVER = float("inf")
DAY_S = 86400


class Seen(NamedTuple):
    """What a look at the load of a service reads (`signals.Loaded`), and what came of it."""

    scaling: Scaling | None
    running: int
    waiting: int
    p99_ms: float | None
    p99_target_ms: int | None
    p99_samples: int


@dataclass(slots=True, eq=False)
class Desk:
    """A service at the gateway: who is held, which copies answer, and what was counted of it."""

    held: deque[tuple[Call, float]] = field(default_factory=deque)  # with the time they came
    held_streams: int = 0
    turn: deque[tuple[Call, float]] = field(default_factory=deque)  # batch calls until others on their card end
    routed: list[Copy] = field(default_factory=list)
    last_call_at: float | None = None
    opened_at: float | None = None  # a session began with a call that was held
    calls_by_day: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # site day: calls
    hours_by_day: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # site day: hours as bits
    starts: list[tuple[int, int]] = field(default_factory=list)  # (site day, minute) of first calls after a pause
    seen: Seen | None = None  # of the last look, until the planner is told
    first_tokens: deque[tuple[float, float]] = field(default_factory=deque)  # of late, where it may scale
    reclaims: list[float] = field(default_factory=list)
    raised: tuple[float, int] | None = None  # a raise that is not all ready: since when, to how many


@dataclass(slots=True, eq=False)
class Farm:
    """`events` are (time, order, what to do); `plan_at` is when the planner is asked next."""

    world: World
    policy: Policy
    machine: Machine
    planner: Planner
    now: float
    began: float
    copies: dict[int, Copy] = field(default_factory=dict)
    on_card: dict[str, list[Copy]] = field(default_factory=lambda: defaultdict(list))
    of_service: dict[str, list[Copy]] = field(default_factory=lambda: defaultdict(list))
    desks: dict[str, Desk] = field(default_factory=lambda: defaultdict(Desk))
    services: dict[str, Service] = field(default_factory=dict)
    measures: Measures = field(default_factory=Measures)
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    plan_at: float = NEVER
    planned_at: float = 0.0
    dirty: set[str] = field(default_factory=set)  # services whose demand changed since the last plan
    touched: set[int] = field(default_factory=set)  # copies whose traffic changed since
    busy: dict[str, float] = field(default_factory=lambda: defaultdict(float))  # by card, now
    busy_at: dict[str, float] = field(default_factory=dict)  # since when it is so
    reading: dict[str, float] = field(default_factory=dict)  # host: up to when reads are accounted for
    reads: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # host: void older events
    holding: dict[str, tuple[float, tuple[tuple[str, int], ...]]] = field(default_factory=dict)  # card: see `holding`
    load_times: dict[tuple[str, str], LoadTimes] = field(default_factory=dict)
    wake_times: dict[tuple[str, str], LoadTimes] = field(default_factory=dict)
    swaps: list[Swap] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    pressed_since: dict[str, float] = field(default_factory=dict)  # by card
    forecasts: dict[str, Any] = field(default_factory=dict)
    likely: list[str] = field(default_factory=list)  # services of which any hour or minute is expected
    refused_at: dict[str, float] = field(default_factory=dict)  # by pool
    expected: dict[str, float] = field(default_factory=dict)  # of which a plan was told already, by service
    looked: dict[int, float] = field(default_factory=dict)  # idle copies that a plan left where they are, and when
    quiet_at: float = 0.0  # when it was last looked at how quick neighbours of batch are without it
    limited: set[str] = field(default_factory=set)  # cards that carry no more than so many batch calls
    stuck: set[str] = field(default_factory=set)  # cards under pressure from which nobody may go
    waiting_turn: set[str] = field(default_factory=set)  # services of which a batch call waits for its turn
    moves: list[Move] = field(default_factory=list)  # of repack, that are open
    next_move: int = 1
    proposals: int = 0
    order: int = 0
    next_id: int = 1
    least_idle_s: float = field(init=False)  # who was used more lately is idle for nobody's rule

    def __post_init__(self) -> None:
        layers = (*self.policy.overrides.pools.values(), *self.policy.overrides.services.values())
        own = [values["idle_unload_s"] for values in layers if "idle_unload_s" in values]
        self.least_idle_s = min(self.policy.idle_unload_s, *own) if own else self.policy.idle_unload_s

    def at(self, when: float, act: Callable[[], None]) -> None:
        """Something happens later."""
        self.order += 1
        heapq.heappush(self.events, (when, self.order, act))

    def ask(self, when: float) -> None:
        """The planner is asked then, or sooner."""
        self.plan_at = min(self.plan_at, when)

    @property
    def site_minute(self) -> int:
        return int((self.now + self.machine.site_offset_s) % DAY_S) // 60

    def host(self, copy: Copy) -> str:
        return self.world.cards[copy.seen.cards[0]].host

    def change(self, copy: Copy, **fields: Any) -> None:
        """What the planner sees of a copy is different from here on."""
        copy.seen = changed(copy.seen, **fields)

    def rate(self, copy: Copy) -> None:
        """The share of its cards' time that a copy wants may have changed."""
        wants = copy.wants()
        more = wants - copy.busy
        if not more:
            return
        for card in copy.seen.cards:
            self.account(card)
            self.busy[card] += more
        copy.busy = wants

    def account(self, card: str) -> None:
        """Adds up the time since the last change."""
        since = self.busy_at.get(card, self.began)
        self.measures.busy_card_s += min(1.0, self.busy[card]) * (self.now - since)
        self.busy_at[card] = self.now

    def neighbours_busy(self, copy: Copy) -> float:
        """On the card where most is going on."""
        cards = copy.seen.cards
        return (self.busy[cards[0]] if len(cards) == 1 else max(self.busy[card] for card in cards)) - copy.busy

    def used_mib(self, card: str) -> int:
        """As the driver shows it."""
        ours = sum(copy.process_mib(self.policy) for copy in self.on_card[card])
        return self.world.cards[card].driver_reserved_mib + ours

    # The picture the planner gets

    def picture(self) -> World:
        """The world as it is now; traffic and memory as hosts and gateways would have told it."""
        for number in self.touched:
            if (copy := self.copies.get(number)) is not None:
                self._traffic(copy)
        self.touched.clear()
        for name in self.dirty:
            self._demand(name)
        self.dirty.clear()
        window = max(self.policy.rebuild_within_s, self.policy.evicted_apart_s)
        self.swaps = [s for s in self.swaps if self.now - s.at <= self.policy.min_loaded_s]
        self.evictions = [e for e in self.evictions if self.now - e.at <= window]
        return replace(
            self.world,
            hosts={name: changed(host, seen_at=self.now) for name, host in self.world.hosts.items()},
            services=self.services,
            replicas={number: copy.seen for number, copy in self.copies.items()},
            pools=self._pools(),
            load_times=self.load_times,
            wake_times=self.wake_times,
            swaps=tuple(self.swaps),
            evictions=tuple(self.evictions),
            forecasts=self.forecasts,
            moves=tuple(self.moves),
            site_minute=self.site_minute,
        )

    def sample(self, cards: set[str]) -> None:
        """Hosts look at these cards' memory."""
        looked_at = {}
        for name in cards:
            card = changed(self.world.cards[name], unavailable_mib=self.used_mib(name))
            samples = samples_after(card, card.pressed_samples, self.policy)
            looked_at[name] = card if samples == card.pressed_samples else changed(card, pressed_samples=samples)
        self.world = replace(self.world, cards={**self.world.cards, **looked_at})

    def _traffic(self, copy: Copy) -> None:
        if copy.seen.phase in (Phase.READY, Phase.DRAINING):
            self.change(
                copy,
                in_flight=copy.in_flight,
                running=copy.running,
                waiting=len(copy.queue),
                last_call_at=copy.last_call_at,
            )

    def _demand(self, name: str) -> None:
        desk, service = self.desks[name], self.services[name]
        ready = [copy for copy in desk.routed if copy.seen.phase is Phase.READY]
        held_since = desk.held[0][1] if desk.held else None
        seen, desk.seen = desk.seen, None
        look = {"p99_ms": seen.p99_ms, "p99_samples": seen.p99_samples, "scaling": seen.scaling} if seen else {}
        self.services[name] = changed(
            service,
            **look,
            demand=Demand(len(desk.held), desk.held_streams, held_since, desk.last_call_at, service.demand.calls_7d),
            running=sum([copy.running for copy in ready]),
            waiting=len(desk.held) + sum([len(copy.queue) for copy in ready]),
        )

    def _pools(self) -> dict[str, Pool]:
        known = self.world.pools or {c.pool: Pool(c.pool) for c in self.world.cards.values()}
        return {n: changed(p, refused_at=self.refused_at[n]) if n in self.refused_at else p for n, p in known.items()}


def site_day(farm: Farm) -> int:
    """Days since the epoch, in site time."""
    return int((farm.now + farm.machine.site_offset_s) // DAY_S)


def midnight(farm: Farm, day: int) -> float:
    """When this site day began, or begins."""
    return float(day * DAY_S - farm.machine.site_offset_s)


def wanted_ready(copy: Copy) -> bool:
    return copy.seen.phase is Phase.READY and copy.seen.want is Want.READY
