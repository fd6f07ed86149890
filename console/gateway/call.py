"""One inference call and the record it leaves. Never the prompt, never the answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from console.gateway.body import Body
from console.gateway.latency import TOTAL, TTFT
from console.gateway.snapshot import Key
from console.gateway.tokens import Prompt
from console.gateway.usage import Counted, prompt_estimate


@dataclass(slots=True, eq=False)
class Call:
    id: str
    path: str
    key: Key
    service: str
    owner: str  # tenant of the service
    body: Body = field(repr=False)
    english: bool
    progress_content: bool
    max_wait_s: float | None
    state: str  # of the service when it arrived: ready, asleep, cold
    called: str = (
        ""  # the service the caller named; `service` is the one that answers: its long lane, its stand-in, or itself
    )
    prompt: Prompt | None = None
    tokens: int = 0  # of KV memory that it is expected to hold
    long: bool = False
    stands_in: bool = False  # the service that was called is down and named this one
    started: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.monotonic)
    hold_until: float | None = None  # monotonic; None: not held yet
    hold_s: float = 0.0
    engine_failures: int = 0
    tried: set[int] = field(default_factory=set)  # replicas that failed it since it last waited
    replica: int | None = None
    asked: bool = False  # an engine has the request: it may have counted tokens
    first_byte: float | None = None
    status: int = 0
    outcome: str = "failed"
    code: str = ""
    counted: Counted | None = None
    chunks: int = 0

    @property
    def hold_ms(self) -> int:
        return round(self.hold_s * 1000)

    def ended(self, outcome: str, status: int, code: str = "") -> None:
        self.outcome, self.status, self.code = outcome, status, code

    def measured_ms(self, metric: str) -> float | None:
        """Time to first token, per further token, or in all until now, the hold excluded.

        None where the answer does not tell: of a plain one nobody knows when its first token came.
        """
        now = time.monotonic()
        if metric == TOTAL:
            return (now - self.clock - self.hold_s) * 1000
        if not self.body.stream or self.first_byte is None:
            return None
        if metric == TTFT:
            return (self.first_byte - self.clock - self.hold_s) * 1000
        further = self._tokens()[1] - 1
        return (now - self.first_byte) * 1000 / further if further > 0 else None

    def record(self, gateway: str) -> dict[str, Any]:
        """As docs/wire.md says; time to first token excludes the hold."""
        now = time.monotonic()
        prompt, generated, estimated = self._tokens()
        ttft_ms = None if self.first_byte is None else round((self.first_byte - self.clock - self.hold_s) * 1000)
        return {
            "gateway": gateway,
            "id": self.id,
            "at": self.started,
            "end": self.started + now - self.clock,
            "service": self.service,
            "called": self.called or self.service,
            "owner": self.owner,
            "tenant": self.key.tenant,
            "key": self.key.id,
            "replica": self.replica,
            "state": self.state,
            "hold_ms": self.hold_ms,
            "ttft_ms": ttft_ms,
            "total_ms": round((now - self.clock) * 1000),
            "status": self.status,
            "outcome": self.outcome,
            "code": self.code,
            "stream": self.body.stream,
            "prompt_tokens": prompt,
            "generated_tokens": generated,
            "estimated": estimated,
        }

    def _tokens(self) -> tuple[int, int, bool]:
        """(prompt, generated, estimated): the engine's own figures, else chunks and size where an engine worked."""
        if self.counted is not None and self.counted.prompt_tokens is not None:
            return self.counted.prompt_tokens, self.counted.completion_tokens or 0, False
        refused_by_engine = self.status >= 400 and self.outcome not in ("abandoned", "cut")
        if not self.asked or (refused_by_engine and not self.chunks):
            return 0, 0, False
        return prompt_estimate(len(self.body.raw)), self.chunks, True
