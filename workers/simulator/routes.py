"""The paths an engine answers, in vLLM's words."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

from workers.simulator import asked, shapes
from workers.simulator.calls import Embedding, Generation, request_name
from workers.simulator.core import Core
from workers.simulator.http1 import Reply, Request
from workers.simulator.sleeping import Sleeping
from workers.simulator.words import seed_of

Handler = Callable[[Request, Reply], None]
NOT_FOUND = b'{"detail":"Not Found"}'
NOT_ALLOWED = b'{"detail":"Method Not Allowed"}'
SHUT_DOWN = "cannot schedule new futures after shutdown"
LOADING = "The model is still loading."


class Routes:
    """Path and method to handler. `core` is None until the start is done."""

    def __init__(self, replica: str) -> None:
        self.core: Core | None = None
        self.sleeping: Sleeping | None = None
        self.replica = replica
        self.born = time.monotonic()
        self.good_at_s = {"health_s": 0.0, "models_s": 0.0, "serve_s": 0.0}  # after birth: the readiness fault's
        self._created = int(time.time())
        self._permission = f"modelperm-{os.urandom(8).hex()}"
        self._generating = 0
        self._table: dict[str, dict[str, Handler]] = {}

    def serve(self, core: Core) -> None:
        """The start is done."""
        self.core = core
        self.sleeping = Sleeping(core)
        self._table = self._paths(core, self.sleeping)

    def _paths(self, core: Core, sleeping: Sleeping) -> dict[str, dict[str, Handler]]:
        table: dict[str, dict[str, Handler]] = {
            "/health": {"GET": self._health},
            "/ping": {"GET": self._health, "POST": self._health},
            "/load": {"GET": self._load},
            "/version": {"GET": lambda request, reply: reply.send(200, b'{"version":"0.32.0"}')},
            "/metrics": {"GET": self._metrics},
            "/tokenize": {"POST": self._tokenize},
            "/v1/models": {"GET": self._models},
            "/sim/info": {"GET": self._info},
        }
        if core.flags.task == "embedding":
            table["/v1/embeddings"] = {"POST": self._embeddings}
        else:
            table["/v1/chat/completions"] = {"POST": self._chat}
            table["/v1/completions"] = {"POST": self._completions}
        return table | (self._dev_paths(core, sleeping) if core.sim.dev_mode else {})

    @staticmethod
    def _dev_paths(core: Core, sleeping: Sleeping) -> dict[str, dict[str, Handler]]:
        def tell(value: Callable[[], dict[str, Any]]) -> dict[str, Handler]:
            return {"GET": lambda request, reply: reply.send(200, shapes.dump(value()))}

        return {
            "/sleep": {"POST": sleeping.sleep},
            "/wake_up": {"POST": sleeping.wake_up},
            "/is_sleeping": tell(lambda: {"is_sleeping": sleeping.is_sleeping}),
            "/pause": {"POST": sleeping.pause},
            "/resume": {"POST": lambda request, reply: sleeping.resume(reply)},
            "/is_paused": tell(lambda: {"is_paused": sleeping.is_sleeping}),
            "/get_world_size": tell(lambda: {"world_size": core.flags.tp}),
        }

    def __call__(self, request: Request, reply: Reply) -> None:
        if self.core is None:
            self._early(request, reply)
            return
        methods = self._table.get(request.path)
        handler = methods.get(request.method) if methods else None
        if methods is None:
            reply.send(404, NOT_FOUND)
        elif handler is None:
            reply.send(405, NOT_ALLOWED)
        else:
            try:
                handler(request, reply)
            except asked.Refused as refused:
                reply.send(refused.status, refused.body)

    def _good(self, what: str) -> bool:
        return time.monotonic() - self.born >= self.good_at_s[what]

    def _early(self, request: Request, reply: Reply) -> None:
        """Listening before the model is there: only the readiness fault makes an engine do that."""
        if request.path == "/health":
            reply.send(200 if self._good("health_s") else 503, b"")
        else:
            reply.send(503, shapes.error(LOADING, "Service Unavailable", 503))

    def _ready_core(self) -> Core:
        assert self.core is not None
        return self.core

    def _health(self, request: Request, reply: Reply) -> None:
        reply.send(503 if self._ready_core().dead or not self._good("health_s") else 200, b"")

    def _load(self, request: Request, reply: Reply) -> None:
        count = len(self._ready_core().failing) if self._ready_core().flags.load_tracking else 0
        reply.send(200, shapes.dump({"server_load": count}))

    def _metrics(self, request: Request, reply: Reply) -> None:
        core = self._ready_core()
        batch = core.batch
        page = core.metrics.page(len(batch.running), len(batch.waiting), batch.kv_used, core.sleep_state)
        reply.send(200, page.encode(), "text/plain; version=1.0.0; charset=utf-8")

    def _models(self, request: Request, reply: Reply) -> None:
        flags = self._ready_core().flags
        if not self._good("models_s"):
            reply.send(200, shapes.dump({"object": "list", "data": []}))
            return
        name, root = flags.served_name, flags.model
        reply.send(200, shapes.models(name, root, flags.max_model_len, self._created, self._permission))

    def _info(self, request: Request, reply: Reply) -> None:
        """Which simulated engine this is: for people and tests, not part of vLLM."""
        core = self._ready_core()
        cards = [card.uuid for card in core.memory.cards]
        info = {"simulated": True, "replica": self.replica, "service": core.flags.served_name, "pid": os.getpid()}
        held = {"held_mib": core.memory.held_mib, "kv_blocks": core.kv_blocks, "kv_used": core.batch.kv_used}
        queue = {"running": len(core.batch.running), "waiting": len(core.batch.waiting), "held": len(core.batch.held)}
        queue |= {"paused": core.batch.paused}
        reply.send(200, shapes.dump(info | {"cards": cards} | held | queue))

    def _tokenize(self, request: Request, reply: Reply) -> None:
        flags = self._ready_core().flags
        body = asked.read_json(request)
        asked.check_model(body, flags)
        text, count = asked.chat_text(body) if "messages" in body else asked.prompt_text(body)
        tokens = [(seed_of(text) + 7 * number) % 50_000 for number in range(count)]
        content = {"count": count, "max_model_len": flags.max_model_len, "tokens": tokens, "token_strs": None}
        reply.send(200, shapes.dump(content))

    def _chat(self, request: Request, reply: Reply) -> None:
        body = self._admit(request)
        self._generate(request, reply, body, asked.chat_text(body), shapes.Chat)

    def _completions(self, request: Request, reply: Reply) -> None:
        body = self._admit(request)
        # The API of plain completions has a small default where chat has none.
        body.setdefault("max_tokens", 16)
        self._generate(request, reply, body, asked.prompt_text(body), shapes.Completion)

    def _admit(self, request: Request) -> dict[str, Any]:
        """The body of a call that the core may take. Raises asked.Refused."""
        core = self._ready_core()
        body = asked.read_json(request)
        asked.check_model(body, core.flags)
        if not self._good("serve_s"):
            raise asked.Refused(503, shapes.error(LOADING, "Service Unavailable", 503))
        if core.stopping:
            raise asked.Refused(500, shapes.error(SHUT_DOWN, "InternalServerError", 500))
        if core.dead:
            raise asked.Refused(500, shapes.error(shapes.DEAD, "InternalServerError", 500))
        return body

    def _generate(
        self, request: Request, reply: Reply, body: dict[str, Any], text: tuple[str, int], shape: type[shapes.Chat]
    ) -> None:
        core = self._ready_core()
        wanted = asked.asked(body, *text, core.flags)
        name = request_name(request, shape.prefix)
        Generation(core, reply, wanted, shape(name, int(time.time()), core.flags.served_name)).begin()

    def _embeddings(self, request: Request, reply: Reply) -> None:
        body = self._admit(request)
        core = self._ready_core()
        given = body.get("input")
        parts = given if isinstance(given, list) and given and isinstance(given[0], str | list) else [given]
        texts = [asked.prompt_text(body if part is None else {"input": part}, "input") for part in parts]
        for _, tokens in texts:
            asked.check_length(tokens, core.flags.max_model_len)
        Embedding(core, reply, texts, request_name(request, "embd-")).begin()


async def wait_until(ready: Callable[[], bool], look_s: float) -> None:
    """Looks every `look_s` until `ready` holds."""
    while not ready():
        await asyncio.sleep(look_s)
