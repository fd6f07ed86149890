"""A button pressed on a page, through whole rounds of the loop: obeyed, refused or lapsed, and its row closed."""

from __future__ import annotations

from typing import Any

import pytest

from console.catalog.models import Order, Replica
from console.fleet.models import Pool
from console.journal.models import Decision
from console.state import moment
from scheduler.world import Act
from tests import factories
from tests.control.conftest import PaperFarm
from tests.control.test_tick import policy

pytestmark = pytest.mark.usefixtures("two_hosts")


@pytest.fixture
def two_hosts(db: None) -> None:
    factories.host("h1")
    factories.host("h2")


def press(farm: PaperFarm, act: Act, service: Any, replica: Replica | None = None, **more: Any) -> Order:
    fields = {"at": moment(farm.now), "until": moment(farm.now + 600), **more}
    return Order.objects.create(service=service, replica=replica, act=act, **fields)


def outcome(order: Order) -> str:
    order.refresh_from_db()
    assert bool(order.outcome) == (order.done_at is not None)
    return order.outcome


def loaded(farm: PaperFarm, **fields: Any) -> Replica:
    service = factories.service(**fields)
    press(farm, Act.PRELOAD, service)
    farm.until(lambda: farm.ready(service.name))
    return farm.ready(service.name)[0]


def test_a_preload_loads_a_cold_service_and_its_order_is_done(farm: PaperFarm) -> None:
    service = factories.service()
    order = press(farm, Act.PRELOAD, service)
    farm.tick()
    row = Replica.objects.get()
    assert (row.want, row.reason) == ("ready", "operator")
    farm.tick()
    assert outcome(order) == "done"
    assert not Decision.objects.exclude(refusal="").exists(), "that it is done is nothing to explain"
    farm.until(lambda: farm.ready("hotline"))
    assert Decision.objects.get(verb="start").reason == "operator"


def test_a_preload_that_fits_nowhere_is_refused_with_its_reason(farm: PaperFarm) -> None:
    order = press(farm, Act.PRELOAD, factories.service(weights_mib=90000))
    farm.tick()
    assert outcome(order) == "short_of_memory"
    assert Decision.objects.get().refusal == "short_of_memory"
    farm.tick()
    assert Decision.objects.count() == 1


def test_a_drain_ends_its_order_in_the_same_round_and_the_memory_comes_back(farm: PaperFarm) -> None:
    policy(load_init_s=1)
    row = loaded(farm, tier="cold")
    order = press(farm, Act.DRAIN, row.service, row)
    farm.tick()
    assert outcome(order) == "done"
    drain = Decision.objects.get(verb="drain")
    assert (drain.reason, drain.replica_id, drain.fence) == ("operator", row.pk, farm.token)
    farm.until(lambda: Replica.objects.filter(pk=row.pk, ended_at__isnull=False).exists())
    assert farm.outcome is not None
    assert farm.outcome.services["hotline"]["state"] == "cold"


def test_a_stop_waits_for_the_calls_in_flight(farm: PaperFarm) -> None:
    row = loaded(farm)
    farm.in_flight[row.pk] = 2
    order = press(farm, Act.STOP, row.service, row)
    for _ in range(40):
        farm.tick()
    row.refresh_from_db()
    assert (row.want, outcome(order)) == ("drained", "")
    farm.in_flight.clear()
    farm.until(lambda: outcome(order) == "done", within=5)
    row.refresh_from_db()
    assert (row.want, row.force) == ("stopped", False)


def test_a_forced_stop_cuts_at_the_bound_and_says_so_to_the_host(farm: PaperFarm) -> None:
    policy(drain_max_s=20)
    row = loaded(farm)
    farm.in_flight[row.pk] = 2
    order = press(farm, Act.STOP, row.service, row, force=True)
    took = farm.until(lambda: outcome(order) == "done")
    assert 20 <= took <= 24
    row.refresh_from_db()
    assert (row.want, row.force) == ("stopped", True)


def test_a_notice_taken_back_by_an_operator_is_not_given_again_at_once(farm: PaperFarm) -> None:
    policy(idle_unload_s=30, grace_s=20, min_loaded_s=10, half_empty_pct=0, left_alone_s=60)
    factories.service("filler", tier="hot")
    row = loaded(farm, tier="cold")
    farm.until(lambda: Replica.objects.filter(pk=row.pk, drain_at__isnull=False).exists(), within=90)
    order = press(farm, Act.KEEP, row.service, row)
    farm.tick()
    assert outcome(order) == "done"
    for _ in range(50):
        farm.tick()
    row.refresh_from_db()
    assert (row.want, row.drain_at) == ("ready", None)
    farm.until(lambda: Replica.objects.filter(pk=row.pk, drain_at__isnull=False).exists(), within=30)


def test_a_sleeper_wakes_and_stopping_all_empties_the_service(farm: PaperFarm) -> None:
    row = loaded(farm, tier="warm")
    press(farm, Act.DRAIN, row.service, row)
    farm.until(lambda: Replica.objects.filter(pk=row.pk, phase="asleep").exists())
    wake = press(farm, Act.WAKE, row.service, row)
    assert farm.until(lambda: farm.ready("hotline")) <= 6
    assert outcome(wake) == "done"
    stop = press(farm, Act.STOP, row.service)
    farm.until(lambda: not Replica.objects.filter(ended_at=None).exists())
    assert outcome(stop) == "done"


def test_an_order_lapses(farm: PaperFarm) -> None:
    row = loaded(farm)
    order = press(farm, Act.DRAIN, row.service, row, until=moment(farm.now))
    farm.tick()
    assert outcome(order) == "lapsed"
    assert farm.ready("hotline")


@pytest.mark.parametrize("act", [Act.DRAIN, Act.STOP])
def test_in_a_pool_that_is_only_observed_a_button_is_advice(farm: PaperFarm, act: Act) -> None:
    row = loaded(farm)
    Pool.objects.update(mode="observe")
    order = press(farm, act, row.service, row)
    farm.tick()
    assert outcome(order) == "not_managed"
    assert farm.ready("hotline")


def test_an_order_that_finds_another_world_stays_open(farm: PaperFarm) -> None:
    row = loaded(farm)
    order = press(farm, Act.DRAIN, row.service, row)
    assert farm.outcome is not None
    world = farm.outcome.world
    from scheduler.decision import Decision as Core
    from scheduler.decision import Reason, Verb

    Replica.objects.filter(pk=row.pk).update(want="drained")  # somebody was quicker
    drain = Core(Verb.DRAIN, "hotline", Reason.OPERATOR, row.pk, order=order.pk)
    assert farm.ticker.recorder.record([drain], world, farm.now).done == 0
    assert outcome(order) == ""


def test_a_copy_told_to_stop_in_the_round_in_which_it_became_ready_is_not_waited_for_forever(farm: PaperFarm) -> None:
    """No routes ever named it, so that no change of them tells that gateways have let go of it."""
    press(farm, Act.PRELOAD, factories.service("first"))
    took = int(farm.until(lambda: farm.ready("first")))
    second = factories.service("second")
    press(farm, Act.PRELOAD, second)
    for _ in range(took - 1):
        farm.tick()
    (copy,) = Replica.objects.filter(service=second)
    assert copy.phase == "starting"
    stop = press(farm, Act.STOP, second)
    farm.tick()
    copy.refresh_from_db()
    assert (copy.phase, copy.want) == ("ready", "drained")
    farm.until(lambda: outcome(stop), within=30)
    copy.refresh_from_db()
    assert copy.ended_at is not None
