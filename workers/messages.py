"""What control and hosts say to each other: plain dataclasses, decoded with validation by msgspec.

Wants go down as Celery messages (`want` task, keyword arguments = `HostWant` as builtins), reports come up in the
Redis stream `host:<name>:report`, field `b`. Memory is integer MiB, times are seconds since the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import Meta

MAX_REPORT_BYTES = 256 * 1024
WANT_EXPIRES_S = 5

# What a host may say of itself. Wider than anything real, and no wider than the columns that keep it: one statement
# writes the figures of all hosts, so a number that no column holds would silence those beside it.
Whole = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Small = Annotated[int, Meta(ge=0, le=2**15 - 1)]
Long = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Moment = Annotated[float, Meta(ge=0, le=4_102_444_800)]  # to the year 2100
Number = Annotated[float, Meta(ge=-1e9, le=1e9)]
Word = Annotated[str, Meta(max_length=200, pattern=r"\A[^\x00]*\Z")]
Boot = Annotated[str, Meta(max_length=40, pattern=r"\A[^\x00]*\Z")]


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """How to run a service's engine: only what `engines/<kind>.py` turns into arguments from its allow-list."""

    kind: str  # "vllm"
    served_name: str  # the engine's model name
    weights: str  # a path under the host's weights root, or a catalogue id; never shell
    weights_mib: int  # of the whole copy; what follows by MiB is of each of its cards
    max_model_len: int
    max_num_seqs: int
    kv_bytes_per_token: int
    kv_granted_mib: int
    fixed_mib: int  # weights + overhead + headroom
    overhead_mib: int = 600
    max_queued: int = 256
    tp: int = 1
    sleep_mode: bool = True
    task: str = "chat"


@dataclass(frozen=True, slots=True)
class ReplicaWant:
    """One replica's whole want. The host acts when it differs from what it sees; repeating it does nothing."""

    id: int
    attempt: int  # raised by each start; a failed attempt is not tried again by the host itself
    want: str  # scheduler.world.Want
    service: str
    cards: list[str]
    engine: EngineSpec
    force: bool = False  # sleep or stop without waiting for the door to count zero
    shutdown_s: int = 15  # after SIGTERM, before SIGKILL
    stall_s: int = 120  # calls run and no token is counted for so long: the engine hangs


@dataclass(frozen=True, slots=True)
class HostWant:
    host: str
    generation: int  # from the database, raised when anything changes; an older one is ignored
    at: float
    replicas: list[ReplicaWant] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Process:
    pid: Whole
    used_mib: Whole | None
    name: str = ""
    replica: Long | None = None  # ours when set


@dataclass(frozen=True, slots=True)
class CardSample:
    uuid: Word
    index: Small
    name: Word
    total_mib: Whole
    reserved_mib: Whole
    free_mib: Whole | None  # None: could not be measured
    util_pct: Small | None = None
    healthy: bool = True
    note: str = ""
    group: Word = ""  # cards joined by fast links
    slice_of: Word = ""  # uuid of the card that it is a hardware slice of (MIG); empty: a whole card
    processes: list[Process] = field(default_factory=list)
    per_process: bool = True  # False: this card's driver does not tell what each process holds
    compute_cap: Number | None = None  # None: the driver does not say


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """What the host sees of one replica. `phase` is scheduler.world.Phase."""

    id: Long
    attempt: Whole
    phase: Word
    cards: list[Word]
    since: Moment
    stage: Word = ""  # of a start: queued, process, weights, warmup; of a stop: door, term, kill, memory
    progress: Number | None = None
    measured_mib: Whole | None = None
    kv_used_pct: Number | None = None
    running: Whole | None = None
    waiting: Whole | None = None
    door_in_flight: Whole | None = None  # None: the door does not answer
    can_sleep: bool = False
    took_s: Moment | None = None  # of the last start or wake
    took: Word = ""  # "start" or "wake"
    fault: Word = ""  # typed: bad_arguments, bad_weights, out_of_memory, crashed, hung, exited, ...
    fault_text: str = ""  # the engine's own words, shortened
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class HostReport:
    host: Word
    at: Moment
    boot: Boot  # identity of this life of the agent
    seq: Long
    generation: Long  # of the last want applied; 0: none yet in this life
    version: Word
    door_url: Word  # where gateways reach this host's engines
    door_ok: bool
    memory_mib: Whole
    memory_free_mib: Whole | None
    bandwidth_mib_s: Whole
    cards_at: Moment | None  # time of the sample below; None: telemetry is silent
    cards: list[CardSample] = field(default_factory=list)
    replicas: list[ReplicaReport] = field(default_factory=list)


def encode(message: HostReport | HostWant) -> bytes:
    return msgspec.json.encode(message)


def read_report(body: bytes) -> HostReport:
    """Raises ValueError for anything that is not a report of acceptable size."""
    if len(body) > MAX_REPORT_BYTES:
        raise ValueError(f"report of {len(body)} bytes, at most {MAX_REPORT_BYTES}")
    return msgspec.json.decode(body, type=HostReport)


def read_want(arguments: dict[str, Any]) -> HostWant:
    """Raises ValueError (msgspec.ValidationError) for anything that is not a want."""
    return msgspec.convert(arguments, type=HostWant)
