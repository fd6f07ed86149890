"""A service that is down answers through the one its owner named, and says so: header `X-Gongka-Fallback`."""

from __future__ import annotations

from console.gateway.call import Call
from console.gateway.core import Gateway
from console.gateway.errors import Refused
from console.gateway.reply import Reply
from console.gateway.routes import Service

#: The refusal that means: loading was given up on every card that was tried.
DOWN = "load_failed"


async def stands_in(gateway: Gateway, call: Call, reply: Reply, refused: Refused) -> bool:
    """True when the call is another service's from here on. One step only: what stands in has no stand-in."""
    name = _named(gateway, call)
    if refused.code != DOWN or call.stands_in or name is None:
        return False
    gateway.registration.called(name)
    call.stands_in, call.service = True, name
    call.owner = gateway.routes.blob.services[name].tenant
    call.hold_until = None
    call.tried.clear()
    if reply.opened:  # its headers are out: a comment line says it, which stock clients do not see
        await reply.write(b": gongka fallback=%s\n\n" % name.encode())
    else:
        reply.extra.append((b"x-gongka-fallback", name.encode()))
    return True


def _named(gateway: Gateway, call: Call) -> str | None:
    """The stand-in of the call's service, where the caller may hear of it and it takes the same calls."""
    services = gateway.routes.blob.services
    service = services.get(call.service)
    other = services.get(service.fallback) if service is not None and service.fallback else None
    return service.fallback if service is not None and other is not None and _may(call, service, other) else None


def _may(call: Call, service: Service, other: Service) -> bool:
    """Its audience counts, not the key's list: who may call a service may be answered as its owner decided."""
    return other is not service and other.task == service.task and other.heard_by(call.key.tenant)
