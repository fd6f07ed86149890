"""Live sockets: one subscription per process (the hub), one encoding per scope, a bounded queue per browser.

A browser that cannot keep up loses the messages it did not take and gets the whole board instead: numbers are worth
nothing late. The message format stands at the top of `console/board/__init__.py`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import msgspec
from asgiref.sync import sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.utils.translation import override

from console.accounts.access import Act, may, tenant_of
from console.accounts.signed_in import person_now
from console.board import rows
from console.board.messages import GROUP, Delta, numbers, unpack
from console.board.picture import CardNumbers
from console.board.scopes import Held

log = logging.getLogger(__name__)
#: Messages one browser may be behind before it gets the whole board instead.
BEHIND = 5
RETRY_S = 1.0
#: A socket outlives the right to it by no more than this.
LOOK_AGAIN_S = 5.0
CLOSED_SIGN_IN, CLOSED_FORBIDDEN = 4401, 4403


@dataclass(eq=False)
class Browser:
    """One socket's queue. `whole` set: the next message must be the whole board."""

    tenant: int | None
    language: str = settings.LANGUAGE_CODE
    waiting: deque[str] = field(default_factory=deque)
    whole: bool = True
    bell: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, text: str) -> None:
        if len(self.waiting) >= BEHIND:
            self.waiting.clear()
            self.whole = True
        if not self.whole:
            self.waiting.append(text)
        self.bell.set()


class Board:
    """The board as this process knows it: read once from the database, then kept by the deltas."""

    def __init__(self) -> None:
        self.version = 0
        self.at = 0.0
        self.cards: dict[int, CardNumbers] = {}
        self.held: dict[int, Held] | None = None
        self.stranded_pct: float | None = None

    def read(self, now: rows.Now) -> None:
        self.cards = {card.id: card for card in now.cards}
        self.held = None if now.held is None else dict(now.held)
        self.at, self.stranded_pct = now.at, now.stranded_pct

    def merge(self, delta: Delta) -> bool:
        """False when a message is missing before this one, or it names cards nobody told us of: read again."""
        expected = self.version in (0, delta.version - 1)
        self.version, self.at, self.stranded_pct = delta.version, delta.at, delta.stranded_pct
        self.cards |= {card.id: card for card in delta.cards}
        self.held = None if delta.held is None else {int(tenant): one for tenant, one in delta.held.items()}
        complete = all(pk in self.cards for pk in delta.order)
        self.cards = {pk: self.cards[pk] for pk in delta.order if pk in self.cards}
        return expected and complete

    def text(self, tenant: int | None, changed: set[int] | None = None, language: str = settings.LANGUAGE_CODE) -> str:
        with override(language):  # the key figures are words
            message = numbers(
                self.cards.values(),
                self.held,
                self.stranded_pct,
                tenant=tenant,
                version=self.version,
                at=self.at,
                changed=changed,
            )
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


class Hub:
    """The one listener of this process. It starts with the first browser and rests when the last has gone."""

    def __init__(self, read: Callable[[], rows.Now]) -> None:
        self.read = read
        self.board = Board()
        self.browsers: set[Browser] = set()
        self.task: asyncio.Task[None] | None = None
        self.loaded = asyncio.Event()

    def join(self, browser: Browser) -> None:
        self.browsers.add(browser)
        if self.task is None:
            self.board, self.loaded = Board(), asyncio.Event()
            self.task = asyncio.create_task(self.listen(), name="board hub")

    async def leave(self, browser: Browser) -> None:
        self.browsers.discard(browser)
        if not self.browsers and self.task is not None:
            task, self.task = self.task, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def listen(self) -> None:
        """Subscribe, then read (what happens in between arrives as a message); again whenever either fails."""
        while True:
            layer = get_channel_layer()
            assert layer is not None
            channel = await layer.new_channel("hub")
            try:
                await layer.group_add(GROUP, channel)
                await self.load()  # after it: what changes while this reads is in a message that waits
                while True:
                    await self.take((await layer.receive(channel))["body"])
            except asyncio.CancelledError:
                await asyncio.gather(layer.group_discard(GROUP, channel), return_exceptions=True)
                raise
            except Exception as error:  # Redis or database away: browsers poll meanwhile, and say so
                log.warning("board hub starts again: %s", type(error).__name__)
                await asyncio.sleep(RETRY_S)

    async def load(self) -> None:
        self.board.read(await sync_to_async(self.read)())
        self.loaded.set()
        for browser in self.browsers:
            browser.whole = True
            browser.bell.set()

    async def take(self, body: bytes) -> None:
        try:
            delta = unpack(body)
        except msgspec.MsgspecError:
            return  # another release speaks; pages poll the moment they miss us
        if not self.board.merge(delta):
            await self.load()
            return
        changed = {card.id for card in delta.cards}
        scopes = {(one.tenant, one.language) for one in self.browsers}
        texts = {(tenant, language): self.board.text(tenant, changed, language) for tenant, language in scopes}
        for browser in self.browsers:
            browser.put(texts[browser.tenant, browser.language])

    async def next(self, browser: Browser) -> list[str]:
        """What this browser shall be sent now; waits until there is something."""
        await self.loaded.wait()
        await browser.bell.wait()
        browser.bell.clear()
        if browser.whole:
            browser.whole = False
            browser.waiting.clear()
            return [self.board.text(browser.tenant, language=browser.language)]
        texts = list(browser.waiting)
        browser.waiting.clear()
        return texts


def _read() -> rows.Now:
    close_old_connections()
    return rows.now(time.time())


hub = Hub(_read)


def language_of(query: bytes) -> str:
    """The language the page was drawn in, which it names when it connects; anything else: the site's."""
    asked = parse_qs(query.decode("latin-1")).get("language", [""])[-1]
    return asked if asked in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE


class BoardConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """`/live/board`: sends, and takes nothing. Who may look is decided where pages decide it."""

    browser: Browser | None = None
    tasks: tuple[asyncio.Task[None], ...] = ()

    async def connect(self) -> None:
        user: Any = self.scope.get("user")
        if not getattr(user, "is_authenticated", False):
            await self.close(code=CLOSED_SIGN_IN)
        elif not may(user, Act.SEE_BOARD):
            await self.close(code=CLOSED_FORBIDDEN)
        else:
            await self.accept()
            self.browser = Browser(tenant_of(user), language_of(self.scope.get("query_string", b"")))
            self.browser.bell.set()
            hub.join(self.browser)
            self.tasks = (
                asyncio.create_task(self.send_all(self.browser)),
                asyncio.create_task(self.look_again(self.browser)),
            )

    async def send_all(self, browser: Browser) -> None:
        while True:
            for text in await hub.next(browser):
                await self.send(text_data=text)

    async def look_again(self, browser: Browser) -> None:
        """Until the person may not see this board any more; the page then asks again and gets what is theirs now."""
        while True:
            await asyncio.sleep(LOOK_AGAIN_S)
            try:
                user = await sync_to_async(person_now)(self.scope["session"].session_key)
            except DatabaseError:  # away: pages are not to be had either, and nothing says that the right has ended
                continue
            if user is None or not may(user, Act.SEE_BOARD) or tenant_of(user) != browser.tenant:
                await self.close(code=CLOSED_SIGN_IN)
                return

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Nothing is asked of us here; what is sent is dropped unread."""

    async def disconnect(self, code: int) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self.browser is not None:
            await hub.leave(self.browser)
