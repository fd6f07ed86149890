"""Rows of a large site for the console's benchmark: written in bulk, the same for the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from console.accounts.models import Role, Tenant, User
from console.audit.models import Entry
from console.catalog.models import Model, Replica, Service
from console.fleet.models import Card, Host, Pool
from console.journal.models import Decision
from console.usage.models import HourlyCalls

PER_HOST = 8
DRIVER_MIB = 450
#: (class, marketing name, MiB, pool)
CLASSES = (
    ("a800-80", "NVIDIA A800-SXM4-80GB", 81920, "large"),
    ("h20-96", "NVIDIA H20", 97871, "large"),
    ("l40s-48", "NVIDIA L40S", 46068, "middle"),
    ("l20-48", "NVIDIA L20", 46068, "small"),
)
#: (slug, weights, KV cap, headroom), MiB
SHAPES = (("0.6b", 1434, 1024, 512), ("7b", 14541, 4096, 1024), ("8b", 15974, 6144, 1024), ("14b", 28160, 6144, 2048))
WORDS = ("合同审阅", "热线问答", "单据识别", "公文写作", "设备知识库", "尽调问答", "图纸检索", "排产解释", "字幕转写")
MARKS = "能制金置物医研零建媒电港航农林盐钢煤化交"
#: (verb, reason, refusal, share)
STORIES = (
    ("start", "hold", "", 24),
    ("wake", "hold", "", 20),
    ("drain", "idle", "", 20),
    ("sleep", "idle", "", 16),
    ("stop", "idle", "", 6),
    ("drain", "room", "", 5),
    ("wake", "call", "", 5),
    ("start", "hold", "short_of_memory", 3),
    ("start", "fault", "", 1),
)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a site is."""

    cards: int = 300
    services: int = 1000
    replicas: int = 900
    tenants: int = 20
    decisions: int = 50_000
    usage_hours: int = 168


def make(size: Size, seed: int) -> None:
    """Fill an empty database. Everything has just reported."""
    chance, now = random.Random(seed), datetime.now(UTC)
    tenants = _tenants(size)
    cards = _cards(size, now)
    services = _services(size, tenants, chance, now)
    replicas = _replicas(size, services, cards, chance, now)
    _settle()
    _measure(cards, replicas)
    _decisions(size, replicas, services, chance, now)
    _usage(size, services, chance, now)
    _audit(size, now)


def _tenants(size: Size) -> list[Tenant]:
    rows = [
        Tenant(slug=f"company-{i:02d}", name=f"第{i}公司", mark=MARKS[i - 1] if i <= len(MARKS) else f"{i}", ordinal=i)
        for i in range(1, size.tenants + 1)
    ]
    Tenant.objects.bulk_create(rows)
    for role in Role:
        owner = rows[0] if role in (Role.TENANT_ADMIN, Role.TENANT_MEMBER) else None
        User.objects.create(username=role.value, role=role, tenant=owner, password="!")
    return rows


def _cards(size: Size, now: datetime) -> list[Card]:
    pools = {name: Pool.objects.get_or_create(name=name, defaults={"label": f"{name} 池"})[0] for *_, name in CLASSES}
    hosts = -(-size.cards // PER_HOST)
    names = [f"gpu-{i:02d}" for i in range(1, hosts + 1)]
    Host.objects.bulk_create(
        Host(name=name, rack=f"R{i % 6}", seen_at=now, cards_at=now, door_token="-", door_ok=True, version="1.0.0",
             simulated=True, memory_mib=512 * 1024, bandwidth_mib_s=2400)
        for i, name in enumerate(names)
    )  # fmt: skip
    rows = []
    for i, host in enumerate(Host.objects.order_by("name")):
        kind, name, total_mib, pool = CLASSES[i * len(CLASSES) // hosts]
        for index in range(min(PER_HOST, size.cards - i * PER_HOST)):
            rows.append(
                Card(uuid=f"GPU-{host.name}-{index}", host=host, index=index, number=i * PER_HOST + index + 1,
                     name=name, card_class=kind, pool=pools[pool], total_mib=total_mib, reserved_mib=DRIVER_MIB,
                     free_mib=total_mib - DRIVER_MIB, util_pct=(i * 7 + index * 13) % 97, sampled_at=now)
            )  # fmt: skip
    return Card.objects.bulk_create(rows)


def _services(size: Size, tenants: list[Tenant], chance: random.Random, now: datetime) -> list[Service]:
    models = Model.objects.bulk_create(
        Model(slug=f"m-{slug}", name=f"Model {slug}", weights=slug, weights_mib=weights, kv_bytes_per_token=57344,
              max_context=32768)
        for slug, weights, _, _ in SHAPES
    )  # fmt: skip
    rows = []
    for i in range(size.services):
        shape = chance.randrange(len(SHAPES))
        _, weights, kv_cap, headroom = SHAPES[shape]
        rows.append(
            Service(name=f"service-{i:04d}", label=f"{WORDS[i % len(WORDS)]}{i // len(WORDS) + 1}",
                    tenant=tenants[i % len(tenants)], model=models[shape], weights_mib=weights, kv_cap_mib=kv_cap,
                    headroom_mib=headroom, tier=chance.choice(("hot", "warm", "cold")),
                    profile=chance.choice(("online", "lowfreq", "batch")), priority=chance.randrange(20, 90),
                    max_replicas=2, last_call_at=now - timedelta(seconds=chance.randrange(1, 90_000)))
        )  # fmt: skip
    return Service.objects.bulk_create(rows)


def _replicas(
    size: Size, services: list[Service], cards: list[Card], chance: random.Random, now: datetime
) -> list[Replica]:
    """Three a card, each of another service; one in five asleep, one in forty starting or leaving."""
    rows = []
    room = {card.uuid: card.total_mib * 0.85 for card in cards}
    for i in range(size.replicas):
        card, service = cards[i % len(cards)], services[i % len(services)]
        phase = "asleep" if chance.random() < 0.2 else chance.choice(["ready"] * 38 + ["starting", "draining"])
        if service.weights_mib + service.kv_cap_mib + 600 > room[card.uuid]:
            phase = "asleep"  # a card holds no more than it has
        room[card.uuid] -= 1300 if phase == "asleep" else service.weights_mib + service.kv_cap_mib + 600
        want = {"draining": "drained", "asleep": "asleep"}.get(phase, "ready")
        rows.append(
            Replica(service=service, host_id=card.host_id, cards=[card.uuid], want=want, phase=phase, reason="hold",
                    kv_granted_mib=service.kv_cap_mib, want_since=now, phase_since=now, phase_attempt=1,
                    loaded_at=now - timedelta(minutes=chance.randrange(1, 300)), kv_used_pct=chance.randrange(2, 90),
                    door_in_flight=chance.randrange(0, 5) if phase == "ready" else 0, running=1, waiting=0,
                    progress=0.4 if phase == "starting" else None)
        )  # fmt: skip
    return Replica.objects.bulk_create(rows)


def _settle() -> None:
    """A loop that runs has granted what it can: no hot service is without a ready copy, or one on its way."""
    awake = Service.objects.filter(replicas__phase__in=("ready", "starting"))
    Service.objects.filter(tier="hot").exclude(pk__in=awake).update(tier="warm")


def _measure(cards: list[Card], replicas: list[Replica]) -> None:
    """The cards say in use what their replicas hold."""
    held: dict[str, int] = {}
    for row in replicas:
        mib = 1300 if row.phase == "asleep" else row.service.weights_mib + row.kv_granted_mib + 600
        held[row.cards[0]] = held.get(row.cards[0], 0) + mib
    for card in cards:
        card.free_mib = max(0, card.total_mib - DRIVER_MIB - held.get(card.uuid, 0))
    Card.objects.bulk_update(cards, ["free_mib"])


def _decisions(
    size: Size, replicas: list[Replica], services: list[Service], chance: random.Random, now: datetime
) -> None:
    cards = dict(Card.objects.values_list("uuid", "pk"))
    kinds = chance.choices(STORIES, [share for *_, share in STORIES], k=size.decisions)
    rows = []
    for i, (verb, reason, refusal, _) in enumerate(kinds):
        replica = replicas[chance.randrange(len(replicas))]
        numbers = {"short_mib": 2310} if refusal else {"kv_granted_mib": replica.kv_granted_mib, "held": 2}
        rows.append(
            Decision(at=now - timedelta(seconds=(size.decisions - i) * 12), verb=verb, reason=reason, refusal=refusal,
                     service_id=replica.service_id, replica_id=None if refusal else replica.pk,
                     card_id=None if refusal else cards[replica.cards[0]], numbers=numbers)
        )  # fmt: skip
    Decision.objects.bulk_create(rows, batch_size=2000)


def _usage(size: Size, services: list[Service], chance: random.Random, now: datetime) -> None:
    top = now.replace(minute=0, second=0, microsecond=0)
    rows = [
        HourlyCalls(hour=top - timedelta(hours=hour), service=service.name, tenant=service.tenant.slug, key_id=1,
                    calls=(calls := chance.randrange(1, 90)), ok=calls, total_ms=calls * 900)
        for service in services
        for hour in sorted(chance.sample(range(size.usage_hours), min(8, size.usage_hours)))
    ]  # fmt: skip
    HourlyCalls.objects.bulk_create(rows, batch_size=2000)


def _audit(size: Size, now: datetime) -> None:
    """As many acts of people as decisions of the planner."""
    change = [["fleet.Card", "GPU", "cordoned", False, True]]
    Entry.objects.bulk_create(
        (
            Entry(
                at=now - timedelta(minutes=i),
                username="operator",
                act="board-cordon",
                subject=f"gpu-{i % 38}",
                changes=change,
            )
            for i in range(size.decisions)
        ),
        batch_size=2000,
    )
