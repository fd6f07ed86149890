"""The calls of `make demo-check`, as callers make them: the stock `openai` client, and a raw stream for the lines."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import httpx2  # what the stock client speaks with: only it can be told to use a unix socket
import openai

ROUNDS = 20
LIMIT_S = 60.0
QUESTION: Any = [{"role": "user", "content": "请用一句话说明这份合同的主要风险。"}]
ETA = re.compile(r"eta_s=([\d.]+)")


@dataclass(slots=True)
class Stream:
    """What a raw cold stream showed. Times are seconds since the call was made; None: never seen."""

    began_at: float = 0.0  # seconds since the epoch
    first_progress_s: float | None = None
    first_eta_s: float | None = None  # the first estimate told, counted from the call
    answer_s: float | None = None
    lines: list[str] = field(default_factory=list)
    done: bool = False


def client(base_url: str, key: str, socket: Path | None = None) -> openai.OpenAI:
    """`socket`: straight to an engine's unix socket instead of by TCP."""
    transport = httpx2.HTTPTransport(uds=str(socket)) if socket else None
    http = openai.DefaultHttpx2Client(trust_env=False, transport=transport)
    return openai.OpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=LIMIT_S, http_client=http)


def short_call_ms(caller: openai.OpenAI, model: str) -> float:
    """One warm call of one token."""
    began = time.perf_counter()
    answer = caller.chat.completions.create(model=model, messages=QUESTION, max_tokens=1)
    took_ms = (time.perf_counter() - began) * 1000
    assert answer.choices[0].message.content is not None
    return took_ms


def warm_ms(through: openai.OpenAI, model: str, direct: openai.OpenAI, engine_model: str) -> float:
    """What gateway and door add to a call: median of ROUNDS, taken in turns so that both meet the same neighbours."""
    added = [(short_call_ms(through, model), short_call_ms(direct, engine_model)) for _ in range(ROUNDS + 1)][1:]
    return statistics.median(a for a, _ in added) - statistics.median(b for _, b in added)


def raw_stream(gateway: str, key: str, model: str) -> Stream:
    """A cold streaming call read line by line, comment lines included."""
    seen = Stream(began_at=time.time())
    began = time.monotonic()
    body = {"model": model, "messages": QUESTION, "stream": True, "max_tokens": 8}
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.stream(
        "POST", f"{gateway}/v1/chat/completions", json=body, headers=headers, timeout=LIMIT_S, trust_env=False
    ) as answer:
        answer.raise_for_status()
        for line in answer.iter_lines():
            note(seen, line, time.monotonic() - began)
    return seen


def note(seen: Stream, line: str, at_s: float) -> None:
    """Takes one line of the stream into the account."""
    if line.startswith(": gongka loading"):
        seen.lines.append(line)
        seen.first_progress_s = at_s if seen.first_progress_s is None else seen.first_progress_s
        if seen.first_eta_s is None and (told := ETA.search(line)):
            seen.first_eta_s = at_s + float(told[1])
    elif line.startswith("data: [DONE]"):
        seen.done = True
    elif line.startswith("data: ") and '"error"' not in line and seen.answer_s is None:
        seen.answer_s = at_s


def readable_deltas(caller: openai.OpenAI, model: str) -> tuple[list[str], bool]:
    """The same wait as the stock client reads it with the opt-in: texts of all deltas, and whether it ended well."""
    stream = caller.chat.completions.create(
        model=model, messages=QUESTION, stream=True, max_tokens=8, extra_headers={"X-Gongka-Progress": "content"}
    )
    chunks = [chunk for chunk in stream if chunk.choices]
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks]
    return texts, bool(chunks) and chunks[-1].choices[0].finish_reason is not None


def plain_cold(caller: openai.OpenAI, model: str) -> tuple[float, str, int]:
    """A plain call to a cold model: seconds, the state the answer tells, milliseconds held as the answer tells."""
    began = time.monotonic()
    answer = caller.chat.completions.with_raw_response.create(model=model, messages=QUESTION, max_tokens=8)
    assert answer.parse().choices[0].message.content
    told = answer.headers
    return time.monotonic() - began, told.get("x-gongka-state", ""), int(float(told.get("x-gongka-hold-ms", "0")))


def state_of(caller: openai.OpenAI, model: str) -> str:
    """What the gateway says of a service now: ready, asleep, cold, loading."""
    return str((caller.models.retrieve(model).model_extra or {}).get("state", ""))


@dataclass(frozen=True, slots=True)
class Single:
    """A ready service with one replica, and where its engine listens."""

    service: str
    tenant: str
    engine_model: str
    socket: Path


def single_replicas(routes: dict[str, Any], hosts: Path) -> Iterator[Single]:
    """Those of the chat services in the routes blob whose engine the host's door table names."""
    for name, service in routes["services"].items():
        if service["state"] == "ready" and service["task"] == "chat" and len(service["replicas"]) == 1:
            (replica,) = service["replicas"]
            sockets = json.loads((hosts / replica["host"] / "door.json").read_text())
            if str(replica["id"]) in sockets:
                yield Single(name, service["tenant"], service["engine_model"], Path(sockets[str(replica["id"])]))
