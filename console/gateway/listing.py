"""`/v1/models`: what a key may call, and how each service stands now."""

from __future__ import annotations

from typing import Any

from console.gateway.core import Gateway
from console.gateway.errors import model_not_found
from console.gateway.reply import Reply
from console.gateway.request import Request, visible
from console.gateway.routes import Service


def entry(gateway: Gateway, name: str, service: Service) -> dict[str, Any]:
    """OpenAI's model object; beside it `label`, `state`, how long a call may be and, where known, seconds to ready."""
    eta_s = None if service.state == "ready" else gateway.routes.left_s(service.eta_s)
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": service.tenant,
        "label": service.label,
        "task": service.task,
        "state": service.state,
        "stage": service.stage,
        "eta_s": None if eta_s is None else round(eta_s, 1),
        "max_prompt_tokens": service.max_prompt_tokens,
        "max_total_tokens": service.max_total_tokens,
    }


async def list_models(gateway: Gateway, request: Request, reply: Reply) -> None:
    key = request.authenticate(gateway)
    services = gateway.routes.blob.services
    data = [entry(gateway, name, services[name]) for name in sorted(services) if visible(gateway, key, name)]
    await reply.json(200, {"object": "list", "data": data})


async def one_model(gateway: Gateway, request: Request, reply: Reply) -> None:
    key = request.authenticate(gateway)
    name = request.path.removeprefix("/v1/models/")
    service = visible(gateway, key, name)
    if service is None:
        raise model_not_found(name)
    await reply.json(200, entry(gateway, name, service))
