"""What a caller sent: key, language, wishes, body; and noticing that it hung up."""

from __future__ import annotations

import asyncio
import math
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from console.gateway.body import Body, parse
from console.gateway.call import Call
from console.gateway.core import Gateway
from console.gateway.errors import (
    budget_exceeded,
    model_not_found,
    speaks_english,
    starting_up,
    too_large,
    too_long,
    wrong_task,
)
from console.gateway.limits import MIB
from console.gateway.reply import Reply
from console.gateway.routes import Service
from console.gateway.snapshot import Key
from console.gateway.tokens import Size

Receive = Callable[[], Awaitable[dict[str, Any]]]

#: Services of these tasks generate no text: an engine would say 404 after a load for nothing.
NOT_GENERATING = frozenset({"embedding", "rerank", "score", "asr", "image"})
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")


class CallerGone(Exception):
    """The caller hung up."""


class Request:
    """One HTTP request of a caller; header names are in lower case (ASGI)."""

    def __init__(self, scope: dict[str, Any], receive: Receive) -> None:
        self.path: str = scope["path"]
        self.method: str = scope["method"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.receive = receive
        given = self.header(b"x-request-id")
        self.id = given if _ID.match(given) else uuid.uuid4().hex

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1")

    @property
    def english(self) -> bool:
        return speaks_english(self.headers.get(b"accept-language", b""))

    def authenticate(self, gateway: Gateway) -> Key:
        """Raises `Refused`: 401, or 503 before the first snapshot."""
        if not gateway.ready:
            raise starting_up()
        return gateway.snapshot.authenticate(self.header(b"authorization"))

    async def body(self, limit_mib: int) -> Body:
        """Raises `Refused` (413, 400) and `CallerGone`."""
        limit = limit_mib * MIB
        declared = self.header(b"content-length")
        if declared.isdigit() and int(declared) > limit:
            raise too_large(limit_mib)
        parts: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise CallerGone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > limit:
                raise too_large(limit_mib)
            more = message.get("more_body", False)
        return parse(b"".join(parts))

    def call(self, gateway: Gateway, key: Key, body: Body, reply: Reply) -> Call:
        """The call of a service that the key may hear of: whoever spends makes one, so the budget's gate is here.

        Raises `Refused`: the same 404 for absent and for barred services; 429 for a spent call budget.
        """
        within_budget(gateway, key)
        service = visible(gateway, key, body.model)
        if service is None:
            raise model_not_found(body.model)
        if service.task in NOT_GENERATING:
            raise wrong_task(body.model, service.task)
        size = gateway.sizes.of(body.model, body, self.path)
        within(service, size, "messages" if "/chat/" in self.path else "prompt")
        long = service.long_from is not None and size.room >= service.long_from
        name, service = _lane(gateway, body.model, service) if long else (body.model, service)
        if name != body.model:
            reply.extra.append((b"x-gongka-lane", name.encode()))
        state = state_on_arrival(service)
        reply.extra.append((b"x-gongka-state", state.encode()))
        if service.notice_at is not None:
            reply.extra.append((b"x-gongka-notice", utc(service.notice_at).encode()))
        content = self.header(b"x-gongka-progress").strip().lower() == "content"
        return Call(
            id=self.id,
            path=self.path,
            key=key,
            service=name,
            called=body.model,
            prompt=size.source,
            tokens=size.room,
            long=long,
            owner=service.tenant,
            body=body,
            english=reply.english,
            progress_content=content or key.progress_content,
            max_wait_s=self._max_wait_s(),
            state=state,
        )

    def _max_wait_s(self) -> float | None:
        try:
            value = float(self.header(b"x-gongka-max-wait"))
        except ValueError:
            return None
        return max(0.0, value) if math.isfinite(value) else None


def within_budget(gateway: Gateway, key: Key) -> None:
    """The one gate of call budgets. Raises `Refused`; a month that is over by this clock bars nobody."""
    until = gateway.routes.blob.barred.until(key.tenant, key.id)
    if until is not None and (left_s := until - time.time()) > 0:
        raise budget_exceeded(until, left_s)


def utc(at: float) -> str:
    """2026-11-29T22:10:00Z"""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def visible(gateway: Gateway, key: Key, name: str) -> Service | None:
    service = gateway.routes.blob.services.get(name)
    return service if service is not None and service.heard_by(key.tenant) and key.may_call(name) else None


def within(service: Service, size: Size, param: str) -> None:
    """Raises `Refused` (400) for a call longer than its service takes."""
    if service.max_prompt_tokens is not None and size.prompt > service.max_prompt_tokens:
        raise too_long("prompt", size.prompt, service.max_prompt_tokens, size.exact, param)
    if service.max_total_tokens is not None and size.total > service.max_total_tokens:
        raise too_long("total", size.total, service.max_total_tokens, size.exact, param)


def _lane(gateway: Gateway, name: str, service: Service) -> tuple[str, Service]:
    """Who answers a long call: the service's long lane where it is there, else itself."""
    lane = gateway.routes.blob.services.get(service.long_lane)
    return (name, service) if lane is None else (service.long_lane, lane)


def state_on_arrival(service: Service) -> str:
    if service.replicas:
        return "ready"
    return "asleep" if service.state == "asleep" or service.stage == "waking" else "cold"


@asynccontextmanager
async def listening(receive: Receive) -> AsyncIterator[None]:
    """Cancels the block when the caller hangs up and raises `CallerGone` in its place."""
    task = asyncio.current_task()
    assert task is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        task.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    except BaseException:
        if gone:
            task.uncancel()
            raise CallerGone from None
        raise
    finally:
        watcher.cancel()
