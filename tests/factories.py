"""Rows for tests: small farms in one call."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from console.accounts.models import Tenant
from console.catalog.models import Model, Replica, Service
from console.fleet.models import Card, Host, Pool

CARD_MIB = 81920


def pool(name: str = "default", **fields: Any) -> Pool:
    return Pool.objects.get_or_create(name=name, defaults={"label": name, **fields})[0]


def tenant(slug: str = "wuliu") -> Tenant:
    ordinal = Tenant.objects.count() + 1
    defaults = {"name": f"{slug}公司", "mark": f"{ordinal}", "ordinal": ordinal}
    return Tenant.objects.get_or_create(slug=slug, defaults=defaults)[0]


def host(name: str = "h1", cards: int = 2, **fields: Any) -> Host:
    """A host that reported just now, its cards empty and measured."""
    defaults = {"door_token": f"token-{name}", "seen_at": timezone.now(), "memory_mib": 512 * 1024, **fields}
    row = Host.objects.create(name=name, simulated=True, **defaults)
    for index in range(cards):
        Card.objects.create(
            uuid=f"{name}-c{index}",
            host=row,
            index=index,
            name="A800",
            card_class="a800-80",
            pool=pool(),
            total_mib=CARD_MIB,
            reserved_mib=600,
            free_mib=CARD_MIB - 600,
            sampled_at=timezone.now(),
        )
    return row


def model(slug: str = "m7b", weights_mib: int = 14541) -> Model:
    defaults = {
        "name": slug,
        "weights": slug,
        "weights_mib": weights_mib,
        "kv_bytes_per_token": 57344,
        "max_context": 32768,
    }
    return Model.objects.get_or_create(slug=slug, defaults=defaults)[0]


def service(name: str = "hotline", **fields: Any) -> Service:
    """A warm service of one replica at most that claims about 20 GiB."""
    weights_mib = fields.pop("weights_mib", 14541)
    defaults = {
        "label": name,
        "tenant": fields.pop("tenant", None) or tenant(),
        "model": fields.pop("model", None) or model(f"m{weights_mib}", weights_mib),
        "weights_mib": weights_mib,
        "kv_cap_mib": 6144,
        "headroom_mib": 1024,
        **fields,
    }
    return Service.objects.create(name=name, **defaults)


def replica(of: Service, on: Card, want: str = "ready", phase: str = "ready", **fields: Any) -> Replica:
    now = timezone.now()
    defaults: dict[str, Any] = {
        "kv_granted_mib": of.kv_cap_mib,
        "want": want,
        "want_since": now,
        "reason": "hold",
        "phase": phase,
        "phase_attempt": 1,
        "phase_since": now,
        **fields,
    }
    return Replica.objects.create(service=of, host=on.host, cards=[on.uuid], **defaults)
