"""The one listener of a web process: what changes while it reads the board is not lost."""

from __future__ import annotations

import asyncio
import time

import pytest
from channels.layers import InMemoryChannelLayer

from console import live
from console.board.messages import GROUP
from console.live import Browser, Hub


@pytest.fixture
def layer(monkeypatch: pytest.MonkeyPatch) -> InMemoryChannelLayer:
    made = InMemoryChannelLayer()
    monkeypatch.setattr(live, "get_channel_layer", lambda: made)
    return made


def test_what_is_published_while_it_reads_is_taken_afterwards(layer: InMemoryChannelLayer):
    taken: list[bytes] = []

    async def told() -> None:
        loop = asyncio.get_running_loop()

        def read():
            sent = layer.group_send(GROUP, {"type": "board.numbers", "body": b"moved"})
            asyncio.run_coroutine_threadsafe(sent, loop).result(30)
            return live.rows.Now(at=time.time(), cards=[], held=None, stranded_pct=None)

        async def take(body: bytes) -> None:
            taken.append(body)

        hub = Hub(read)
        hub.take = take
        browser = Browser(tenant=None)
        hub.join(browser)
        async with asyncio.timeout(30):
            while not taken:
                await asyncio.sleep(0.01)
        await hub.leave(browser)

    asyncio.run(told())
    assert taken == [b"moved"]
