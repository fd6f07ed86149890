"""The web process: pages over HTTP, the live board over WebSocket."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
pages = get_asgi_application()  # sets Django up: what follows may import models

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.urls import path  # noqa: E402

from console import garbage  # noqa: E402
from console.bodies import bounded  # noqa: E402
from console.live import BoardConsumer  # noqa: E402
from console.origins import own_pages_only  # noqa: E402

sockets = URLRouter([path("live/board", BoardConsumer.as_asgi())])
# A page of another site may open a socket with our visitor's cookies: the origin is looked at before anything else.
application = ProtocolTypeRouter(
    {"http": bounded(pages), "websocket": AllowedHostsOriginValidator(own_pages_only(AuthMiddlewareStack(sockets)))}
)
garbage.settle(garbage.PAGES)
