"""Where calls may go: the routes blob (docs/wire.md), held in memory, kept when Redis is away."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import msgspec

from console.gateway.wire import Wire
from scheduler.call_budget import Barred

log = logging.getLogger(__name__)


class Refusal(msgspec.Struct, frozen=True):
    """A wish the planner has finally refused: told at once."""

    code: str
    zh: str
    en: str
    retry_after_s: float | None = None


class Replica(msgspec.Struct, frozen=True):
    id: int
    host: str
    tokens: int | None = None  # that calls in flight there may hold, over all gateways; None: no bound
    long: bool = False  # for long calls
    batch: tuple[str, ...] = ()  # cards where its calls are batch calls
    batch_calls: int | None = None  # of which so many may be in flight on each: it is outside its hours


class BatchCap(msgspec.Struct, frozen=True):
    """Batch calls that may be in flight on a card, over all gateways, and why no more."""

    calls: int
    why: str = ""


class Service(msgspec.Struct, frozen=True):
    tenant: str
    engine_model: str
    label: str = ""
    audience: frozenset[str] = frozenset()
    task: str = "chat"
    p99_metric: str = "ttft"
    state: str = "cold"
    stage: str = ""
    eta_s: float | None = None
    low_s: float | None = None
    hold_cap_s: float = 15
    hold_stream_s: float = 120
    refusal: Refusal | None = None
    notice: bool = False
    notice_at: float | None = None  # epoch: its first copy under notice goes then, unless called
    room: int | None = None  # calls that all gateways together may have in hand; None: no limit
    room_retry_s: float | None = None
    max_prompt_tokens: int | None = None
    max_total_tokens: int | None = None
    long_from: int | None = None  # tokens from which a call is long
    long_lane: str = ""  # the service that answers long calls; empty: itself
    fallback: str | None = None  # answers while this one is down
    replicas: tuple[Replica, ...] = ()

    def heard_by(self, tenant: str) -> bool:
        return tenant == self.tenant or tenant in self.audience or "*" in self.audience


class HostDoor(msgspec.Struct, frozen=True):
    door: str


class Blob(msgspec.Struct, frozen=True):
    version: int = 0
    rev: int = 0
    services: dict[str, Service] = {}
    hosts: dict[str, HostDoor] = {}
    barred: Barred = msgspec.field(default_factory=Barred)
    batch: dict[str, BatchCap] = {}  # by card
    gateways: int = 1  # that share every bound


class Routes:
    """The last good blob. Taking one is atomic for the loop: no call sees half of it.

    `changed(names)` is called with the services that differ; `taken(version)` after every new route version.
    """

    def __init__(self, changed: Callable[[set[str]], None], taken: Callable[[], None]) -> None:
        self.blob = Blob()
        self.ids: frozenset[int] = frozenset()
        self.taken_at = time.monotonic()  # estimates count down from here: no two clocks are compared
        self._raw = b""
        self._changed, self._taken = changed, taken

    def take(self, raw: bytes) -> None:
        """Replace the blob by `raw`; one that cannot be read changes nothing."""
        if raw == self._raw:
            return
        try:
            blob = msgspec.json.decode(raw, type=Blob)
        except msgspec.MsgspecError as error:
            log.error("routes blob not understood, the last one stays: %s", error)
            return
        old, self.blob, self._raw, self.taken_at = self.blob, blob, raw, time.monotonic()
        self.ids = frozenset(r.id for service in blob.services.values() for r in service.replicas)
        names = old.services.keys() | blob.services.keys()
        changed = {name for name in names if old.services.get(name) != blob.services.get(name)}
        if (old.batch, old.gateways) != (blob.batch, blob.gateways):
            changed |= {n for n, s in blob.services.items() if any(r.batch for r in s.replicas)}
        self._changed(changed)
        if old.version != blob.version:
            self._taken()

    def left_s(self, estimate_s: float | None) -> float | None:
        """What is left now of an estimate of the blob; never negative, None when unknown."""
        return None if estimate_s is None else max(0.0, estimate_s - (time.monotonic() - self.taken_at))

    async def follow(self, wire: Wire) -> None:
        """Fetch the blob whenever its bell rings, and after every outage. Runs until cancelled."""
        cursor = "0-0"  # not `$`: a bell between two reads would be lost; entries already there only cost a fetch
        while True:
            async with wire.patiently("routes"):
                cursor, rang = await wire.wait_bell(cursor)
                raw = await wire.get("routes")
                if raw is not None:
                    self.take(raw)
                continue
            cursor = "0-0"  # after an outage entry ids may have started again
