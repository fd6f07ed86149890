"""One thing the planner does, or would do and may not: verb, reason, numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

#: The figures behind a decision or refusal, by name with unit.
Numbers = dict[str, int | float | str]


class Verb(StrEnum):
    START = "start"
    WAKE = "wake"
    DRAIN = "drain"
    SLEEP = "sleep"
    STOP = "stop"


class Reason(StrEnum):
    """Why. Every wish of the product is a reason on one of the verbs, not a mechanism of its own."""

    HOLD = "hold"  # a caller waits
    MINIMUM = "minimum"  # fewer than min_replicas, or a hot service without a replica
    CALL = "call"  # a call during notice keeps it
    FORECAST = "forecast"
    IDLE = "idle"
    ROOM = "room"  # makes room for a waiting call
    QUEUE = "queue"
    P99 = "p99"
    SURPLUS = "surplus"
    PRESSURE = "pressure"
    REBUILD = "rebuild"
    REGRANT = "regrant"
    REPACK = "repack"
    BUDGET = "budget"
    OPERATOR = "operator"
    MAINTENANCE = "maintenance"
    FAULT = "fault"
    THROTTLE = "throttle"  # a preload nobody waits for slows a neighbour
    UNNEEDED = "unneeded"  # what was drained for room that nobody needs any more is given back


#: Reasons that serve our convenience: moves that may never cut a call (scheduling rule 4, product row D4).
CONVENIENCE = frozenset(
    {Reason.IDLE, Reason.ROOM, Reason.SURPLUS, Reason.REPACK, Reason.BUDGET, Reason.REGRANT, Reason.UNNEEDED}
)
#: Reasons that take memory from somebody: in a pool that only suggests they wait for a click.
TAKING = frozenset(
    {Reason.IDLE, Reason.ROOM, Reason.SURPLUS, Reason.PRESSURE, Reason.REPACK, Reason.BUDGET, Reason.REGRANT}
)
#: Reasons that may cut at their bound.
MAY_CUT = frozenset({Reason.PRESSURE, Reason.FAULT})


class Code(StrEnum):
    """Types of refusal; the text for people is made from code and numbers where it is shown."""

    NO_CAPACITY = "no_capacity"  # nothing fits, nothing may go
    SHORT_OF_MEMORY = "short_of_memory"
    CARD_UNHEALTHY = "card_unhealthy"
    CORDONED = "cordoned"
    HOST_LOST = "host_lost"
    UNMEASURED = "unmeasured"
    WRONG_FAMILY = "wrong_family"
    WRONG_CLASS = "wrong_class"
    WRONG_POOL = "wrong_pool"
    COMPUTE_CAPABILITY = "compute_capability"
    WEIGHTS_ABSENT = "weights_absent"
    IMAGE_ABSENT = "image_absent"
    PREFLIGHT = "preflight"
    OVERSELL = "oversell"
    CONTEXT_TOO_LONG = "context_too_long"
    REPLICA_LIMIT = "replica_limit"
    TOO_FEW_CARDS = "too_few_cards"  # no host has as many cards as one copy needs
    SAME_SERVICE = "same_service"
    TENANTS_APART = "tenants_apart"
    LOAD_IN_FLIGHT = "load_in_flight"  # waits its turn; not final
    TWO_HOSTS = "two_hosts"
    ANTI_SWAP = "anti_swap"
    BACK_OFF = "back_off"  # not final
    LOAD_FAILED = "load_failed"
    MAX_REPLICAS = "max_replicas"
    QUOTA_EXCEEDED = "quota_exceeded"
    FROZEN = "frozen"
    NOT_NOW = "not_now"  # room is being made; not final
    ALREADY_SO = "already_so"  # what an order asks for is so
    LAPSED = "lapsed"  # an order came to its end unfulfilled
    WRONG_PHASE = "wrong_phase"  # nothing in this phase can be asked for that
    UNDER_PRESSURE = "under_pressure"  # the card takes nobody, or not this one again so soon
    OUTSIDE_WINDOW = "outside_window"  # a batch service whose hours have not come
    SLICE_REQUIRED = "slice_required"  # the service computes on hardware slices alone
    THROTTLED = "throttled"  # a neighbour is disturbed: a preload nobody waits for waits itself
    KV_FULL = "kv_full"  # an engine has outgrown its KV: its gateways send it less
    NO_VICTIM = "no_victim"  # a card under pressure where nobody may go: an alert, no answer to a wish
    STAYS = "stays"  # whitelisted, or left alone after a drain that could not end: not moved for our convenience
    IMPORTED = "imported"  # an engine we did not start is never stopped
    ELASTIC = "elastic"  # the pool wants KV pages on demand, which no engine here has
    CANNOT_SLEEP = "cannot_sleep"  # engine, version or flag: it stops instead
    SLEEPER_LIMIT = "sleeper_limit"  # the card has as many sleepers as it may
    HOST_MEMORY = "host_memory"  # its weights do not fit beside the host's floor and its other sleepers


#: Refusals that pass by themselves within a load: the caller goes on being held.
PASSING = frozenset({Code.LOAD_IN_FLIGHT, Code.BACK_OFF, Code.NOT_NOW, Code.THROTTLED})
#: Refusals of cards that would do if there were more room on them.
FOR_WANT_OF_ROOM = frozenset({Code.SHORT_OF_MEMORY, Code.OVERSELL, Code.REPLICA_LIMIT, Code.CONTEXT_TOO_LONG})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, with the numbers (`short_mib`, `card`, `retry_after_s`, ...)."""

    code: Code
    numbers: Mapping[str, int | float | str] = field(default_factory=dict)

    @property
    def passing(self) -> bool:
        return self.code in PASSING


@dataclass(frozen=True, slots=True)
class Decision:
    """`refusal` set: the wish was not granted and nothing is to be done.

    A start has `cards` and `kv_granted_mib`, and `replica` only when a failed or stopped copy is tried again.
    A drain with `not_before` is a notice: it sets `drain_at` and leaves `want` ready; without, it acts now.
    """

    verb: Verb
    service: str
    reason: Reason
    replica: int | None = None
    cards: tuple[str, ...] = ()
    kv_granted_mib: int = 0
    not_before: float | None = None
    force: bool = False  # may cut calls at its bound
    numbers: Mapping[str, int | float | str] = field(default_factory=dict)
    refusal: Refusal | None = None
    move: int | None = None  # the repack move it is a step of, or the end of
    order: int | None = None  # the order this fulfils, or refuses: then it is told to who gave it, not to callers

    @property
    def refuses_wish(self) -> Refusal | None:
        """Why the service's wish to be ready is not granted. None: it is, or has none.

        A preload takes nobody's room: that it has none says nothing about what a caller would get.
        """
        asked = self.order is None and self.move is None and self.reason is not Reason.FORECAST
        return self.refusal if asked and self.verb in (Verb.START, Verb.WAKE) else None

    @property
    def tells_callers(self) -> Refusal | None:
        """The same as far as a caller would get no other answer. For him room is made: who only keeps its minimum, or
        is rebuilt, takes nobody's, and that it found none says nothing of what a call would."""
        refusal = self.refuses_wish
        room_is_made = refusal is not None and self.reason is not Reason.HOLD and refusal.code in FOR_WANT_OF_ROOM
        return None if room_is_made else refusal
