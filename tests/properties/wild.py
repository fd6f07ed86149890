"""Random worlds with everything on at once: card groups, slices, budgets, forecasts, scaling, batch, pools, buttons.

What `worlds.any_world` makes, and over it whatever a later stage reads: each with some probability, so that rules meet.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from scheduler.expectation import Forecast
from scheduler.looks import Day, Minute, Scaling
from scheduler.move import Move
from scheduler.past import Eviction, Swap, Throttled
from scheduler.world import Act, Budget, Card, Host, Order, Phase, Pool, Quota, Replica, Service, Want, World
from tests.properties.worlds import AGES_S, any_world
from tests.scheduler.build import NOW

POOLS = ("default", "resident", "elastic", "pilot", "pages")


def a_scaling(dice: Random) -> Scaling:
    ready = dice.randint(0, 3)
    ago = dice.choice(AGES_S)
    return Scaling(
        looked_at=NOW - dice.choice([1.0, 5.0, 60.0]),
        over=dice.randint(0, 3),
        over_by=dice.choice(["queue", "p99"]),
        over_at=dice.choice([None, NOW - ago]),
        signalled_at=dice.choice([None, NOW - ago]),
        ready=ready,
        live=ready + dice.randint(0, 1),
        changed_at=NOW - dice.choice(AGES_S),
        minutes=tuple(a_minute(dice, back) for back in range(dice.choice([0, 3, 25]), 0, -1)),
        days=tuple(a_day(dice, back) for back in range(dice.choice([0, 2]), 0, -1)),
        raised_to=dice.randint(0, 3),
        raised_at=dice.choice([None, NOW - ago]),
        came_from=dice.choice([0, 0, 3]),
    )


def a_minute(dice: Random, back: int) -> Minute:
    looks, over = dice.randint(1, 12), dice.randint(0, 3)
    waiting = dice.choice([0, 1, 20])
    running = looks * dice.choice([0, 2, 9])
    return Minute(
        int(NOW // 60) - back, looks, looks * 2, running, looks * waiting, waiting, 0, looks - min(looks, over), over
    )


def a_day(dice: Random, back: int) -> Day:
    return Day(int(NOW // 86400) - back, dice.choice([0.0, 4.0, 12.0]), dice.choice([None, 3.0]))


def a_forecast(dice: Random) -> Forecast:
    hours = tuple(dice.choice([0.0, 0.2, 0.6, 0.95]) for _ in range(3))
    moments = ((NOW + dice.choice([60.0, 400.0, 3000.0]), dice.choice([0.4, 0.9])),) if dice.random() < 0.5 else ()
    recalls = tuple(dice.random() < 0.5 for _ in hours)
    return Forecast(NOW - NOW % 3600, hours, recalls, moments, dice.choice([0.0, 20.0, 90.0]), dice.random() < 0.8)


def wilder_service(dice: Random, service: Service) -> Service:
    more: dict[str, Any] = {}
    if dice.random() < 0.2:
        more["cards_per_replica"] = 2
    if dice.random() < 0.5:
        more |= {"max_replicas": dice.randint(1, 4), "scaling": a_scaling(dice)}
        more |= {"running": dice.choice([None, 0, 6, 30]), "waiting": dice.choice([None, 0, 2, 17, 60])}
        more |= {"p99_ms": dice.choice([None, 200.0, 2000.0]), "p99_samples": dice.choice([0, 49, 500])}
    if dice.random() < 0.2:
        more["pools"] = frozenset({dice.choice(POOLS)})
    if dice.random() < 0.15:
        more["resident"] = ((NOW - 100, NOW + dice.choice([-50, 3000])),)
    if dice.random() < 0.1:
        more["slice_required"] = True
    if dice.random() < 0.1:
        more |= {"first_token_s": 0.5, "let_go_at": NOW - dice.choice(AGES_S)}
    return replace(service, starts_28d=dice.choice([0, 0, 5]), **more)


def wilder_card(dice: Random, card: Card) -> Card:
    more: dict[str, Any] = {"pool": dice.choice(["default", "default", "default", *POOLS])}
    if dice.random() < 0.15:
        more["baseline_mib"] = dice.choice([400, 2000])
    if dice.random() < 0.15:
        more["slice_of"] = "whole"
    if dice.random() < 0.3:
        more |= {"batch_calls": dice.randint(0, 4), "batch_calls_at": NOW - dice.choice(AGES_S)}
    return replace(card, group=dice.choice(["", "a", "b"]), pressed_samples=dice.choice([0, 0, 0, 1, 2]), **more)


def wilder_host(dice: Random, host: Host) -> Host:
    """Some are to be empty by a time that is near, far or past."""
    if dice.random() < 0.8:
        return host
    return replace(host, cordoned=True, leave_by=NOW + dice.choice([-5, 20, 5000]))


def wilder_replica(dice: Random, world: World, replica: Replica) -> Replica:
    """Copies of several cards lie on cards of one host; what has not enough there is as it was."""
    service = world.services[replica.service]
    more: dict[str, Any] = {}
    if service.cards_per_replica > 1:
        mates = [c for c in sorted(world.cards) if world.cards[c].host == world.cards[replica.cards[0]].host]
        mates.remove(replica.cards[0])
        more["cards"] = (*replica.cards, *mates[: service.cards_per_replica - 1])
    if replica.phase is Phase.READY:
        more |= {"running": dice.choice([None, 0, 3]), "waiting": dice.choice([None, 0, 5])}
        more |= {"kv_used_pct": dice.choice([None, 40.0, 97.0]), "kv_full_samples": dice.choice([0, 0, 2, 5])}
        more |= {"p99_ms": dice.choice([None, 100.0, 3000.0]), "disturbance_pct": dice.choice([None, 5.0, 40.0])}
    if replica.phase is Phase.STARTING and replica.want is Want.READY:
        more["reason"] = dice.choice(["hold", "forecast", "queue", "minimum", "rebuild"])
    if replica.drain_at is not None:
        more["reason"] = dice.choice(["idle", "room", "surplus", "budget", "regrant"])
    return replace(replica, **more)


def buttons(dice: Random, world: World) -> tuple[Order, ...]:
    found = []
    for number in range(dice.choice([0, 0, 1, 2])):
        replica = dice.choice([None, *world.replicas]) if world.replicas else None
        name = world.replicas[replica].service if replica is not None else dice.choice(list(world.services))
        act = dice.choice([Act.PRELOAD, Act.STOP] if replica is None else list(Act))
        found.append(Order(number, act, name, NOW + dice.choice([-1, 600]), replica, dice.randint(1, 3)))
    return tuple(found)


def budgets(dice: Random, world: World) -> tuple[Budget, ...]:
    names = ["", *world.services]
    return tuple(
        Budget(dice.choice("tu"), 1000, dice.choice([100, 900, 1500]), dice.choice([None, 1200]), dice.choice(names))
        for _ in range(dice.choice([0, 0, 1, 2]))
    )


def quotas(dice: Random) -> dict[tuple[str, str], Quota]:
    sizes = [0, 9000, 30000, 200000]
    some = [(tenant, pool) for tenant in "tu" for pool in POOLS if dice.random() < 0.7]
    return {key: Quota(dice.choice(sizes), dice.choice(sizes)) for key in some}


def past(dice: Random, world: World) -> dict[str, Any]:
    """What was decided of late."""
    names, cards = list(world.services), list(world.cards)
    found: dict[str, Any] = {}
    if dice.random() < 0.4:
        at = NOW - dice.choice(AGES_S)
        found["swaps"] = (Swap(dice.choice(names), dice.choice(names), at),)
    if dice.random() < 0.3:
        at = NOW - dice.choice(AGES_S)
        found["evictions"] = (Eviction(dice.choice(names), dice.choice(cards), at, dice.random() < 0.6),)
    if dice.random() < 0.2:
        found["throttled"] = (Throttled(dice.choice(names), dice.choice(cards), NOW - dice.choice(AGES_S)),)
    return found


def moves(dice: Random, world: World) -> tuple[Move, ...]:
    """Repack moves that may be done: some begun, some whose copy is on its way."""
    found = []
    for number in range(dice.choice([0, 0, 1, 2])):
        if not world.replicas:
            break
        old = world.replicas[dice.choice(list(world.replicas))]
        cards = tuple(dice.sample(sorted(world.cards), min(len(old.cards), len(world.cards))))
        others = [r.id for r in world.replicas.values() if r.service == old.service and r.id != old.id]
        copy = dice.choice([None, None, *others])
        found.append(Move(number + 1, 1, number + 1, old.id, old.service, cards, copy))
    return tuple(found)


def wild_world(cards: int, services: int, density: int, seed: int) -> World:
    world, dice = any_world(cards, services, density, seed), Random(seed + 1)
    world = replace(
        world,
        cards={c.id: wilder_card(dice, c) for c in world.cards.values()},
        hosts={h.name: wilder_host(dice, h) for h in world.hosts.values()},
        services={s.name: wilder_service(dice, s) for s in world.services.values()},
        pools={
            name: Pool(
                name,
                purpose=name if name != "pages" and name != "default" else "ondemand",
                mode=dice.choice(["observe", "suggest", "enforce"]),
                refused_at=dice.choice([None, NOW - 60]),
                kv="elastic" if name == "pages" else "static",
            )
            for name in POOLS
        },
    )
    world = replace(world, replicas={r.id: wilder_replica(dice, world, r) for r in world.replicas.values()})
    return replace(
        world,
        orders=buttons(dice, world),
        budgets=budgets(dice, world),
        moves=moves(dice, world),
        forecasts={n: a_forecast(dice) for n in world.services if dice.random() < 0.5},
        quotas=quotas(dice) if dice.random() < 0.3 else {},
        site_minute=dice.choice([None, 12 * 60, 23 * 60]),
        **past(dice, world),
    )


def wild_worlds() -> st.SearchStrategy[World]:
    return st.builds(wild_world, st.integers(1, 6), st.integers(1, 6), st.integers(0, 6), st.integers(0, 2**32))
