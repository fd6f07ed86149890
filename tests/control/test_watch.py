"""Notices over real rows: who is about to go, full pools, swapping, regrets; and what reclaims cost, day by day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from console.catalog.models import Replica, Service
from console.fleet.models import Card, Pool
from console.journal.models import Decision, Event, Notice, ReclaimDay
from console.policies.models import PolicyValue
from console.state import moment
from console.usage.models import HourlyCalls
from console.wire import Gateways, Registration
from scheduler.decision import Decision as Core
from scheduler.decision import Reason, Verb
from scheduler.expectation import Forecast
from scheduler.world import Phase
from tests import factories
from tests.scheduler.build import NOW, a_card, a_replica, a_service, a_world
from workers.control import noticed, reclaims, roll_up, tiers, watch
from workers.control.noticed import Said

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 2, 12, tzinfo=timezone.get_fixed_timezone(480))


def gateways(now: float) -> Gateways:
    return Gateways(True, (Registration("gw1", "b", now, 10**9, {}, {}),))


def look(now: datetime = NOON) -> list[Notice]:
    watch.run(now.timestamp(), gateways(now.timestamp()))
    return list(Notice.objects.filter(closed_at=None).order_by("id"))


@pytest.fixture
def idle(db: None) -> Replica:
    """A copy that nobody called for 20 minutes, on a card that others need."""
    host = factories.host("h1", cards=1, seen_at=NOON)
    PolicyValue.objects.create(name="half_empty_pct", value=0)
    factories.service("other")
    copy = factories.replica(factories.service(tier="cold"), host.cards.get(), phase_attempt=1, door_in_flight=0)
    before = NOON - timedelta(seconds=1000)
    Replica.objects.filter(pk=copy.pk).update(
        loaded_at=before, last_call_at=before, want_since=before, phase_since=before
    )
    return copy


def test_its_people_are_told_once_before_it_goes(idle: Replica) -> None:
    (row,) = look()
    assert (row.kind, row.service.name, row.replica_id) == ("reclaim", "hotline", idle.pk)
    assert abs(row.numbers["at"] - (NOON.timestamp() + 500)) <= 30
    assert row.numbers["held_mib"] == 14541 + 600 + 1024 + 6144
    assert row.numbers["noticed"] == 0
    assert look(NOON + timedelta(seconds=10)) == [row]
    assert Notice.objects.count() == 1


def test_a_call_closes_the_notice(idle: Replica) -> None:
    look()
    Replica.objects.filter(pk=idle.pk).update(last_call_at=NOON)
    assert look(NOON + timedelta(seconds=5)) == []
    assert Notice.objects.get().closed_at is not None


def test_a_standing_notice_is_the_same_row_with_its_instant(idle: Replica) -> None:
    (row,) = look()
    Replica.objects.filter(pk=idle.pk).update(drain_at=NOON + timedelta(seconds=240), reason="idle")
    (after,) = look()
    assert after.pk == row.pk
    assert after.numbers["noticed"] == 1


def test_a_full_pool_names_who_would_go_first(idle: Replica) -> None:
    Card.objects.update(free_mib=5000)
    kinds = {row.kind: row for row in look()}
    assert kinds["waterline"].pool.name == "default"
    assert kinds["waterline"].numbers["first"] == ["hotline"]
    assert kinds["waterline"].numbers["used_pct"] >= 85


def test_the_number_of_resident_slots_is_kept_with_the_pool(idle: Replica) -> None:
    """One card of 81,920 takes three claims of 22,309 by its room of 74,766."""
    for n in range(5):
        calls(factories.service(f"more-{n}").name, 9, NOON - timedelta(hours=2))
    look()
    level = Pool.objects.get(name="default").level
    assert (level["n"], level["awake"], level["services"]) == (3, 1, 6)
    with_it = Pool.objects.get(name="default")
    look(NOON + timedelta(seconds=30))
    assert Pool.objects.get(name="default").level == with_it.level


def loaded(service: Service, times: int, ago_s: int = 60) -> None:
    for n in range(times):
        at = NOON - timedelta(seconds=ago_s * (n + 1))
        Event.objects.create(at=at, phase="ready", service=service, seconds=9, how="start")


def calls(service: str, count: int, hour: datetime) -> None:
    HourlyCalls.objects.create(hour=hour, service=service, tenant="wuliu", key_id=1, calls=count)


def test_swapping_is_found_with_remedies_and_their_prices(db: None) -> None:
    factories.host("h1", cards=1, seen_at=NOON)
    Card.objects.update(price_fen_h=2000)
    service = factories.service(tier="cold")
    loaded(service, 20)
    calls("hotline", 30, NOON - timedelta(hours=1))
    (row,) = look()
    assert row.kind == "thrash"
    assert (row.numbers["loads"], row.numbers["calls"]) == (20, 30)
    assert row.numbers["tier_to"] == "warm"
    assert 0 < row.numbers["tier_fen_h"] < row.numbers["slot_fen_h"]


def test_calls_that_anti_swap_made_wait_count_and_other_waits_do_not(db: None) -> None:
    factories.host("h1", cards=1, seen_at=NOON)
    service = factories.service()
    values: dict[str, Any] = {"verb": "start", "reason": "hold", "service": service, "at": NOON - timedelta(minutes=1)}
    for numbers in ({"rest_s": 100.0}, {"rest_s": 3.0}, {"wait_s": 9}):
        Decision.objects.create(refusal="not_now", numbers=numbers, **values)
    Decision.objects.create(refusal="anti_swap", numbers={}, **values)
    Decision.objects.create(refusal="no_capacity", numbers={}, **values)
    hour = watch.hours(NOON.timestamp(), watch.state.policy())["hotline"]
    assert (hour.loads, hour.waits, hour.calls) == (0, 3, 0.0)


def test_the_last_hours_calls_weigh_the_hour_before_by_what_is_left_of_it(db: None) -> None:
    now = NOON + timedelta(minutes=15)
    calls("a", 40, NOON - timedelta(hours=1))
    calls("a", 8, NOON)
    calls("b", 8, NOON)
    assert watch._calls(["a"], now.timestamp()) == ({"a": pytest.approx(38.0)}, {"a": 0.0})


def test_calls_that_joined_a_wait_count_each(db: None) -> None:
    """One row a standing wish, five calls in it, one of which the load answered as its first."""
    factories.host("h1", cards=1, seen_at=NOON)
    service = factories.service()
    loaded(service, 1)
    at = NOON - timedelta(minutes=5)
    Decision.objects.create(
        at=at, verb="start", reason="hold", service=service, refusal="not_now", numbers={"rest_s": 99.0}
    )
    calls("hotline", 6, NOON)
    HourlyCalls.objects.update(cold=5)
    hour = watch.hours(NOON.timestamp(), watch.state.policy())["hotline"]
    assert (hour.loads, hour.waits, hour.calls) == (1, 4, 6.0)


def test_many_calls_a_load_are_no_swapping(db: None) -> None:
    factories.host("h1", cards=1, seen_at=NOON)
    loaded(factories.service(tier="cold"), 5)
    calls("hotline", 300, NOON - timedelta(hours=1))
    assert look() == []


def test_ten_regrets_a_week_propose_a_longer_idle_time(db: None) -> None:
    service, other = factories.service(), factories.service("other")
    for back in range(5):
        day = NOON.date() - timedelta(days=back)
        ReclaimDay.objects.create(day=day, service=service, reclaims=9, regrets=2)
        ReclaimDay.objects.create(day=day, service=other, reclaims=9, regrets=1)
    (row,) = look()
    assert (row.kind, row.service, row.numbers["regrets"]) == ("regret", service, 10)
    assert row.numbers["longer_idle_s"] > 1200 + 899


def test_another_looker_writes_no_second_row(db: None) -> None:
    factories.service()
    said = [Said("thrash", "hotline", "hotline"), Said("thrash", "gone", "gone")]
    assert noticed.sync(["thrash"], said, NOON.timestamp()) == 1
    assert noticed._open(said[:1], NOON.timestamp()) == 0, "as a second control would that read before the first wrote"
    assert Notice.objects.count() == 1


def test_other_kinds_are_left_alone(db: None) -> None:
    noticed.sync(["tiers"], [Said("tiers", "site")], NOON.timestamp())
    assert [row.kind for row in look()] == ["tiers"]


# What reclaims cost


def given(service: Service, at: datetime, verb: str = "sleep", reason: str = "idle", refusal: str = "") -> None:
    Decision.objects.create(at=at, verb=verb, reason=reason, service=service, refusal=refusal, numbers={})


def became_ready(service: Service, at: datetime) -> None:
    Event.objects.create(at=at, phase="ready", service=service, seconds=9, how="wake")


def test_reclaims_and_regrets_of_a_day_are_counted_from_the_journal_and_never_twice(db: None) -> None:
    service = factories.service()
    for hour in (1, 3, 5):
        given(service, NOON - timedelta(hours=hour))
    given(service, NOON - timedelta(hours=5), verb="drain")
    given(service, NOON - timedelta(hours=5), reason="operator")
    given(service, NOON - timedelta(hours=5), refusal="awaiting_approval")
    became_ready(service, NOON - timedelta(hours=1) + timedelta(seconds=600))
    became_ready(service, NOON - timedelta(hours=3) + timedelta(seconds=1000))
    for _ in range(2):
        reclaims.run(NOON)
    row = ReclaimDay.objects.get()
    assert (row.reclaims, row.regrets, row.harmful, row.day) == (3, 1, 0, timezone.localtime(NOON).date())


def test_a_regret_after_midnight_still_belongs_to_the_day_of_its_reclaim(db: None) -> None:
    service = factories.service()
    midnight = timezone.localtime(NOON).replace(hour=0)
    given(service, midnight - timedelta(minutes=5))
    became_ready(service, midnight + timedelta(minutes=5))
    reclaims.run(midnight + timedelta(minutes=20))
    row = ReclaimDay.objects.get()
    assert (row.regrets, row.day) == (1, (midnight - timedelta(days=1)).date())


def record(seq: int, **changes: Any) -> roll_up.Record:
    values: dict[str, Any] = {
        "state": "cold",
        "outcome": "refused",
        "code": "model_loading",
        "at": NOON.timestamp(),
    } | changes
    return roll_up.Record(gateway="gw", seq=seq, service="hotline", tenant="wuliu", key=1, **values)


@pytest.mark.parametrize(
    ("changes", "harm"),
    [
        ({}, 1),
        ({"outcome": "failed", "code": "unreachable"}, 1),
        ({"code": "no_capacity"}, 1),
        ({"code": "budget_exceeded"}, 0),
        ({"code": "too_many_waiting"}, 0),
        ({"outcome": "ok", "code": ""}, 0),
        ({"outcome": "abandoned", "code": ""}, 0),
        ({"state": "ready"}, 0),
        ({"at": NOON.timestamp() - 2 * 3600}, 0),
    ],
)
def test_a_cold_call_that_fails_after_a_reclaim_is_harm(db: None, changes: dict[str, Any], harm: int) -> None:
    factories.service(last_reclaimed_at=NOON - timedelta(hours=1))
    batch = roll_up.Batch({"gw": [record(1, **changes)]})
    roll_up.count(batch)
    roll_up.count(batch)
    assert sum(ReclaimDay.objects.values_list("harmful", flat=True)) == harm


def test_harm_long_after_a_reclaim_or_without_one_is_nobodys(db: None) -> None:
    service = factories.service()
    assert not reclaims.blame("hotline", NOON.timestamp())
    Service.objects.filter(pk=service.pk).update(last_reclaimed_at=NOON - timedelta(days=1))
    assert not reclaims.blame("hotline", NOON.timestamp())
    assert not reclaims.blame("gone", NOON.timestamp())


def test_harm_and_counts_share_a_row(db: None) -> None:
    service = factories.service(last_reclaimed_at=NOON - timedelta(hours=1))
    given(service, NOON - timedelta(hours=1))
    reclaims.blame("hotline", NOON.timestamp())
    reclaims.run(NOON)
    row = ReclaimDay.objects.get()
    assert (row.reclaims, row.harmful) == (1, 1)


@pytest.mark.parametrize(
    ("service", "likely", "reason", "harm"),
    [
        ({}, 0.0, "idle", 0),
        ({"whitelisted_until": NOW + 9}, 0.0, "idle", 1),
        ({"whitelisted_until": NOW - 9}, 0.0, "idle", 0),
        ({"resident": ((NOW - 60, NOW + 60),)}, 0.0, "room", 1),
        ({}, 0.9, "idle", 1),
        ({}, 0.9, "room", 0),
    ],
)
def test_reclaiming_whom_a_rule_keeps_is_harm(db: None, service: Any, likely: float, reason: str, harm: int) -> None:
    """By room only what is expected before it could be loaded again: in this hour, 0.9 of which a minute is little."""
    factories.service("s")
    forecasts = {"s": Forecast(NOW - NOW % 3600, (likely,) * 3, load_s=20.0)}
    world = a_world(a_card(), a_service("s", **service), a_replica(phase=Phase.DRAINING), forecasts=forecasts)
    reclaims.blame_the_rule(Core(Verb.STOP, "s", Reason(reason), 1), world, NOW)
    assert sum(ReclaimDay.objects.values_list("harmful", flat=True)) == harm


# Fitted tiers


def a_week(name: str, per_day: int) -> None:
    monday = timezone.localtime(NOON).replace(hour=0)
    for back in range(1, 8):
        calls(name, per_day, monday - timedelta(days=back))


WEEK = {"busy": 700, "some": 350, "rare": 0}


def fitted_farm() -> None:
    factories.host("h1", cards=1, seen_at=NOON)
    for name, per_day in (("busy", 100), ("some", 50), ("rare", 0)):
        factories.service(name, tier="cold", created_at=NOON - timedelta(days=30))
        a_week(name, per_day)


def test_the_weekly_job_proposes_fitted_thresholds_and_moves_nobody_by_them(db: None) -> None:
    fitted_farm()
    tiers.fit(NOON, watch.state.policy(), WEEK)
    row = Notice.objects.get(kind="tiers")
    assert (row.numbers["hot"], row.numbers["warm"], row.numbers["up"]) == (1, 1, 2)
    assert row.numbers["hot_calls_7d"] == 350
    assert set(Service.objects.values_list("tier", flat=True)) == {"cold"}
    tiers.fit(NOON, watch.state.policy(), WEEK)
    assert Notice.objects.count() == 1


def test_where_the_policy_says_so_fitted_thresholds_hold(db: None) -> None:
    fitted_farm()
    PolicyValue.objects.create(name="tiers_fitted", value=1)
    tiers._recompute(timezone.localtime(NOON), watch.state.policy(), weekly=True)
    assert dict(Service.objects.values_list("name", "tier")) == {"busy": "hot", "some": "warm", "rare": "cold"}
    assert not Notice.objects.exists()


def test_a_pool_that_is_gone_takes_its_notices_along(db: None) -> None:
    row = Pool.objects.create(name="p", label="p")
    noticed.sync(["waterline"], [Said("waterline", "p", pool="p")], NOON.timestamp())
    row.delete()
    assert not Notice.objects.exists()


def test_the_times_of_a_notice_are_those_of_the_look(db: None) -> None:
    factories.service()
    noticed.sync(["thrash"], [Said("thrash", "hotline", "hotline", numbers={"loads": 1})], NOON.timestamp())
    noticed.sync(["thrash"], [Said("thrash", "hotline", "hotline", numbers={"loads": 2})], NOON.timestamp() + 30)
    row = Notice.objects.get()
    assert (row.opened_at, row.refreshed_at) == (NOON, moment(NOON.timestamp() + 30))
