"""Real loads teach what a host's storage can do, each loader apart."""

from __future__ import annotations

import pytest

from console import state
from console.catalog.models import Model, Reads, Replica, Service
from console.fleet.models import Host
from scheduler.estimate import load_estimate
from scheduler.policy import Policy
from tests import factories
from workers.control import storage

RULES = Policy()
INIT_S = RULES.load_init_s + RULES.load_warm_up_s


@pytest.fixture
def row(db: None) -> Replica:
    host = factories.host(bandwidth_mib_s=2000)
    return factories.replica(factories.service(weights_mib=20000), host.cards.all()[0], phase="starting")


def known() -> dict[str, int]:
    return {one.loader: one.loads for one in Reads.objects.all()}


def test_loads_are_learned_from_and_estimates_of_others_follow(row):
    other = factories.service("other", weights_mib=30000)
    before = estimate(other)
    for _ in range(10):
        storage.learn(row, 40 + INIT_S)
    assert known() == {"stream": 10}
    assert estimate(other) > before * 1.5


def estimate(service: Service) -> float:
    world = state.world(0.0)
    return load_estimate(world, RULES, world.services[service.name], "h1").seconds


def test_loaders_are_told_apart(row):
    storage.learn(row, 20 + INIT_S)
    Model.objects.update(shards=4)
    storage.learn(row, 5 + INIT_S)
    assert known() == {"stream": 1, "parallel": 1}
    Host.objects.update(storage="network")
    storage.learn(row, 20 + INIT_S)
    assert known() == {"stream": 2, "parallel": 1}


def test_two_loads_at_once_share_the_storage_and_say_nothing(row):
    other = factories.service("other")
    factories.replica(other, row.host.cards.all()[1], phase="starting")
    storage.learn(row, 20 + INIT_S)
    assert known() == {}
