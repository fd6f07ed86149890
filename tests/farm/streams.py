"""Callers that keep streams open while something happens, and say afterwards how each ended."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field

import httpx

from tests.farm.harness import Farm, body


@dataclass
class Caller:
    """One streaming call in a thread of its own. `whole`: every token and the end came."""

    farm: Farm
    service: str
    max_tokens: int = 600
    gateway: str = ""
    tokens: int = 0
    done: bool = False
    finish: str = ""
    error: str = ""  # in-band code, or the transport's exception
    comments: list[str] = field(default_factory=list)
    began: float = 0.0
    first_line_s: float | None = None
    first_token_s: float | None = None

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def whole(self) -> bool:
        return self.done and not self.error and self.finish == "length" and self.tokens == self.max_tokens

    @property
    def flowing(self) -> bool:
        return self.tokens > 2

    def join(self, limit_s: float = 120.0) -> Caller:
        self.thread.join(limit_s)
        assert not self.thread.is_alive(), f"{self.service} hangs after {self.tokens} tokens"
        return self

    def _run(self) -> None:
        self.began = time.monotonic()
        try:
            with httpx.stream(
                "POST",
                f"{self.gateway or self.farm.gateway}/v1/chat/completions",
                json=body(self.service, self.max_tokens, stream=True),
                headers={"Authorization": f"Bearer {self.farm.key(self.service)}"},
                timeout=httpx.Timeout(5.0, read=90.0),
            ) as reply:
                if reply.status_code != 200:
                    reply.read()
                    self.error = reply.json()["error"]["code"]
                    return
                for line in reply.iter_lines():
                    self._line(line)
        except httpx.HTTPError as error:
            self.error = self.error or type(error).__name__

    def _line(self, line: str) -> None:
        if self.first_line_s is None and line:
            self.first_line_s = time.monotonic() - self.began
        if line.startswith(":"):
            self.comments.append(line)
        elif line == "data: [DONE]":
            self.done = True
        elif line.startswith("data: "):
            self._event(json.loads(line[6:]))

    def _event(self, event: dict) -> None:  # type: ignore[type-arg]
        if "error" in event:
            self.error = str(event["error"].get("code"))
            return
        for choice in event.get("choices", []):
            if choice.get("delta", {}).get("content"):
                self.tokens += 1
                if self.first_token_s is None:
                    self.first_token_s = time.monotonic() - self.began
            self.finish = choice.get("finish_reason") or self.finish


class Crowd:
    """So many callers of a service, each calling again as soon as it has its answer, until the block ends.

    `calls` are whole ones in the order of their ends.
    """

    def __init__(self, farm: Farm, service: str, callers: int, max_tokens: int) -> None:
        self.farm, self.service, self.max_tokens = farm, service, max_tokens
        self.calls: list[Caller] = []
        self.halt = threading.Event()
        self.threads = [threading.Thread(target=self._again, daemon=True) for _ in range(callers)]

    def __enter__(self) -> Crowd:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.halt.set()
        for thread in self.threads:
            thread.join(120)

    def _again(self) -> None:
        while not self.halt.is_set():
            self.calls.append(Caller(self.farm, self.service, max_tokens=self.max_tokens).join())
