"""Sockets are opened by our own pages alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings

Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


def own_pages_only(application: Application) -> Application:
    """Cookies know no ports: a page of another program on this machine's name would bring our visitor's along.

    So the origin must be the very address asked, port included, or one that forms are trusted from. Goes inside
    `AllowedHostsOriginValidator`, which judges the name.
    """

    async def guarded(scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"").decode("latin-1")
        same = urlsplit(origin).netloc.lower() == headers.get(b"host", b"").decode("latin-1").lower()
        answering = application if same or origin in settings.CSRF_TRUSTED_ORIGINS else WebsocketDenier.as_asgi()
        await answering(scope, receive, send)

    return guarded
