"""Worlds for the planner's benchmark: farms of any size in a state that tries the plan, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from scheduler.policy import DEFAULT
from scheduler.world import Budget, Card, Claim, Demand, Host, Phase, Pool, Profile, Replica, Service, Tier, Want, World

NOW = 1_800_000_000.0
PER_HOST = 8
DRIVER_MIB = 450
#: (class, MiB, compute capability, fen an hour)
CLASSES = (("a800-80", 81920, 8.0, 2000), ("h20-96", 97871, 9.0, 1800), ("l40s-48", 46068, 8.9, 900))
#: (weights, KV cap, headroom) in MiB
SHAPES = ((1434, 1024, 512), (6144, 4096, 614), (14541, 6144, 1024), (15974, 8192, 1024), (28160, 8192, 2048))
STORM = 124  # services whose first caller comes within one second


@dataclass(frozen=True, slots=True)
class Size:
    """How large a farm is; `replicas` are awake or asleep copies, three a card as a rule."""

    cards: int
    services: int
    replicas: int

    @property
    def name(self) -> str:
        return f"{self.cards:,} cards / {self.services:,} services / {self.replicas:,} replicas"


def steady(size: Size, seed: int) -> World:
    """All who are wanted are ready and in use now and then; nothing is to be done."""
    dice = random.Random(seed)
    hosts = _hosts(size)
    cards = _cards(size)
    services = [_service(i, dice) for i in range(size.services)]
    replicas = _replicas(size, cards, services, dice)
    awake = {r.service for r in replicas if r.phase is Phase.READY}
    services = [s if s.tier is not Tier.HOT or s.name in awake else replace(s, tier=Tier.WARM) for s in services]
    return World(
        hosts={h.name: h for h in hosts},
        cards={c.id: c for c in _measured(cards, replicas, services)},
        services={s.name: s for s in services},
        replicas={r.id: r for r in replicas},
        pools={"default": Pool("default")},
    )


def storm(size: Size, seed: int) -> World:
    """A first caller each for many cold services at once, on a farm in which most cards have no room left."""
    world = steady(size, seed)
    ready = {r.service for r in world.replicas.values() if r.want is Want.READY}
    cold = [name for name in sorted(world.services) if name not in ready][:STORM]
    return _held(world, cold)


def full(size: Size, seed: int) -> World:
    """The storm on a farm where every copy was loaded within its minimum stay and has just been called: none may go."""
    world, dice = storm(size, seed), random.Random(seed)
    busy = {
        i: replace(r, loaded_at=NOW - dice.uniform(5, DEFAULT.min_loaded_s - 5), last_call_at=NOW - dice.uniform(0, 4))
        for i, r in world.replicas.items()
    }
    packed = {c.id: replace(c, unavailable_mib=c.total_mib * 91 // 100) for c in world.cards.values()}
    return replace(world, replicas=busy, cards=packed)


def mass_idle(size: Size, seed: int) -> World:
    """Nobody has called for a day, and somebody was refused of late: every copy that may be asked is asked to go."""
    world = steady(size, seed)
    idle = {i: replace(r, in_flight=0, last_call_at=NOW - 86400.0) for i, r in world.replicas.items()}
    return replace(world, replicas=idle, pools={"default": Pool("default", refused_at=NOW - 60.0)})


def budgets_spent(size: Size, seed: int) -> World:
    """The same when no company has any money left."""
    world = mass_idle(size, seed)
    tenants = sorted({service.tenant for service in world.services.values()})
    return replace(world, budgets=tuple(Budget(tenant, 100_000, 120_000) for tenant in tenants))


def all_different(size: Size, seed: int) -> World:
    """The storm where no two claims are the same, and each tenth of those who wait for a first copy needs two cards.

    What one wish was told is good for no other.
    """
    world = storm(size, seed)
    there = {r.service for r in world.replicas.values()}
    services = {s.name: _own_claim(s, i, s.name not in there) for i, s in enumerate(world.services.values())}
    caps = {name: service.claim.kv_cap_mib for name, service in services.items()}
    replicas = {i: replace(r, kv_granted_mib=caps[r.service]) for i, r in world.replicas.items()}
    return replace(world, services=services, replicas=replicas)


def _own_claim(service: Service, i: int, cold: bool) -> Service:
    """A little less of everything than others of its shape."""
    claim = service.claim
    own = Claim(claim.weights_mib - i % 397, claim.kv_cap_mib - i % 89, claim.headroom_mib - i % 31)
    return replace(service, claim=own, cards_per_replica=2 if cold and service.demand.held and i % 10 == 0 else 1)


WORLDS: dict[str, Callable[[Size, int], World]] = {
    "steady": steady,
    "storm of wishes": storm,
    "full farm": full,
    "mass idle": mass_idle,
    "budgets spent": budgets_spent,
    "every claim different": all_different,
}


def _held(world: World, names: list[str]) -> World:
    services = dict(world.services)
    for i, name in enumerate(names):
        since = NOW - (i % 10) / 10
        services[name] = replace(services[name], demand=Demand(1 + i % 3, i % 2, since, NOW))
    return replace(world, services=services)


def _hosts(size: Size) -> list[Host]:
    count = -(-size.cards // PER_HOST)
    return [Host(f"gpu-{i:04d}", NOW - 0.5, 512 * 1024, 2400, rack=f"R{i % 6}") for i in range(count)]


def _cards(size: Size) -> list[Card]:
    hosts = -(-size.cards // PER_HOST)
    cards = []
    for i in range(size.cards):
        kind, total_mib, cap, price = CLASSES[(i // PER_HOST) * len(CLASSES) // hosts]
        host = f"gpu-{i // PER_HOST:04d}"
        cards.append(Card(f"GPU-{host}-{i % PER_HOST}", host, i % PER_HOST, kind, total_mib, DRIVER_MIB, DRIVER_MIB,
                          compute_cap=cap, price_fen_h=price))  # fmt: skip
    return cards


def _service(i: int, dice: random.Random) -> Service:
    weights, kv, headroom = dice.choice(SHAPES)
    return Service(
        name=f"service-{i:05d}",
        tenant=f"t{i % 20}",
        claim=Claim(weights, kv, headroom),
        profile=dice.choice(list(Profile)),
        tier=dice.choice([Tier.HOT, Tier.WARM, Tier.COLD]),
        priority=dice.randrange(20, 90),
        max_replicas=2,
        one_request_mib=256,
        demand=Demand(last_call_at=NOW - dice.randrange(10, 900)),
        generation_s=8.0,
    )


def _replicas(size: Size, cards: list[Card], services: list[Service], dice: random.Random) -> list[Replica]:
    """One copy of each service in turn, on the next card with room; asleep where none has any."""
    room = {c.id: c.total_mib - c.driver_reserved_mib - -(-c.total_mib * DEFAULT.buffer_pct // 100) for c in cards}
    rows = []
    for i in range(size.replicas):
        card, service = cards[i % len(cards)], services[i % len(services)]
        need = service.claim.fixed_mib + service.claim.kv_cap_mib
        asleep = dice.random() < 0.2 or need > room[card.id]
        room[card.id] -= DEFAULT.default_residue_mib if asleep else need
        rows.append(_replica(i + 1, service, card, asleep, dice))
    return rows


def _replica(number: int, service: Service, card: Card, asleep: bool, dice: random.Random) -> Replica:
    since = NOW - dice.randrange(400, 20000)
    return Replica(
        id=number,
        service=service.name,
        cards=(card.id,),
        want=Want.ASLEEP if asleep else Want.READY,
        phase=Phase.ASLEEP if asleep else Phase.READY,
        kv_granted_mib=service.claim.kv_cap_mib,
        since=since,
        want_since=since,
        loaded_at=since,
        last_call_at=NOW - dice.randrange(10, 900),
        in_flight=None if asleep else dice.choice([0, 0, 0, 1, 3]),
        reason="idle" if asleep else "hold",
    )


def _measured(cards: list[Card], replicas: list[Replica], services: list[Service]) -> list[Card]:
    """What the driver shows is what the copies hold, without the headroom they did not need."""
    known = {s.name: s for s in services}
    held: dict[str, int] = dict.fromkeys((c.id for c in cards), DRIVER_MIB)
    for replica in replicas:
        claim = known[replica.service].claim
        awake = claim.weights_mib + claim.overhead_mib + replica.kv_granted_mib
        held[replica.cards[0]] += awake if replica.phase is Phase.READY else DEFAULT.default_residue_mib
    return [replace(c, unavailable_mib=held[c.id]) for c in cards]
