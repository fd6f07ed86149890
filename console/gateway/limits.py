"""Every number of the gateway, with unit, default, range and why; `GONGKA_GATEWAY_<NAME>` sets one for a site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from scheduler.policy import number

KIB, MIB = 2**10, 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    # Sizes
    body_mib: int = number(32, "MiB", 1, 1024, "one request's body: images travel inside it")
    answer_mib: int = number(64, "MiB", 1, 1024, "one plain answer, read whole before it is passed on")
    # Tokens
    bytes_per_token: float = number(4.0, "bytes", 0.5, 16, "of a prompt, until engines have counted some")
    answer_tokens: int = number(512, "tokens", 1, 1048576, "of an answer, until engines have counted some")
    attached_tokens: int = number(1024, "tokens", 0, 65536, "of a picture or sound: engines rarely take more")
    # Holds
    held_per_service: int = number(100, "calls", 1, 10000, "more waiters than an engine's queue takes at once")
    held_in_all: int = number(10000, "calls", 1, 100000, "a held call costs memory")
    held_bodies_mib: int = number(512, "MiB", 1, 65536, "and so does its body")
    line_every_s: float = number(2.0, "s", 0.05, 60, "a comment line tells a held stream that it is alive")
    told_every_s: float = number(10.0, "s", 0.05, 120, "readable progress repeats no faster while nothing changes")
    turn_s: float = number(2.0, "s", 0.05, 30, "a call that waits for its turn looks again so often at the latest")
    again_s: float = number(0.5, "s", 0.05, 10, "pause before replicas that just refused are tried once more")
    believe_s: float = number(0.3, "s", 0.05, 5, "a refusal older than the hold may be out of date")
    retry_after_s: int = number(30, "s", 1, 600, "told to callers while no estimate is known")
    come_back_s: int = number(10, "s", 0, 120, "callers come back a little later than they were told")
    promise_s: int = number(120, "s", 1, 900, "how long a load goes on for callers who were told to come back")
    # Upstream
    connect_s: float = number(2.0, "s", 0.05, 30, "a door on the same network answers in a millisecond")
    first_byte_s: float = number(600.0, "s", 1, 3600, "an engine queues calls silently")
    stall_s: float = number(60.0, "s", 0.1, 600, "a stream silent for so long has stopped")
    engine_tries: int = number(2, "tries", 1, 10, "replicas one call may see fail: it may be the call that breaks them")
    # Breaker
    breaker_failures: int = number(5, "failures", 1, 100, "within the window: one is chance, five are a state")
    breaker_window_s: float = number(10.0, "s", 1, 600, "the window")
    breaker_open_s: float = number(5.0, "s", 0.1, 600, "first pause before a probe")
    breaker_open_max_s: float = number(60.0, "s", 0.1, 3600, "the pause doubles up to this")
    # Probes
    probe_s: float = number(1.0, "s", 0.05, 10, "five failed ones open the breaker of a dead host within 5 s")
    probe_timeout_s: float = number(1.0, "s", 0.05, 10, "health costs an engine a millisecond")
    # Upkeep
    snapshot_s: float = number(1.0, "s", 0.05, 60, "a revoked key is refused within 2 s")
    register_s: float = number(1.0, "s", 0.05, 4, "the registration expires after 5 s")
    last_used_s: float = number(60.0, "s", 0.05, 3600, "a key's last use is written at most so often")
    # Latencies
    slot_kib: int = number(512, "KiB", 16, 4096, "histograms of one 10 s slot: 900 busy replicas need about 300")
    slots_kept: int = number(
        40, "slots", 6, 360, "over 5 min: what a new leader of control reads, what an outage keeps"
    )
    # Spool
    segment_kib: int = number(4096, "KiB", 1, 1048576, "usage records are deleted by whole files")
    spool_mib: int = number(256, "MiB", 1, 65536, "about 700,000 records: a week-end without control")
    resend_s: float = number(30.0, "s", 0.1, 600, "records not acknowledged by then are sent again")

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Defaults, and over them what the environment sets. Raises ValueError for what is not a number in range."""
        values: dict[str, float] = {}
        for field in fields(cls):
            name = f"GONGKA_GATEWAY_{field.name.upper()}"
            if (text := environment.get(name)) is not None:
                value = float(text) if isinstance(field.default, float) else int(text)
                if not field.metadata["low"] <= value <= field.metadata["high"]:
                    raise ValueError(f"{name} must be {field.metadata['low']} to {field.metadata['high']}")
                values[field.name] = value
        return cls(**values)  # type: ignore[arg-type]
