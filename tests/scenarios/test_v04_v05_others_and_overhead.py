"""V04, V05: memory that others took, and everything that no declaration of weights names, counts against newcomers."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from scheduler.decision import Refusal
from scheduler.memory import (
    Book,
    book_limit_pct,
    book_of,
    buffer_mib,
    held_mib,
    kv_sums,
    room_mib,
    start_grant,
    within_oversell,
)
from scheduler.policy import Policy
from scheduler.world import Card, Phase, Profile, Replica, Service
from tests.scenarios.lagging import Lagging
from tests.scheduler.build import a_card, a_replica, a_service, a_world

GIB = 1024


@pytest.mark.parametrize("foreign_mib", [50 * GIB, 60 * GIB, 70 * GIB])
def test_v04_foreign_memory_is_seen_told_and_never_ours_to_stop(foreign_mib):
    service = a_service("s", 20 * GIB, 6 * GIB)
    farm = Lagging(a_world(a_card(), service), foreign={"c1": foreign_mib})
    farm.call("s", stream=True)
    for _ in range(5):
        farm.step()
    assert farm.did("s") == []
    refusal = farm.told["s"][-1][1].refusal
    least = service.claim.fixed_mib + -(-service.claim.kv_cap_mib * 100 // 115)
    assert refusal.numbers["short_mib"] == least - (81920 - 600 - 6554 - foreign_mib)
    del farm.foreign["c1"]
    farm.step()
    farm.step()
    assert [d.cards for d in farm.did("s")] == [("c1",)], "placed within two samples of its end, by itself"


def test_v04_another_card_is_taken_meanwhile():
    cards = [a_card("c1", "h1"), a_card("c2", "h2")]
    farm = Lagging(a_world(*cards, a_service("s", 20 * GIB, 6 * GIB)), foreign={"c1": 70 * GIB})
    farm.call("s", stream=True)
    farm.step()
    assert [d.cards for d in farm.did("s")] == [("c2",)]


#: A card of 46068 MiB whose driver keeps 450, and a context of 500 in each process: 8 % of it is nobody's.
SMALL = a_card("c1", total=46068, reserved=450)
LIFTED = Policy(max_replicas_per_card=16)


def small(index: int, weights: int = 1500, kv: int = 500, **more) -> Service:
    return a_service(f"s{index}", weights, kv, headroom=0, overhead=500, **more)


def book(card: Card, replicas: list[Replica], services: dict[str, Service], policy: Policy = LIFTED) -> Book:
    taken = card.driver_reserved_mib + sum(held_mib(r, services[r.service], policy) for r in replicas)
    return book_of(replace(card, unavailable_mib=taken), replicas, services, policy)


def test_v05_the_first_one_too_many_is_refused_with_the_shortfall():
    """Forty-six thousand by two thousand is twenty-three; with context, reserve and buffer sixteen fit."""
    replicas: list[Replica] = []
    services = {f"s{i}": small(i) for i in range(30)}
    while not isinstance(grant := start_grant(book(SMALL, replicas, services), services[f"s{len(replicas)}"]), Refusal):
        replicas.append(a_replica(len(replicas), f"s{len(replicas)}", kv_granted_mib=grant))
    room = room_mib(book(SMALL, replicas, services))
    assert len(replicas) == (46068 - 450 - buffer_mib(SMALL, LIFTED)) // 2500 == 16
    least = 2000 + -(-500 * 100 // 115)
    assert grant.numbers == {"card": "c1", "short_mib": least - room, "room_mib": room}


@pytest.mark.parametrize("seed", range(10))
def test_v05_no_sequence_of_comings_and_goings_oversteps_the_card(seed):
    dice = Random(seed)
    services = {
        f"s{i}": small(i, dice.randint(200, 9000), dice.randint(0, 4000), profile=dice.choice(list(Profile)))
        for i in range(40)
    }
    replicas: list[Replica] = []
    refused = 0
    for step in range(200):
        if replicas and dice.random() < 0.4:
            replicas.pop(dice.randrange(len(replicas)))
            continue
        name = dice.choice(sorted(services.keys() - {r.service for r in replicas}))
        grant = start_grant(book(SMALL, replicas, services), services[name])
        if isinstance(grant, Refusal):
            refused += 1
            continue
        replicas.append(a_replica(step, name, phase=dice.choice([Phase.READY, Phase.STARTING]), kv_granted_mib=grant))
        after = book(SMALL, replicas, services)
        weights = sum(services[r.service].claim.fixed_mib for r in replicas)
        granted = sum(r.kv_granted_mib for r in replicas)
        assert weights + granted + SMALL.driver_reserved_mib + buffer_mib(SMALL, LIFTED) <= SMALL.total_mib
        caps, sums = kv_sums(after)
        assert within_oversell(caps, sums, book_limit_pct(after)), "no start leaves oversell above the limit of the mix"
    assert refused > 5
