"""The planner's frozen picture of wants and facts. Seconds since the epoch, integer MiB; `None` is unknown, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from scheduler.allotment import Quota as Quota
from scheduler.allotment import Quotas
from scheduler.expectation import Forecast as Forecast
from scheduler.looks import Scaling
from scheduler.move import Move
from scheduler.past import Eviction as Eviction
from scheduler.past import Swap as Swap
from scheduler.past import Throttled as Throttled
from scheduler.reads import Reads as Reads


class Phase(StrEnum):
    """What a replica is seen to be; written only by ingesting a host's report."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    ASLEEP = "asleep"
    STOPPED = "stopped"
    FAILED = "failed"


class Want(StrEnum):
    """What a replica shall be; written only by recording a plan."""

    READY = "ready"
    DRAINED = "drained"
    ASLEEP = "asleep"
    STOPPED = "stopped"


class Tier(StrEnum):
    """From calls in the last 7 days: hot stays, warm sleeps, cold stops."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


class Act(StrEnum):
    """What a person asks for with a button."""

    PRELOAD = "preload"  # `count` ready copies of the service
    WAKE = "wake"  # one sleeper, or one that drains for our convenience
    KEEP = "keep"  # takes a notice back
    DRAIN = "drain"  # one copy; then it sleeps or stops, as its tier says
    STOP = "stop"  # one copy, or all of the service


class Profile(StrEnum):
    ONLINE = "online"
    BATCH = "batch"
    LOWFREQ = "lowfreq"


@dataclass(frozen=True, slots=True)
class Claim:
    """The three declared numbers of one replica, and its process overhead (measured or the policy's default)."""

    weights_mib: int
    kv_cap_mib: int
    headroom_mib: int
    overhead_mib: int = 600

    @property
    def fixed_mib(self) -> int:
        return self.weights_mib + self.overhead_mib + self.headroom_mib


@dataclass(frozen=True, slots=True)
class LoadTimes:
    """Seconds that real loads (or wakes) of a service took on a host, newest last, at most 10."""

    seconds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A start or a life on `card` that ended badly; `fatal` means another card would not help."""

    card: str
    at: float
    code: str
    message: str
    fatal: bool = False
    beside: tuple[str, ...] = ()  # the other cards of a copy that has several: nobody knows which was to blame


@dataclass(frozen=True, slots=True)
class Demand:
    """What callers want of a service now, summed over the gateways; `last_call_at` is the latest admitted call."""

    held: int = 0
    held_streams: int = 0
    held_since: float | None = None
    last_call_at: float | None = None
    calls_7d: int = 0
    expected_until: float | None = None  # callers told to come back (Retry-After) are waited for until then


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    tenant: str
    claim: Claim  # on each of its cards
    profile: Profile
    tier: Tier
    priority: int = 50
    min_replicas: int = 0
    max_replicas: int = 1
    pools: frozenset[str] = frozenset()  # empty: any pool
    card_classes: frozenset[str] = frozenset()  # empty: any class
    min_compute_cap: float = 0.0  # of the dtype or quantisation (bf16 8.0, fp8 8.9)
    family: str = "cuda"  # software family of the image
    one_request_mib: int = 0  # KV of one request of max_model_len plus one block
    apart_from: frozenset[str] = frozenset()  # tenants that may not share a card with it
    whitelisted_until: float | None = None
    first_token_s: float | None = None  # required time to first token
    can_sleep: bool = True
    hold_cap_s: float | None = None  # its own; None: by the size of its weights
    failures: tuple[Failure, ...] = ()  # since it was last ready
    demand: Demand = field(default_factory=Demand)
    wished_at: float | None = None  # an operator or a preload asked for it to be ready then; None: nobody
    last_reclaimed_at: float | None = None
    generation_s: float | None = None  # mean time of one answer, for the bound of a drain
    max_num_seqs: int = 16  # calls one copy's engine runs at once
    p99_target_ms: int | None = None  # its own; None: the policy's
    p99_ms: float | None = None  # of its metric, hold excluded, since its live copies last changed; None: unknown
    p99_samples: int = 0
    running: int | None = None  # in all its ready copies' engines; None: one cannot be counted
    waiting: int | None = None  # held at the gateways and queued in those engines
    starts_28d: int = 0  # how often a copy was started of late: what is to be expected
    scaling: Scaling | None = None  # None: never looked at
    cards_per_replica: int = 1  # tensor parallel: all on one host
    resident: tuple[tuple[float, float], ...] = ()  # from, to: kept ready meanwhile; of the days around now
    let_go_at: float | None = None  # a person last drained or stopped a copy by button then
    shards: int = 1  # files of its weights: what parallel storage reads side by side
    batch_hours: tuple[tuple[float, float], ...] | None = None  # its own, as `resident`; None: the policy's window
    slice_required: bool = False  # only on a slice of a card that nobody else computes on

    @property
    def weights_mib(self) -> int:
        """Of one whole copy, over all its cards."""
        return self.claim.weights_mib * self.cards_per_replica


@dataclass(frozen=True, slots=True)
class Card:
    """One accelerator; memory as its driver reports it."""

    id: str  # the driver's UUID
    host: str
    index: int
    card_class: str
    total_mib: int
    driver_reserved_mib: int
    unavailable_mib: int | None  # total - free; None: cannot be measured now
    releasing_mib: int = 0  # what stopped replicas held and two samples have not yet shown back
    baseline_mib: int | None = None  # unavailable with nothing of ours on it; set: no per-process memory here (NPU)
    pressed_samples: int = 0  # `pressed.samples_after`: over the pressure line, and not yet relieved
    pool: str = "default"
    compute_cap: float = 8.0
    family: str = "cuda"
    healthy: bool = True
    cordoned: bool = False
    price_fen_h: int = 0
    group: str = ""  # cards of a host with the same one are joined by fast links; empty: nobody said
    slice_of: str = ""  # the card that this is a hardware slice of; empty: a whole card
    batch_calls: int | None = None  # of batch services at once, as the isolation controller left it; None: no limit
    batch_calls_at: float | None = None  # when it left it so
    batch_lowered_at: float | None = None  # when it last lowered it


@dataclass(frozen=True, slots=True)
class Host:
    name: str
    seen_at: float | None  # time of its last report
    memory_mib: int = 0
    bandwidth_mib_s: int = 1000  # of its weights storage
    weights: frozenset[str] | None = None  # services whose weights are complete here; None: everything (shared storage)
    images: frozenset[str] | None = None
    cordoned: bool = False
    leave_by: float | None = None  # it is to be empty by then; cordoned meanwhile
    preflight_ok: bool = True
    rack: str = ""
    serving: bool = False  # its agent is silent, yet the gateways' probes reach its engines
    storage: str = "local"  # of its weights: local (read in parallel) or network (one stream)


@dataclass(frozen=True, slots=True)
class Pool:
    name: str
    purpose: str = "ondemand"  # resident, ondemand, elastic, pilot
    mode: str = "enforce"  # observe, suggest, enforce: the recorder's business, not the planner's
    tenants: frozenset[str] = frozenset()  # empty: any tenant
    refused_at: float | None = None  # a wish found no room in it then
    kv: str = "static"  # static: an engine has its KV from its start on; elastic: pages on demand (not available)
    prefetch: frozenset[str] = frozenset()  # services loaded in idle moments, called or not


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy of a service. `phase` is what counts now: `lifecycle.seen_phase` of want and report."""

    id: int
    service: str
    cards: tuple[str, ...]
    want: Want
    phase: Phase
    attempt: int = 1
    kv_granted_mib: int = 0
    measured_mib: int | None = None
    residue_mib: int | None = None  # measured while asleep; None: the policy's default
    since: float = 0.0  # phase since
    want_since: float = 0.0
    loaded_at: float | None = None  # last became ready from a start or a wake
    last_call_at: float | None = None
    in_flight: int | None = None  # over all gateways and the door; None: unknown
    quiet: bool = False  # every live gateway acknowledged the route's end and counts zero, and the door counts zero
    reason: str = ""  # of its present want, or of the notice that stands
    drain_at: float | None = None  # a notice stands: drained then unless called before
    left_alone_until: float | None = None  # after a drain that went back to ready
    failures_here: int = 0  # in a row on this card
    failed_at: float | None = None
    fault: str = ""  # true reason of the last failure
    fatal: bool = False
    can_sleep: bool = True
    progress: float | None = None  # of a start, 0..1
    stage: str = ""  # of a start, as the host says: queued, process, weights, warmup
    waking: bool = False  # starting out of sleep
    external: bool = False  # an imported engine: never stopped
    running: int | None = None  # calls its engine works on, as the engine says; None: unknown
    waiting: int | None = None  # and those it queues
    p99_ms: float | None = None  # as of a service; None: unknown
    disturbance_pct: float | None = None  # its p99 gap between chunks now, above that of its previous 5 min
    quiet_p99_ms: float | None = None  # its P99 while no batch call ran on its cards
    kv_used_pct: float | None = None  # of its granted KV memory
    kv_full_samples: int = 0  # `kv.samples_after`: KV full with calls waiting, and not yet relieved

    @property
    def awake(self) -> bool:
        return self.phase in (Phase.STARTING, Phase.READY, Phase.DRAINING)


@dataclass(frozen=True, slots=True)
class Order:
    """An operator's open order. It lapses at `until`.

    `force`: a stop may cut calls at its bound; a preload may ask idle neighbours for room, as a waiting caller does.
    """

    id: int
    act: Act
    service: str
    until: float
    replica: int | None = None  # None: the service as a whole
    count: int = 1
    force: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """What a tenant, or one service of it, may cost this month (fen), what it did cost, and what is foreseen."""

    tenant: str
    limit_fen: int
    spent_fen: int
    forecast_fen: int | None = None  # at the end of the month; None: too little is known
    service: str = ""  # empty: all of the tenant's
    warned: bool = False  # its owner was told


@dataclass(frozen=True, slots=True)
class World:
    hosts: Mapping[str, Host]
    cards: Mapping[str, Card]
    services: Mapping[str, Service]
    replicas: Mapping[int, Replica]
    pools: Mapping[str, Pool] = field(default_factory=dict)
    load_times: Mapping[tuple[str, str], LoadTimes] = field(default_factory=dict)  # (service, host)
    wake_times: Mapping[tuple[str, str], LoadTimes] = field(default_factory=dict)
    swaps: tuple[Swap, ...] = ()
    evictions: tuple[Eviction, ...] = ()  # of late, oldest first
    throttled: tuple[Throttled, ...] = ()  # of late, oldest first
    site_minute: int | None = None  # of the day, site time; None: unknown, and no rule of day and night applies
    quotas: Quotas = field(default_factory=dict)
    orders: tuple[Order, ...] = ()  # open ones, oldest first
    budgets: tuple[Budget, ...] = ()  # card budgets of this month
    forecasts: Mapping[str, Forecast] = field(default_factory=dict)  # by service; absent: nothing is known
    reads: Mapping[tuple[str, str], Reads] = field(default_factory=dict)  # (host, loader): what real loads took
    moves: tuple[Move, ...] = ()  # of repack, that may be done
    frozen: bool = False  # too many hosts fell silent at once: nothing is moved
