"""The only door to httpx: what the agent says to an engine over its unix socket, and to the door over loopback."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import httpx
import msgspec

_RUNNING = "vllm:num_requests_running"
_WAITING = "vllm:num_requests_waiting"
_KV = "vllm:kv_cache_usage_perc"
_TOKENS = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")
_LINE = re.compile(rf"^({_RUNNING}|{_WAITING}|{_KV}|{'|'.join(_TOKENS)})(?:\{{[^}}]*\}})? (\S+)", re.MULTILINE)


class Health(Enum):
    GOOD = "good"
    SICK = "sick"  # answers, and says that it is not well
    SILENT = "silent"  # takes the connection and does not answer
    REFUSED = "refused"  # nobody listens


class CallFailed(RuntimeError):
    """A sleep or a wake was refused; the text is the engine's."""


@dataclass(frozen=True, slots=True)
class Gauges:
    """None: the engine did not say."""

    running: int | None = None
    waiting: int | None = None
    kv_used_pct: float | None = None
    tokens: int | None = None  # counted since the engine's start, of prompts and answers

    @property
    def busy(self) -> bool:
        return bool(self.running or self.waiting)


class Engine:
    """One engine behind its socket. Safe to use from one thread; a lasting call gets an Engine of its own."""

    def __init__(self, socket: Path, timeout_s: float) -> None:
        transport = httpx.HTTPTransport(uds=str(socket), verify=False)
        self._client = httpx.Client(transport=transport, base_url="http://engine", timeout=timeout_s, trust_env=False)

    def health(self) -> Health:
        try:
            return Health.GOOD if self._client.get("/health").status_code == 200 else Health.SICK
        except httpx.ConnectError:
            return Health.REFUSED
        except httpx.ConnectTimeout:
            return Health.SILENT
        except (httpx.TimeoutException, httpx.TransportError):
            return Health.SILENT

    def models(self) -> list[str] | None:
        """Names it answers to; None: it did not say."""
        try:
            answer = self._client.get("/v1/models")
            return [str(row["id"]) for row in answer.json()["data"]] if answer.status_code == 200 else None
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return None

    def asleep(self) -> bool | None:
        """None: it did not say, or knows no sleep."""
        try:
            answer = self._client.get("/is_sleeping")
            return bool(answer.json()["is_sleeping"]) if answer.status_code == 200 else None
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return None

    def gauges(self) -> Gauges:
        try:
            answer = self._client.get("/metrics")
        except httpx.HTTPError:
            return Gauges()
        return read_gauges(answer.text) if answer.status_code == 200 else Gauges()

    def sleep(self, cut: bool) -> None:
        """Level 1: weights to host memory. `cut`: end what runs, else wait for it. Raises CallFailed."""
        self._post("/sleep", {"level": "1", "mode": "abort" if cut else "wait"})

    def wake(self) -> None:
        """Raises CallFailed."""
        self._post("/wake_up", {})

    def _post(self, path: str, query: dict[str, str]) -> None:
        try:
            answer = self._client.post(path, params=query)
        except httpx.HTTPError as error:
            raise CallFailed(f"{path}: {type(error).__name__}: {error}") from error
        if answer.status_code != 200:
            raise CallFailed(f"{path}: {answer.status_code} {answer.text[:1000]}")

    def close(self) -> None:
        self._client.close()


def read_gauges(text: str) -> Gauges:
    """From the Prometheus text, only the lines we need; engine copies are summed, KV use is the fullest one's."""
    values: dict[str, list[float]] = {}
    for name, value in _LINE.findall(text):
        values.setdefault(name, []).append(float(value))
    return Gauges(
        running=_total(values.get(_RUNNING), sum),
        waiting=_total(values.get(_WAITING), sum),
        kv_used_pct=round(max(values[_KV]) * 100, 1) if _KV in values else None,
        tokens=_total([n for name in _TOKENS for n in values.get(name, [])] or None, sum),
    )


def _total(values: list[float] | None, how: Callable[[list[float]], float]) -> int | None:
    return None if values is None else int(how(values))


class DoorCounts:
    """The host's door as its agent sees it."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._client = httpx.Client(base_url=url, timeout=timeout_s, trust_env=False, verify=False)

    def read(self, token: str) -> tuple[str, dict[int, int]] | None:
        """(identity of its life, replica → calls in flight); None: no door of ours answers."""
        try:
            answer = self._client.get("/counts", headers={"Authorization": f"Bearer {token}"})
            body: Any = msgspec.json.decode(answer.content) if answer.status_code == 200 else None
            return (str(body["boot"]), {int(k): int(v) for k, v in body["in_flight"].items()}) if body else None
        except (httpx.HTTPError, msgspec.DecodeError, KeyError, ValueError, AttributeError, TypeError):
            return None

    def close(self) -> None:
        self._client.close()
