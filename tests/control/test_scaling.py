"""Scaling on the paper farm: looks become rows, rows outlive the leader, raises and scale-ins are remembered."""

from __future__ import annotations

from itertools import pairwise

import pytest
from django.utils import translation

from console import state
from console.catalog.models import Replica, Scaling, Service
from console.journal.models import Decision
from console.journal.words import said
from console.looks import scalings
from console.wire import Gateways, Registration, ServiceCount
from scheduler.policy import Policy
from tests import factories
from tests.control.conftest import PaperFarm
from tests.control.test_tick import policy
from workers.control import looks
from workers.control.record import Recorder
from workers.control.tick import Tick


@pytest.fixture
def busy(farm: PaperFarm) -> PaperFarm:
    """A service of 2 to 6 copies, two of them ready."""
    for name in ("h1", "h2", "h3", "h4"):
        factories.host(name)
    factories.service(tier="hot", min_replicas=2, max_replicas=6, max_num_seqs=16, profile="online")
    farm.until(lambda: len(farm.ready("hotline")) == 2)
    return farm


def load(farm: PaperFarm, running: int, waiting: int) -> None:
    """So much in each ready engine."""
    for replica in farm.ready("hotline"):
        farm.hosts[replica.host.name].calls[replica.pk] = (running, waiting)
        farm.in_flight[replica.pk] = running + waiting


def known() -> Scaling:
    return Scaling.objects.get(service__name="hotline")


def test_two_looks_with_a_queue_raise_and_the_raise_is_remembered(busy: PaperFarm) -> None:
    for _ in range(15):
        busy.tick()
    load(busy, 16, 10)
    took = busy.until(lambda: Replica.objects.filter(reason="queue").count() == 4)
    assert 5 <= took <= 13, "two looks 5 s apart"
    row = known()
    assert (row.raised_to, row.raised_waiting) == (6, 20)
    made = Decision.objects.filter(reason="queue", refusal="").first()
    assert (made.numbers["running"], made.numbers["waiting"], made.numbers["desired"]) == (32, 20, 10)
    with translation.override("en"):
        told = said(made, {})
    assert told.verb == "Scale out: load"
    assert "32 calls running, 20 calls queued" in told.numbers
    busy.until(lambda: len(busy.ready("hotline")) == 6)
    assert Replica.objects.filter(service__name="hotline").count() == 6


def test_a_quiet_time_scales_in_and_the_next_raise_comes_back(busy: PaperFarm) -> None:
    policy(scale_in_s=120)
    load(busy, 16, 10)
    busy.until(lambda: len(busy.ready("hotline")) == 6)
    load(busy, 2, 0)
    took = busy.until(lambda: Decision.objects.filter(reason="surplus", verb="drain").exists(), 300)
    assert took >= 120
    assert Decision.objects.filter(reason="surplus", verb="drain").count() == 3  # 12 calls / 5.6
    assert known().came_from == 6
    draining = set(Replica.objects.filter(want="drained").values_list("pk", flat=True))
    for replica in draining:
        busy.in_flight.pop(replica)
        for host in busy.hosts.values():
            host.calls.pop(replica, None)
    busy.until(lambda: not Replica.objects.filter(want="drained").exists())

    load(busy, 8, 8)
    busy.until(lambda: known().raised_at is not None and known().came_from == 0)
    assert known().raised_to == 6
    busy.until(lambda: len(busy.ready("hotline")) == 6)


def test_another_leader_goes_on_where_the_last_one_looked(busy: PaperFarm) -> None:
    for _ in range(12):
        busy.tick()
    load(busy, 16, 10)
    while not (before := scalings()[Service.objects.get().pk]).over:
        busy.tick()
    busy.ticker = Tick(busy.token, Recorder(busy.token))
    took = busy.until(lambda: known().raised_to > 0)
    assert took <= 6, "one more look is enough"
    assert len(scalings()[Service.objects.get().pk].minutes) >= len(before.minutes)


def test_looks_are_a_row_each_five_seconds_and_nothing_for_services_of_one_copy(busy: PaperFarm) -> None:
    factories.service("single", tier="hot")
    busy.until(lambda: busy.ready("single"))
    rows = set()
    for _ in range(12):
        busy.tick()
        rows.add(known().looks)
    assert 2 <= len(rows) <= 4
    assert not Scaling.objects.filter(service__name="single").exists()


def test_a_person_who_saves_the_service_meanwhile_undoes_no_look(busy: PaperFarm) -> None:
    service = Service.objects.get(name="hotline")
    load(busy, 16, 10)
    busy.until(lambda: known().raised_to > 0)
    service.label = "热线"
    service.save()
    assert known().raised_to == 6


def test_in_a_pool_that_only_suggests_more_copies_come_and_fewer_wait_for_a_click(busy: PaperFarm) -> None:
    factories.pool().__class__.objects.update(mode="suggest")
    policy(scale_in_s=120)
    load(busy, 16, 10)
    busy.until(lambda: len(busy.ready("hotline")) == 6)
    load(busy, 1, 0)
    advised = Decision.objects.filter(reason="surplus", refusal="awaiting_approval")
    busy.until(advised.exists, 300)
    assert len(busy.ready("hotline")) == 6
    assert known().came_from == 0, "nothing went"


def test_a_lost_host_does_not_keep_a_service_from_growing(busy: PaperFarm) -> None:
    dark = busy.ready("hotline")[0].host.name
    busy.silent.add(dark)
    busy.until(lambda: len([r for r in busy.ready("hotline") if r.host.name != dark]) == 2, 120)
    for replica in busy.ready("hotline"):
        if replica.host.name != dark:
            busy.hosts[replica.host.name].calls[replica.pk] = (16, 10)
    busy.until(lambda: known().raised_to > 0)
    busy.until(lambda: len([r for r in busy.ready("hotline") if r.host.name != dark]) > 2)


def test_of_many_services_each_has_its_look_in_time_and_no_round_looks_at_all(token: int) -> None:
    rules, now = Policy(scale_look_s=5), 1_000_000.0
    services = [factories.service(f"s{i}", max_replicas=2) for i in range(400)]
    waits = Gateways(True, (Registration("gw", "b", now, 1, {}, {s.name: ServiceCount(held=1) for s in services}),))
    looked: dict[str, list[float]] = {service.name: [] for service in services}
    for second in range(15):
        world = state.world(now + second, waits, rules=rules)
        after = looks.take(world, rules, now + second)
        new = [name for name, one in after.services.items() if one.scaling and one.scaling.looked_at == now + second]
        assert len(new) <= 80
        for name in new:
            looked[name].append(second)
    assert all([b - a for a, b in pairwise(times)] == [5, 5] for times in looked.values())
    read = state.world(now + 14, waits, rules=rules)
    assert {name: one.scaling.looked_at for name, one in read.services.items() if one.scaling} == {
        name: now + times[-1] for name, times in looked.items()
    }
