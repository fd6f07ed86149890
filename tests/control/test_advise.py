"""Advice rows: opened once, refreshed, closed with the wish; in `suggest` a click lets the next plan act."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models import F

from console.catalog.models import Replica
from console.fleet.models import Card, Pool
from console.journal.models import Advice
from console.policies.models import PolicyValue
from console.state import moment
from scheduler.decision import Decision as Core
from scheduler.decision import Reason, Verb
from tests import factories
from tests.control.conftest import PaperFarm
from workers.control.advise import Adviser
from workers.control.record import Recorder
from workers.control.tick import Tick

pytestmark = pytest.mark.django_db


@pytest.fixture
def quick(db: None) -> None:
    factories.host("h1")
    factories.host("h2")
    for name, value in {"idle_unload_s": 60, "grace_s": 20, "min_loaded_s": 30, "half_empty_pct": 0}.items():
        PolicyValue.objects.create(name=name, value=value)


def an_idle_copy(farm: PaperFarm, mode: str) -> Replica:
    """One that is ready and nobody calls; the pool changes its mode once it is."""
    factories.service(tier="warm")
    factories.service("filler", tier="hot")
    farm.call("hotline")
    farm.until(lambda: farm.ready("hotline") and farm.ready("filler"))
    farm.held.clear()
    Pool.objects.update(mode=mode)
    return farm.ready("hotline")[0]


def standing() -> list[Advice]:
    return list(Advice.objects.filter(closed_at=None).order_by("id"))


def approve(row: Advice, now: float) -> None:
    until = moment(now) + timedelta(seconds=600)
    Advice.objects.filter(pk=row.pk).update(approved_at=moment(now), approved_until=until)


@pytest.mark.usefixtures("quick")
def test_an_observed_pool_gets_one_row_as_long_as_the_wish_stands(farm: PaperFarm) -> None:
    Pool.objects.update(mode="observe")
    factories.service()
    farm.call("hotline")
    for _ in range(5):
        farm.tick()
    (row,) = standing()
    assert (row.subject, row.verb, row.reason, row.told) == ("hotline#1", "start", "hold", "not_managed")
    assert row.service.name == "hotline"
    assert row.card is not None
    assert row.numbers["kv_granted_mib"] == 6144
    assert not Replica.objects.exists()
    farm.held.clear()
    for _ in range(13):
        farm.tick()
    row.refresh_from_db()
    assert (row.outcome, standing()) == ("gone", [])


@pytest.mark.usefixtures("quick")
def test_a_caller_in_an_observed_pool_is_never_told_loading(farm: PaperFarm) -> None:
    Pool.objects.update(mode="observe")
    factories.service()
    farm.call("hotline")
    told = farm.tick().services["hotline"]
    assert (told["state"], told["eta_s"]) == ("cold", None)
    assert told["refusal"]["code"] == "not_managed"


@pytest.mark.usefixtures("quick")
def test_it_is_refreshed_now_and_then_and_another_leader_goes_on_with_the_same_row(farm: PaperFarm) -> None:
    an_idle_copy(farm, "observe")
    farm.until(lambda: Advice.objects.filter(reason="idle").exists(), within=100)
    row = Advice.objects.get(reason="idle")
    idle_s = row.numbers["idle_s"]
    farm.ticker = Tick(farm.token, Recorder(farm.token))
    for _ in range(70):
        farm.tick()
    after = Advice.objects.get(reason="idle")
    assert after.pk == row.pk
    assert 0 < after.numbers["idle_s"] - idle_s <= 70
    assert after.refreshed_at > row.refreshed_at
    assert Replica.objects.filter(drain_at__isnull=False).count() == 0


@pytest.mark.usefixtures("quick")
def test_in_suggest_a_taking_waits_for_a_click_and_then_goes_its_whole_way(farm: PaperFarm) -> None:
    copy = an_idle_copy(farm, "suggest")
    farm.until(lambda: standing(), within=100)
    for _ in range(30):
        farm.tick()
    (row,) = standing()
    assert (row.subject, row.verb, row.told) == (f"replica {copy.pk}", "drain", "awaiting_approval")
    copy.refresh_from_db()
    assert (copy.want, copy.drain_at) == ("ready", None)
    approve(row, farm.now)
    farm.tick()
    copy.refresh_from_db()
    assert copy.drain_at is not None
    row.refresh_from_db()
    assert row.outcome == "done"
    farm.until(lambda: Replica.objects.filter(pk=copy.pk, phase="asleep").exists())
    assert standing() == [], "the steps that finish it need no further click"


@pytest.mark.usefixtures("quick")
def test_what_was_approved_and_lapsed_is_asked_anew(farm: PaperFarm) -> None:
    copy = an_idle_copy(farm, "suggest")
    farm.until(lambda: standing(), within=100)
    (row,) = standing()
    Advice.objects.filter(pk=row.pk).update(approved_at=moment(farm.now - 99), approved_until=moment(farm.now - 1))
    for _ in range(3):
        farm.tick()
    copy.refresh_from_db()
    assert copy.drain_at is None


@pytest.mark.usefixtures("quick")
def test_an_approval_does_nothing_once_the_plan_wants_it_no_more(farm: PaperFarm) -> None:
    """Revalidated by the next plan: a call came between the advice and the click."""
    copy = an_idle_copy(farm, "suggest")
    farm.until(lambda: standing(), within=100)
    (row,) = standing()
    farm.called["hotline"] = farm.now + 1
    farm.tick()
    approve(row, farm.now)
    for _ in range(13):
        farm.tick()
    copy.refresh_from_db()
    row.refresh_from_db()
    assert (copy.drain_at, row.outcome) == (None, "gone")


@pytest.mark.usefixtures("quick")
def test_an_approval_means_nothing_where_the_pool_only_observes(farm: PaperFarm) -> None:
    copy = an_idle_copy(farm, "observe")
    farm.until(lambda: standing(), within=100)
    approve(standing()[0], farm.now)
    for _ in range(5):
        farm.tick()
    copy.refresh_from_db()
    assert copy.drain_at is None


@pytest.mark.usefixtures("quick")
def test_in_suggest_a_giving_acts_at_once(farm: PaperFarm) -> None:
    Pool.objects.update(mode="suggest")
    factories.service()
    farm.call("hotline")
    assert farm.until(lambda: farm.ready("hotline")) < 15
    assert not Advice.objects.exists()


def test_a_giving_that_needs_a_taking_waits_with_it_and_follows_its_click(farm: PaperFarm) -> None:
    factories.host("h1", cards=1)
    PolicyValue.objects.create(name="min_loaded_s", value=10)
    factories.service("idle", tier="cold", weights_mib=50000)
    factories.service("hotline", weights_mib=50000)
    farm.call("idle")
    farm.until(lambda: farm.ready("idle"))
    farm.held.clear()
    for _ in range(20):
        farm.tick()
    Pool.objects.update(mode="suggest")
    farm.call("hotline")
    told = farm.tick().services
    assert told["hotline"]["refusal"]["code"] == "awaiting_approval"
    assert told["hotline"]["state"] == "cold"
    assert told["idle"]["refusal"] is None
    (row,) = standing()
    assert (row.service.name, row.reason, row.numbers["room_for"]) == ("idle", "room", "hotline")
    approve(row, farm.now)
    farm.until(lambda: farm.ready("hotline"), within=60)
    assert not farm.ready("idle")


def test_a_click_that_comes_after_the_caller_was_sent_away_serves_the_next(farm: PaperFarm) -> None:
    """Told at once, nobody waits while an operator decides: the advice stands for when the caller is back."""
    factories.host("h1", cards=1)
    PolicyValue.objects.create(name="min_loaded_s", value=10)
    factories.service("idle", tier="cold", weights_mib=50000)
    factories.service("hotline", weights_mib=50000)
    farm.call("idle")
    farm.until(lambda: farm.ready("idle"))
    farm.held.clear()
    for _ in range(20):
        farm.tick()
    Pool.objects.update(mode="suggest")
    farm.call("hotline")
    assert farm.tick().services["hotline"]["refusal"]["code"] == "awaiting_approval"
    farm.held.clear()
    for _ in range(100):
        farm.tick()
    (row,) = [one for one in standing() if one.reason == "room"]
    approve(row, farm.now)
    farm.tick()
    assert farm.ready("idle"), "nobody waits: nobody has to go"
    farm.call("hotline")
    told = farm.tick().services["hotline"]
    assert (told["state"], told["refusal"]) == ("loading", None)
    farm.until(lambda: farm.ready("hotline"), within=60)
    assert not farm.ready("idle")


@pytest.mark.usefixtures("quick")
def test_a_pool_that_comes_to_act_leaves_no_row_behind(farm: PaperFarm) -> None:
    copy = an_idle_copy(farm, "suggest")
    farm.until(lambda: standing(), within=100)
    Pool.objects.update(mode="enforce")
    farm.tick()
    copy.refresh_from_db()
    assert copy.drain_at is not None
    for _ in range(13):
        farm.tick()
    assert standing() == []


@pytest.mark.usefixtures("quick")
def test_a_farm_that_acts_pays_no_query_for_advice(farm: PaperFarm, django_assert_num_queries: object) -> None:
    farm.tick()
    with django_assert_num_queries(0):  # type: ignore[operator]
        farm.ticker.recorder.adviser.begin(farm.outcome.world, farm.now)  # type: ignore[union-attr]


@pytest.mark.usefixtures("quick")
def test_only_the_pilot_moves(farm: PaperFarm) -> None:
    """The same wish in two pools: advised in one, done in the other."""
    pilot = factories.pool("pilot", purpose="pilot", mode="enforce")
    Pool.objects.filter(name="default").update(mode="observe")
    Card.objects.filter(host__name="h1").update(pool=pilot)
    factories.service("in", tier="hot").pools.add(pilot)
    factories.service("out", tier="hot").pools.add(Pool.objects.get(name="default"))
    farm.until(lambda: farm.ready("in"))
    assert {row.service.name for row in standing()} == {"out"}
    assert set(Replica.objects.values_list("service__name", flat=True)) == {"in"}


@pytest.mark.usefixtures("quick")
def test_many_idle_copies_open_as_many_rows_with_a_handful_of_queries(
    farm: PaperFarm, django_assert_max_num_queries: object
) -> None:
    """A pool that comes to observe: one row each, written together."""
    copy = an_idle_copy(farm, "observe")
    world = farm.outcome.world  # type: ignore[union-attr]
    seen = world.replicas[copy.pk]
    many = {n: replace(seen, id=n) for n in range(1000, 1200)}
    world = replace(world, replicas=many, pools={n: replace(p, mode="observe") for n, p in world.pools.items()})
    adviser = Adviser()
    adviser.begin(world, farm.now)
    for n in many:
        assert adviser.why_not(Core(Verb.DRAIN, "hotline", Reason.IDLE, n), world, farm.now) == "not_managed"
    with django_assert_max_num_queries(10):  # type: ignore[operator]
        adviser.end(world, farm.now)
    assert Advice.objects.filter(closed_at=None).count() == 200
    adviser.begin(world, farm.now + 1)
    for n in many:
        adviser.why_not(Core(Verb.DRAIN, "hotline", Reason.IDLE, n), world, farm.now + 1)
    with django_assert_max_num_queries(0):  # type: ignore[operator]
        adviser.end(world, farm.now + 1)


@pytest.mark.usefixtures("quick")
def test_rows_opened_together_are_refreshed_apart(farm: PaperFarm) -> None:
    copy = an_idle_copy(farm, "observe")
    world = farm.outcome.world  # type: ignore[union-attr]
    many = {n: replace(world.replicas[copy.pk], id=n) for n in range(1000, 1120)}
    world = replace(world, replicas=many, pools={n: replace(p, mode="observe") for n, p in world.pools.items()})
    adviser, most = Adviser(), 0
    for second in range(130):
        adviser.begin(world, farm.now + second)
        for n in many:
            adviser.why_not(Core(Verb.DRAIN, "hotline", Reason.IDLE, n), world, farm.now + second)
        most = max(most, len(adviser.due))
        adviser.end(world, farm.now + second)
    assert 0 < most <= 4
    assert not Advice.objects.filter(refreshed_at=F("opened_at")).exists()
