"""Usage records into hourly calls, each exactly once: a record at or below its gateway's cursor is already counted."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest

from console import state, wire
from console.state import moment
from console.usage.models import HourlyCalls, UsageCursor
from workers.control import reclaims, sessions

log = logging.getLogger(__name__)

LOADING, HELD_MS = "model_loading", 1000  # who is told at once that it takes too long was not held to the end
OUTCOMES = ("ok", "failed", "abandoned", "refused", "cut")


@dataclass(frozen=True, slots=True)
class Record:
    """One admitted call, as its gateway wrote it; what is not counted here is not read."""

    gateway: str
    seq: int
    at: float
    service: str
    tenant: str
    key: int
    outcome: str
    code: str = ""
    called: str = ""  # the service that the caller named; another may have answered
    state: str = "ready"
    hold_ms: int = 0
    total_ms: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0


@dataclass(slots=True)
class Batch:
    """Records of one read, by gateway, in order."""

    by_gateway: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))


def run() -> None:
    """Count everything that is in the stream, then tell the gateways and drop what was read."""
    cursor = "0-0"
    while entries := wire.read_usage(cursor):
        cursor = entries[-1][0]
        acknowledged = count(parse(body for _, body in entries))
        wire.acknowledge_usage(acknowledged, cursor)


def parse(bodies: Iterable[bytes]) -> Batch:
    batch = Batch()
    for body in bodies:
        try:
            record = msgspec.json.decode(body, type=Record)
        except msgspec.MsgspecError as error:
            log.warning("usage record refused: %s", error)
            continue
        batch.by_gateway[record.gateway].append(record)
    return batch


def count(batch: Batch) -> dict[str, int]:
    """Gateway → highest number now stored. Counting and moving the cursor are one transaction."""
    stored, rules = {}, state.policy()
    for gateway, records in batch.by_gateway.items():
        UsageCursor.objects.get_or_create(gateway=gateway)
        with transaction.atomic():
            # the write comes first: it locks the row, so that two counters cannot both see the old cursor
            UsageCursor.objects.filter(gateway=gateway).update(seq=F("seq"))
            known = UsageCursor.objects.values_list("seq", flat=True).get(gateway=gateway)
            new = {record.seq: record for record in records if record.seq > known}
            for record in new.values():
                _add(record)
            sessions.add(new.values(), rules)
            top = max(new, default=known)
            UsageCursor.objects.filter(gateway=gateway).update(seq=top)
        stored[gateway] = top
    return stored


def _add(record: Record) -> None:
    hour = moment(record.at).replace(minute=0, second=0, microsecond=0)
    row, _ = HourlyCalls.objects.get_or_create(
        hour=hour, service=record.service[:50], tenant=record.tenant[:50], key_id=record.key
    )
    more: dict[str, int] = {
        "calls": 1,
        "cold": int(record.state != "ready"),
        "capped": int(record.code == LOADING and record.hold_ms >= HELD_MS),
        "hold_ms": record.hold_ms,
        "prompt_tokens": record.prompt_tokens,
        "generated_tokens": record.generated_tokens,
    }
    if record.outcome == "ok":
        more["total_ms"] = max(0, record.total_ms - record.hold_ms)
    if record.outcome in OUTCOMES:
        more[record.outcome] = 1
    if record.state != "ready" and (record.outcome == "failed" or record.code in reclaims.FOR_WANT_OF_IT):
        reclaims.blame(record.called or record.service, record.at)
    sums: dict[str, Any] = {name: F(name) + amount for name, amount in more.items() if amount}
    if record.hold_ms:
        sums["hold_max_ms"] = Greatest(F("hold_max_ms"), record.hold_ms)
    HourlyCalls.objects.filter(pk=row.pk).update(**sums)
