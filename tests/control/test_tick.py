"""Whole rounds on a paper farm: from a held caller to a route, and back to free memory."""

from __future__ import annotations

import pytest
from django.db.models import Q

from console.catalog.models import Replica, Service
from console.fleet.models import Card, Host, Pool
from console.journal.models import Decision
from console.policies.models import PolicyValue
from console.state import moment
from tests import factories
from tests.control.conftest import PaperFarm
from workers.control import lease


def policy(**values: float) -> None:
    for name, value in values.items():
        PolicyValue.objects.update_or_create(name=name, defaults={"value": value})


@pytest.fixture
def two_hosts(db: None) -> None:
    factories.host("h1")
    factories.host("h2")


@pytest.mark.usefixtures("two_hosts")
def test_a_held_caller_gets_a_replica(farm: PaperFarm) -> None:
    factories.service()
    farm.tick()
    assert farm.outcome is not None
    assert farm.outcome.services["hotline"]["state"] == "cold"
    farm.call("hotline")
    told = farm.tick().services["hotline"]
    assert told["state"] == "loading"
    assert told["eta_s"] > 0
    assert told["low_s"] is None, "a first load has no lower bound"
    took = farm.until(lambda: farm.ready("hotline"))
    assert 9 <= took <= 13
    assert farm.outcome.services["hotline"]["state"] == "ready"
    assert [r["id"] for r in farm.outcome.services["hotline"]["replicas"]] == [farm.ready("hotline")[0].pk]
    start = Decision.objects.get(verb="start")
    assert (start.reason, start.card.host.name in ("h1", "h2"), start.fence) == ("hold", True, farm.token)


@pytest.mark.usefixtures("two_hosts")
def test_one_load_serves_all_who_wait(farm: PaperFarm) -> None:
    factories.service()
    farm.call("hotline", callers=40)
    farm.until(lambda: farm.ready("hotline"))
    assert Replica.objects.count() == 1


@pytest.mark.usefixtures("two_hosts")
def test_an_idle_warm_replica_is_announced_then_put_asleep_and_wakes_for_a_call(farm: PaperFarm) -> None:
    policy(idle_unload_s=60, grace_s=20, min_loaded_s=30, half_empty_pct=0)
    factories.service(tier="warm")
    factories.service("filler", tier="hot")
    farm.call("hotline")
    farm.until(lambda: farm.ready("hotline") and farm.ready("filler"))
    farm.held.clear()
    farm.called["hotline"] = farm.now
    farm.until(lambda: Replica.objects.filter(drain_at__isnull=False).exists(), within=120)
    assert farm.outcome is not None
    assert farm.outcome.services["hotline"]["notice"]
    assert farm.outcome.services["hotline"]["notice_at"] == pytest.approx(farm.now + 20, abs=3)
    assert farm.outcome.services["hotline"]["replicas"], "routed while the notice stands"
    farm.until(lambda: Replica.objects.filter(service__name="hotline", phase="asleep").exists())
    verbs = list(
        Decision.objects.filter(service__name="hotline", refusal="").order_by("id").values_list("verb", flat=True)
    )
    assert verbs == ["start", "drain", "drain", "sleep"]
    farm.call("hotline")
    assert farm.until(lambda: farm.ready("hotline")) <= 6
    assert Replica.objects.filter(service__name="hotline").count() == 1


@pytest.mark.usefixtures("two_hosts")
def test_a_call_in_grace_calls_the_reclaim_off(farm: PaperFarm) -> None:
    policy(idle_unload_s=60, grace_s=30, min_loaded_s=30, half_empty_pct=0)
    factories.service(tier="cold")
    factories.service("filler", tier="hot")
    farm.call("hotline")
    farm.until(lambda: farm.ready("hotline"))
    farm.held.clear()
    farm.until(lambda: Replica.objects.filter(drain_at__isnull=False).exists(), within=120)
    farm.called["hotline"] = farm.now + 1
    farm.tick()
    farm.tick()
    row = Replica.objects.get(service__name="hotline")
    assert (row.want, row.drain_at) == ("ready", None)
    assert Decision.objects.filter(verb="wake", reason="call").count() == 1


@pytest.mark.usefixtures("two_hosts")
def test_a_drain_waits_for_every_gateway_and_for_the_door(farm: PaperFarm) -> None:
    policy(idle_unload_s=30, grace_s=0, min_loaded_s=0, half_empty_pct=0)
    factories.service(tier="cold")
    factories.service("filler", tier="hot")
    farm.call("hotline")
    farm.until(lambda: farm.ready("hotline"))
    farm.held.clear()
    row = farm.ready("hotline")[0]
    farm.until(lambda: Replica.objects.filter(pk=row.pk, want="drained").exists(), within=120)

    def stopped() -> bool:
        return Replica.objects.filter(pk=row.pk, want="stopped").exists()

    farm.routes_version = lease.route_version() - 1  # the gateway has not let go yet
    for _ in range(5):
        farm.tick()
    assert not stopped()
    farm.routes_version = None
    farm.known = False  # the table is too young to mean anything
    for _ in range(5):
        farm.tick()
    assert not stopped()
    farm.known = True
    paper = farm.hosts[row.host.name]
    paper.door[row.pk] = 1  # a gateway that lost Redis still shows here
    for _ in range(5):
        farm.tick()
    assert not stopped()
    paper.door[row.pk] = 0
    farm.until(stopped, within=5)
    farm.until(lambda: Replica.objects.filter(pk=row.pk, ended_at__isnull=False).exists())


@pytest.mark.usefixtures("two_hosts")
def test_a_crash_is_unrouted_at_once_and_tried_again(farm: PaperFarm) -> None:
    factories.service(tier="hot")
    farm.until(lambda: farm.ready("hotline"))
    row = farm.ready("hotline")[0]
    before = lease.route_version()
    farm.hosts[row.host.name].crash(row.pk, farm.now)
    farm.tick()
    assert farm.outcome is not None
    assert farm.outcome.services["hotline"]["replicas"] == []
    assert lease.route_version() == before + 1
    assert farm.until(lambda: farm.ready("hotline")) <= 15


@pytest.mark.usefixtures("two_hosts")
def test_after_three_cards_the_service_is_down_and_callers_are_told(farm: PaperFarm) -> None:
    factories.service()
    for name in ("h1", "h2"):
        farm.hosts[name].fail.add("hotline")
    farm.call("hotline")
    farm.until(lambda: farm.outcome.services["hotline"]["refusal"], within=400)  # type: ignore[union-attr]
    assert farm.outcome is not None
    assert farm.outcome.services["hotline"]["refusal"]["code"] == "load_failed"
    tried = {card for host in farm.hosts.values() for _, _, card in host.starts}
    assert len(tried) == 3
    assert Service.objects.get().failures


@pytest.mark.usefixtures("two_hosts")
def test_a_silent_host_is_told_nothing_and_its_replicas_are_rebuilt_elsewhere(farm: PaperFarm) -> None:
    factories.service(tier="hot")
    farm.until(lambda: farm.ready("hotline"))
    lost = farm.ready("hotline")[0].host.name
    farm.silent.add(lost)
    for _ in range(20):
        farm.tick()
    assert farm.outcome is not None
    assert lost not in {want.host for want in farm.outcome.wants}
    other = next(name for name in ("h1", "h2") if name != lost)
    farm.until(lambda: Replica.objects.filter(host__name=other, phase="ready").exists(), within=90)


@pytest.mark.usefixtures("two_hosts")
def test_a_pool_that_is_only_observed_gets_advice_and_its_callers_are_told(farm: PaperFarm) -> None:
    Pool.objects.update(mode="observe")
    factories.service()
    farm.call("hotline")
    for _ in range(5):
        farm.tick()
    assert not Replica.objects.exists()
    assert farm.outcome is not None
    assert farm.outcome.services["hotline"]["refusal"]["code"] == "not_managed"
    assert Decision.objects.filter(refusal="not_managed").count() == 1, "a standing advice is one row"


@pytest.mark.usefixtures("two_hosts")
def test_every_change_of_a_want_raises_its_hosts_generation(farm: PaperFarm) -> None:
    factories.service()
    farm.tick()  # a new leader tells everybody
    farm.call("hotline")
    farm.tick()
    assert farm.outcome is not None
    host = Replica.objects.get().host
    assert host.want_generation == 1
    assert farm.outcome.changed == {host.name}
    farm.tick()
    assert farm.outcome.changed == set()


@pytest.mark.usefixtures("two_hosts")
def test_a_decision_that_finds_another_world_is_dropped(farm: PaperFarm) -> None:
    from scheduler.decision import Decision as Core
    from scheduler.decision import Reason, Verb

    factories.service(tier="hot")
    farm.until(lambda: farm.ready("hotline"))
    row = farm.ready("hotline")[0]
    assert farm.outcome is not None
    drain = Core(Verb.DRAIN, "hotline", Reason.ROOM, replica=row.pk)
    Replica.objects.filter(pk=row.pk).update(want="drained")  # somebody was quicker
    recorded = farm.ticker.recorder.record([drain], farm.outcome.world, farm.now)
    assert recorded.done == 0
    assert not Decision.objects.filter(verb="drain").exists()


@pytest.mark.usefixtures("two_hosts")
def test_foreign_memory_is_never_planned_over(farm: PaperFarm) -> None:
    for name in ("h1", "h2"):
        for card in farm.hosts[name].cards:
            farm.hosts[name].foreign[card] = 70000
    factories.service()
    farm.call("hotline")
    farm.tick()
    assert not Replica.objects.exists()
    assert farm.outcome is not None
    assert farm.outcome.services["hotline"]["refusal"]["code"] == "no_capacity"
    farm.hosts["h1"].foreign.clear()
    assert farm.until(lambda: Replica.objects.exists()) <= 2


@pytest.mark.usefixtures("two_hosts")
def test_swaps_of_the_last_minutes_are_in_the_world(farm: PaperFarm) -> None:
    service = factories.service()
    Decision.objects.create(
        at=moment(farm.now - 10), verb="drain", reason="room", service=service, numbers={"room_for": "other"}
    )
    Decision.objects.create(at=moment(farm.now - 9999), verb="drain", reason="room", service=service, numbers={})
    farm.tick()
    assert farm.outcome is not None
    assert [(swap.came, swap.went) for swap in farm.outcome.world.swaps] == [("other", "hotline")]


@pytest.mark.usefixtures("two_hosts")
def test_it_plans_with_the_policy_that_people_set(farm: PaperFarm) -> None:
    policy(buffer_pct=30, unknown_field=1)
    factories.service()
    farm.call("hotline")
    farm.tick()
    assert Replica.objects.count() == 1
    assert Card.objects.count() == Host.objects.count() * 2
    assert not Replica.objects.filter(~Q(kv_granted_mib=6144)).exists()


@pytest.mark.usefixtures("two_hosts")
def test_what_is_told_of_a_service_that_nobody_has_follows_its_row_and_the_policy(farm: PaperFarm) -> None:
    factories.service("cold", tier="cold", hold_cap_s=20)
    other = factories.tenant("nengyuan")
    told = farm.tick().services["cold"]
    assert (told["state"], told["replicas"], told["room"], told["notice"]) == ("cold", [], None, False)
    assert (told["label"], told["audience"], told["hold_cap_s"]) == ("cold", ["wuliu"], 20.0)
    assert farm.tick().services["cold"] is told, "the same as long as nothing about it is another"
    Service.objects.update(label="renamed", audience="named", max_prompt_tokens=77)
    Service.objects.get().audience_tenants.add(other)
    policy(hold_own_max_s=10)
    told = farm.tick().services["cold"]
    assert (told["label"], told["audience"], told["hold_cap_s"]) == ("renamed", ["nengyuan", "wuliu"], 10.0)
    assert told["max_prompt_tokens"] == 77
    farm.call("cold")
    assert farm.tick().services["cold"]["state"] == "loading"
