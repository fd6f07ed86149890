"""The gateway's ASGI application: `uvicorn console.gateway.asgi:application`."""

from __future__ import annotations

import logging
import os
import resource
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()  # the models below need it

from django.conf import settings  # noqa: E402

from console.gateway.core import Gateway  # noqa: E402
from console.gateway.errors import Refused, internal, not_found, wrong_method  # noqa: E402
from console.gateway.limits import Limits  # noqa: E402
from console.gateway.listing import list_models, one_model  # noqa: E402
from console.gateway.proxy import inference  # noqa: E402
from console.gateway.reply import Reply, Send  # noqa: E402
from console.gateway.request import CallerGone, Receive, Request  # noqa: E402

log = logging.getLogger(__name__)

Page = Callable[[Gateway, Request, Reply], Awaitable[None]]


async def alive(gateway: Gateway, request: Request, reply: Reply) -> None:
    await reply.json(200, {"status": "ok"})


async def ready(gateway: Gateway, request: Request, reply: Reply) -> None:
    """Ready = has keys and routes, however old; whether Redis is there is told, not judged."""
    well = gateway.ready and gateway.whole
    what = {"ready": well, "redis": gateway.wire.reachable, "routes_rev": gateway.routes.blob.rev}
    await reply.json(200 if well else 503, what)


PAGES: dict[str, tuple[str, Page]] = {
    "/healthz": ("GET", alive),
    "/readyz": ("GET", ready),
    "/v1/models": ("GET", list_models),
    "/v1/chat/completions": ("POST", inference),
    "/v1/completions": ("POST", inference),
}


def page_of(path: str) -> tuple[str, Page]:
    if path in PAGES:
        return PAGES[path]
    if path.startswith("/v1/models/"):
        return "GET", one_model
    raise not_found(path)


class Application:
    """ASGI entry: lifespan makes and ends the one `gateway` of this process."""

    def __init__(self) -> None:
        self.gateway: Gateway | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _http(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        assert self.gateway is not None
        request = Request(scope, receive)
        reply = Reply(send, request.english)
        reply.extra.append((b"x-request-id", request.id.encode()))
        try:
            method, page = page_of(request.path)
            if request.method != method:
                raise wrong_method()
            await page(self.gateway, request, reply)
        except Refused as refused:
            await reply.refuse(refused)
        except CallerGone:
            return
        except Exception:
            log.exception("request %s", request.id)
            if not reply.ended:
                await reply.refuse(internal())

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # two descriptors a call, and many are held
            name = os.environ.get("GONGKA_GATEWAY", "gateway")
            self.gateway = Gateway(name, Path(settings.HOME), settings.REDIS_URL, Limits.of(os.environ))
            self.gateway.start()
        except (ValueError, OSError, RuntimeError) as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.gateway.stop()
        await send({"type": "lifespan.shutdown.complete"})


application = Application()
