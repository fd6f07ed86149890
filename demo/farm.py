"""The demo farm's rows: five companies, seven people, their keys, four simulated hosts, 24 services.

`make()` is run at every start. What is there already is left alone: somebody may have changed it on a page.
"""

from __future__ import annotations

import json
import os
import secrets
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from demo.services import CHECK_PLAIN, CHECK_STREAM, LARGE, MIDDLE, SERVICES, SMALL, Plan

__all__ = ["CHECK_PLAIN", "CHECK_STREAM", "LOADING", "host_cards", "make"]

LOGINS, KEYS = "demo-logins.json", "demo-keys.json"
TRAFFIC = "traffic"
CARDS_PER_HOST = 8
LINKED = 4  # large cards that are joined by fast links: two islands a host
RESERVED_MIB = 450  # what a driver keeps for itself on cards of this kind

#: (host, card class, rack, pool). Hosts of a pair stand in two racks: the two-hosts rule asks for it.
HOSTS = (
    ("gpu-01", LARGE, "A-01", "shared-large"),
    ("gpu-02", MIDDLE, "A-02", "shared-middle"),
    ("gpu-03", SMALL, "A-01", "shared-small"),
    ("gpu-04", SMALL, "A-02", "shared-small"),
)
POOLS = (("shared-large", "大卡共享池"), ("shared-middle", "中卡共享池"), ("shared-small", "小卡共享池"))
PRICE_FEN_H = {LARGE: 515, MIDDLE: 380, SMALL: 160}  # a site sets its own; these are the demo's
#: (slug, name, mark); the colour follows the order
TENANTS = (
    ("energy", "能源公司", "能"),
    ("manufacturing", "制造公司", "制"),
    ("finance", "金服公司", "金"),
    ("estate", "置业公司", "置"),
    ("logistics", "物流公司", "物"),
)
#: Pool → company → GiB promised and borrowable. Nearly all of a pool is promised, so that what a busy company takes
#: beyond its own is lent by others; limits leave every service its most copies, twice during a move.
QUOTAS_GIB = {
    "shared-large": {
        "energy": (120, 200),
        "manufacturing": (160, 200),
        "finance": (150, 200),
        "estate": (90, 200),
        "logistics": (50, 200),
    },
    "shared-middle": {
        "energy": (90, 150),
        "manufacturing": (30, 150),
        "finance": (70, 150),
        "estate": (80, 150),
        "logistics": (40, 150),
    },
    "shared-small": {
        "energy": (70, 150),
        "manufacturing": (60, 150),
        "finance": (60, 150),
        "estate": (60, 150),
        "logistics": (60, 200),
    },
}
MIB = 1024
#: (role and username, full name, tenant)
PEOPLE = (
    ("operator", "周敏", None),
    ("approver", "李建国", None),
    ("tenant_admin", "王芳", "estate"),
    ("tenant_member", "陈晨", "estate"),
    ("manager", "赵宁", None),
    ("auditor", "孙岩", None),
    ("account_officer", "吴静", None),
)
#: How simulated hosts load: what the policy assumes must be what they do, or the first estimates told are off.
LOADING = {"bandwidth_mib_s": 2000.0, "init_s": 2.0, "warm_up_s": 1.0}
#: The large cards' host has faster disks: its models are the heavy ones.
FAST_MIB_S = {"gpu-01": 5000.0}
#: A demo is watched for minutes: idle models leave in minutes, not in twenty.
POLICY = {
    "load_init_s": LOADING["init_s"],
    "load_warm_up_s": LOADING["warm_up_s"],
    "idle_unload_s": 180,
    "grace_s": 60,
    "scale_in_s": 300,
    "min_loaded_s": 90,
}


class CardSpec(TypedDict):
    """One simulated card, with the field names of `cards.json`."""

    uuid: str
    index: int
    name: str
    total_mib: int
    reserved_mib: int
    mem_bw_gbs: float
    group: str


#: Memory bandwidth in GB/s by class: decides how fast a simulated engine writes.
MEMORY_GBS = {LARGE: 2039.0, MIDDLE: 864.0, SMALL: 600.0}


def host_cards() -> dict[str, list[CardSpec]]:
    """Host → its cards. The same at every call: identities are derived, not random."""
    from console.catalog import catalogue

    return {
        host: [
            CardSpec(
                uuid=f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{host}.{index}.gongka.demo')}",
                index=index,
                name=catalogue.card(kind)["device_names"][0],
                total_mib=catalogue.card(kind)["total_mib"],
                reserved_mib=RESERVED_MIB,
                mem_bw_gbs=MEMORY_GBS[kind],
                group=f"nvlink-{index // LINKED}" if kind == LARGE else "",
            )
            for index in range(CARDS_PER_HOST)
        ]
        for host, kind, _, _ in HOSTS
    }


def make(home: Path) -> dict[str, int]:
    """Create what is missing, whole or not at all. Returns how many rows of each kind there are."""
    from django.db import transaction

    from console.accounts.models import ApiKey, Tenant, User
    from console.catalog.models import Model, Service
    from console.fleet.models import Card, Host

    with transaction.atomic():
        _tenants()
        _pools()
        _cards()
        _quotas()
        _services()
        _policy()
        keep(home / LOGINS, _people)
        keep(home / KEYS, _keys)
    kinds = (Tenant, User, ApiKey, Host, Card, Model, Service)
    return {kind._meta.model_name or "": kind._default_manager.count() for kind in kinds}


def _tenants() -> None:
    from console.accounts.models import Tenant

    for ordinal, (slug, name, mark) in enumerate(TENANTS, 1):
        Tenant.objects.get_or_create(slug=slug, defaults={"name": name, "mark": mark, "ordinal": ordinal})


def _pools() -> None:
    from console.fleet.models import Pool

    for name, label in POOLS:
        Pool.objects.get_or_create(name=name, defaults={"label": label})


def _cards() -> None:
    from console.catalog import catalogue
    from console.fleet.models import Card, Host, Pool

    pools, number, cards = {pool.name: pool for pool in Pool.objects.all()}, 0, host_cards()
    for name, kind, rack, pool in HOSTS:
        defaults = {"rack": rack, "simulated": True, "door_token": secrets.token_urlsafe(32)}
        host, _ = Host.objects.get_or_create(name=name, defaults=defaults)
        for card in cards[name]:
            number += 1
            Card.objects.get_or_create(
                uuid=card["uuid"],
                defaults={
                    "host": host,
                    "index": card["index"],
                    "number": number,
                    "name": card["name"].removeprefix("NVIDIA "),
                    "card_class": kind,
                    "compute_cap": catalogue.card(kind)["compute_cap"],
                    "price_fen_h": PRICE_FEN_H[kind],
                    "pool": pools[pool],
                    "total_mib": card["total_mib"],
                    "reserved_mib": card["reserved_mib"],
                },
            )


def _quotas() -> None:
    """Only where there is none at all: one that was ended on a page stays so."""
    from console.accounts.models import Tenant
    from console.fleet.models import Pool, Quota

    if Quota.objects.exists():
        return
    tenants, pools = {row.slug: row for row in Tenant.objects.all()}, {row.name: row for row in Pool.objects.all()}
    Quota.objects.bulk_create(
        Quota(tenant=tenants[slug], pool=pools[pool], guaranteed_mib=promised * MIB, borrowable_mib=more * MIB)
        for pool, companies in QUOTAS_GIB.items()
        for slug, (promised, more) in companies.items()
    )


def _services() -> None:
    from console.accounts.models import Tenant
    from console.catalog.models import Service

    tenants = {tenant.slug: tenant for tenant in Tenant.objects.all()}
    for plan in SERVICES:
        service, made = Service.objects.get_or_create(name=plan.name, defaults=_columns(plan, tenants))
        if made:
            service.audience_tenants.set([tenants[slug] for slug in plan.named])


def _columns(plan: Plan, tenants: dict[str, Any]) -> dict[str, Any]:
    model = _model(plan)
    return {
        "label": plan.label,
        "tenant": tenants[plan.tenant],
        "model": model,
        "audience": plan.audience,
        "profile": plan.profile,
        "tier": plan.tier,
        "tier_fixed": True,  # each story needs its own
        "priority": plan.priority,
        "waiter": plan.waiter,
        "weights_mib": model.weights_mib,
        "kv_cap_mib": round(plan.kv_gib * 1024),
        "headroom_mib": round(plan.headroom_gib * 1024),
        "max_num_seqs": plan.max_num_seqs,
        "min_replicas": plan.min_replicas,
        "max_replicas": plan.max_replicas,
        "card_classes": list(plan.classes),
        "hold_cap_s": plan.hold_cap_s,
    }


def _model(plan: Plan) -> Any:
    from console.catalog import catalogue
    from console.catalog.models import Model

    facts = catalogue.model(plan.model)
    model, _ = Model.objects.get_or_create(
        slug=f"{plan.model}-{plan.dtype}",
        defaults={
            "name": facts["name"] if plan.dtype == facts["native_dtype"] else f"{facts['name']} {plan.dtype}",
            "weights": f"{plan.model}-{plan.dtype}",
            "weights_mib": facts["weights_mib"][plan.dtype],
            "kv_bytes_per_token": facts["kv_bytes_per_token"],
            "max_context": facts["max_context"],
            "origins": dict.fromkeys(("weights_mib", "kv_bytes_per_token", "max_context"), "catalogue"),
        },
    )
    return model


def _policy() -> None:
    from console.policies.models import PolicyValue

    for name, value in POLICY.items():
        PolicyValue.objects.get_or_create(name=name, defaults={"value": value})


def _people(known: dict[str, str]) -> dict[str, str]:
    """A password for each; one whose text is lost gets a new one."""
    from console.accounts.models import Tenant, User

    tenants = {tenant.slug: tenant for tenant in Tenant.objects.all()}
    for name, full_name, tenant in PEOPLE:
        defaults = {"role": name, "full_name": full_name, "tenant": tenants.get(tenant or "")}
        user, made = User.objects.get_or_create(username=name, defaults=defaults)
        if made or name not in known:
            known[name] = secrets.token_urlsafe(9)
            user.set_password(known[name])
            user.save()
    return known


def _keys(known: dict[str, str]) -> dict[str, str]:
    """One key a company, and `traffic`, with which services open to the whole group are called."""
    from console.accounts.keys import new_key
    from console.accounts.models import ApiKey, Tenant

    owners = {slug: slug for slug, _, _ in TENANTS} | {TRAFFIC: TENANTS[0][0]}
    for name, slug in owners.items():
        if name in known and ApiKey.objects.filter(name=f"demo {name}").exists():
            continue
        made = new_key()
        known[name] = made.key
        tenant = Tenant.objects.get(slug=slug)
        defaults = {"tenant": tenant, "prefix": made.prefix, "digest": made.digest}
        ApiKey.objects.update_or_create(name=f"demo {name}", defaults=defaults)
    return known


def keep(path: Path, fill: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """A private file of names and secrets, replaced whole: a half-written one would lock everybody out."""
    known = json.loads(path.read_text()) if path.exists() else {}
    filled = fill(dict(known))
    if filled != known or not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".new")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(filled, file, ensure_ascii=False, indent=1)
        draft.replace(path)
