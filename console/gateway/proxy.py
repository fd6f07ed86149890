"""One inference call, readable aloud: authenticate → admit → proxy → record."""

from __future__ import annotations

import asyncio
import logging

from console.gateway.admission import admit
from console.gateway.attempt import attempt
from console.gateway.call import Call
from console.gateway.core import Gateway
from console.gateway.errors import Refused, internal, stopping
from console.gateway.fallback import stands_in
from console.gateway.reply import Reply
from console.gateway.request import CallerGone, Request, listening

log = logging.getLogger(__name__)


async def inference(gateway: Gateway, request: Request, reply: Reply) -> None:
    """Raises `Refused` for what is no call yet (key, body, service); every call that is one leaves one record."""
    key = request.authenticate(gateway)
    body = await request.body(gateway.limits.body_mib)
    call = request.call(gateway, key, body, reply)
    gateway.registration.called(call.service)
    try:
        async with listening(request.receive):
            await serve(gateway, call, reply)
    except Refused as refused:
        call.ended(refused.outcome, refused.status, refused.code)
        await reply.refuse(refused)
    except CallerGone:
        call.ended("abandoned", 499)
    except asyncio.CancelledError:  # the server stops and its patience is over
        call.ended("cut", 503, "stopping")
        await reply.refuse(stopping())
        raise
    except Exception:
        log.exception("call %s", call.id)
        call.ended("failed", 500, "internal_error")
        await reply.refuse(internal())
    finally:
        if call.outcome == "ok" and call.prompt and (counted := call.counted) and counted.prompt_tokens:
            gateway.sizes.learn(call.called, call.prompt, counted.prompt_tokens, counted.completion_tokens or 0)
        gateway.spool.append(call.record(gateway.name))


async def serve(gateway: Gateway, call: Call, reply: Reply) -> None:
    """Replica after replica until one answers; what waits for one waits in `admit`."""
    while True:
        try:
            replica = await admit(gateway, call, reply)
        except Refused as refused:
            if not await stands_in(gateway, call, reply, refused):
                raise
            continue
        with gateway.counts.granted(replica.id, call.tokens, replica.batch):
            call.replica = replica.id
            if await attempt(gateway, call, reply, replica):
                return
        call.tried.add(replica.id)
