"""Bodies of requests have a bound, whether they say how long they are or not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from console.bodies import TOO_LARGE, bounded


def asked(parts: Iterable[bytes], headers: dict[bytes, bytes], most: int = 10) -> tuple[list[bytes], list[Any]]:
    """(what the application read of the body, what was answered)."""
    queue, read, answered = list(parts), [], []

    async def receive() -> dict[str, Any]:
        body = queue.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(queue)}

    async def send(message: Any) -> None:
        answered.append(message)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive())["type"] == "http.request":
            read.append(message["body"])
            if not message["more_body"]:
                await send({"type": "http.response.start", "status": 200, "headers": []})
                return

    scope = {"type": "http", "headers": list(headers.items())}
    asyncio.run(bounded(app, most)(scope, receive, send))
    return read, answered


@pytest.mark.parametrize("length", [b"10", b"", b"nonsense", b"-1"])
def test_what_fits_passes_through(length):
    read, answered = asked([b"12345", b"67890"], {b"content-length": length})
    assert read == [b"12345", b"67890"]
    assert answered[0]["status"] == 200


def test_one_that_says_it_is_too_long_is_not_even_read():
    read, answered = asked([b"x"], {b"content-length": b"11"})
    assert read == []
    assert (answered[0]["status"], answered[1]["body"]) == (413, TOO_LARGE)


def test_one_in_chunks_is_broken_off_where_it_grows_too_long():
    read, answered = asked([b"12345", b"67890", b"1", b"2"], {b"transfer-encoding": b"chunked"})
    assert read == [b"12345", b"67890"]
    assert [one.get("status") for one in answered] == [413, None]
