"""Batch beside online services on a paper farm: measured, limited, told to gateways and journal, let go again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from console import lately, state
from console.catalog.models import Replica, Service
from console.fleet.models import Card, Pool
from console.journal.models import Decision
from console.state import moment
from scheduler import isolation
from scheduler.isolation import Cap, Step, Why
from scheduler.policy import Policy
from scheduler.world import Throttled
from tests import factories
from tests.control.conftest import START, PaperFarm
from tests.control.test_tick import policy
from workers.control import bounds, isolate, routes

NOW = moment(START)
HOUR_S = 3600.0
NIGHT_S = 6 * HOUR_S  # from the farm's first second, in the evening, until past midnight
CARD = "h1-c0"


@pytest.fixture
def pair(farm: PaperFarm) -> tuple[Replica, Replica]:
    """A batch replica and an online one on one card, in the middle of the night."""
    factories.host("h1", cards=1)
    farm.now += NIGHT_S
    at = moment(farm.now)
    card = Card.objects.get(uuid=CARD)
    services = [
        factories.service("night", profile="batch", tier="hot", max_num_seqs=8),
        factories.service("desk", profile="online", tier="hot"),
    ]
    batch, online = (factories.replica(s, card, loaded_at=at, last_call_at=at, want_since=at) for s in services)
    farm.tick()
    farm.until(lambda: len(farm.ready("night") + farm.ready("desk")) == 2)
    return batch, online


def limit() -> int | None:
    return Card.objects.get(uuid=CARD).batch_calls


def told() -> list[tuple[str, str]]:
    rows = Decision.objects.filter(verb="limit").order_by("id")
    return [(row.service.name, row.reason) for row in rows if row.service]


def learn_quiet(farm: PaperFarm, online: Replica, p99_ms: float = 200.0) -> None:
    """Its own P99 is seen while batch rests."""
    policy(quiet_every_s=5)
    farm.in_flight = {}
    farm.p99_ms[online.pk] = p99_ms
    minutes(farm, lambda: Replica.objects.get(pk=online.pk).quiet_p99_ms is not None)


def minutes(farm: PaperFarm, reached: Callable[[], bool]) -> None:
    """Ticks a minute apart until it is so."""
    for _ in range(20):
        if reached():
            return
        farm.tick(61)
    raise AssertionError("not within 20 minutes")


def test_the_quiet_p99_is_learned_only_while_batch_rests(farm: PaperFarm, pair) -> None:
    batch, online = pair
    farm.in_flight = {batch.pk: 3}
    farm.p99_ms[online.pk] = 900.0
    for _ in range(3):
        farm.tick(70)
    assert Replica.objects.get(pk=online.pk).quiet_p99_ms is None
    learn_quiet(farm, online)
    assert Replica.objects.get(pk=online.pk).quiet_p99_ms == 200.0


def test_batch_is_slowed_while_its_neighbour_suffers_and_let_go_afterwards(farm: PaperFarm, pair) -> None:
    batch, online = pair
    learn_quiet(farm, online)
    farm.in_flight = {batch.pk: 8}
    farm.p99_ms[online.pk] = 238.0
    outcome = farm.tick()
    assert limit() == 4
    assert outcome.limits["batch"] == {CARD: {"calls": 4, "why": "neighbour"}}
    assert outcome.services["night"]["replicas"][0]["batch"] == [CARD]
    assert "batch" not in outcome.services["desk"]["replicas"][0]
    first = Decision.objects.get(verb="limit")
    assert (first.numbers["neighbour"], first.numbers["rise_pct"], first.card.uuid) == ("desk", 19.0, CARD)
    farm.in_flight = {batch.pk: 4}
    farm.tick(31)
    assert limit() == 2
    farm.p99_ms[online.pk] = 220.0
    minutes(farm, lambda: limit() is None)
    assert farm.tick().limits["batch"] == {}
    assert told() == [("night", "neighbour"), ("night", "neighbour"), ("night", "well")]
    assert not Decision.objects.exclude(verb="limit").filter(service__name="night").exists(), "nothing was moved"


def test_by_day_the_fixed_limit_is_told_and_stands_in_no_journal(farm: PaperFarm, pair) -> None:
    assert "batch_calls" not in farm.tick().services["night"]["replicas"][0]
    farm.now += 12 * HOUR_S
    outcome = farm.tick()
    assert outcome.services["night"]["replicas"][0]["batch_calls"] == 4
    assert "batch_calls" not in outcome.services["desk"]["replicas"][0]
    assert outcome.limits["batch"] == {}
    policy(batch_day_calls=7)
    assert farm.tick().services["night"]["replicas"][0]["batch_calls"] == 7
    assert told() == []


def test_its_own_hours_count_before_the_policys_window(farm: PaperFarm, pair) -> None:
    """The farm's night is a Monday's, half past midnight."""
    Service.objects.filter(name="night").update(batch_hours=[{"days": "mon", "from": "06:00", "to": "22:00"}])
    assert farm.tick().services["night"]["replicas"][0]["batch_calls"] == 4
    farm.now += 12 * HOUR_S
    assert "batch_calls" not in farm.tick().services["night"]["replicas"][0]


V63 = [{"days": day, "from": "22:00", "to": "06:00"} for day in ("mon", "tue", "wed", "thu", "fri")]
V63 += [{"days": "sat", "from": "05:00", "to": "07:00"}]


@pytest.mark.parametrize(
    ("moment_", "free"),
    [
        ("2026-11-27 21:59", False),
        ("2026-11-27 22:00", True),
        ("2026-11-28 03:00", True),
        ("2026-11-28 05:30", True),
        ("2026-11-28 06:30", True),
        ("2026-11-28 07:00", False),
        ("2026-11-28 22:30", False),
        ("2026-11-29 23:30", False),
        ("2026-11-30 05:00", False),
        ("2026-11-30 22:00", True),
    ],
)
def test_hours_over_midnight_and_the_week_end_are_those_that_were_meant(db: None, moment_: str, free: bool) -> None:
    factories.service("night", profile="batch", batch_hours=V63)
    at = datetime.strptime(moment_, "%Y-%m-%d %H:%M").replace(tzinfo=ZoneInfo("Asia/Shanghai")).timestamp()
    world = state.world(at)
    assert isolation.may_run(Policy(), world.services["night"], world.site_minute, at) is free


def test_where_no_batch_is_let_in_by_day_nothing_is_loaded_and_the_caller_is_told_when(farm: PaperFarm) -> None:
    factories.host("h1", cards=1)
    factories.service("night", profile="batch")
    policy(batch_day_calls=0)
    farm.call("night")
    for _ in range(3):
        outcome = farm.tick()
    refusal = outcome.services["night"]["refusal"]
    assert (refusal["code"], refusal["retry_after_s"]) == ("batch_limited", 190 * 60)
    assert not Replica.objects.exists()
    assert Pool.objects.get().refused_at is None, "no room was wanting"
    farm.now += 4 * HOUR_S
    farm.call("night")
    farm.until(lambda: farm.ready("night"))


def test_pressure_without_a_victim_stops_batch_and_says_so_once(farm: PaperFarm, pair) -> None:
    batch, online = pair
    Replica.objects.filter(pk=batch.pk).update(want_since=moment(farm.now))
    Service.objects.filter(name="night").update(whitelisted_until=moment(farm.now + HOUR_S))
    farm.hosts["h1"].grown[online.pk] = 78000 - 20000
    for _ in range(4):
        outcome = farm.tick()
    assert outcome.limits["batch"] == {CARD: {"calls": 0, "why": "pressure"}}
    assert told() == [("night", "pressure")]
    farm.hosts["h1"].grown[online.pk] = 20000
    farm.until(lambda: farm.outcome.limits["batch"] == {})
    assert told() == [("night", "pressure")]


def test_a_new_leader_goes_on_where_the_old_one_was(farm: PaperFarm, pair) -> None:
    batch, online = pair
    learn_quiet(farm, online)
    farm.in_flight, farm.p99_ms[online.pk] = {batch.pk: 8}, 300.0
    farm.tick()
    farm.__post_init__()
    assert farm.tick().limits["batch"] == {CARD: {"calls": 4, "why": "neighbour"}}
    assert limit() == 4
    assert len(told()) == 1


def test_each_replica_has_its_second_of_the_period() -> None:
    found = {id: 1.0 for id in range(1, 601)}
    turns = [isolate.in_turn(found, 60, START + second) for second in range(60)]
    assert [len(turn) for turn in turns] == [10] * 60
    assert set().union(*turns) == set(found)


def test_a_limit_that_somebody_else_changed_is_not_overwritten(db: None) -> None:
    factories.host("h1", cards=1)
    Card.objects.filter(uuid=CARD).update(batch_calls=2)
    card = state.world(START).cards[CARD]
    assert not isolate._write(Step(CARD, 8, 4), card)
    assert limit() == 2
    assert isolate._write(Step(CARD, 2, 1), card)
    assert limit() == 1


def test_an_observed_pool_is_only_looked_at(farm: PaperFarm, pair) -> None:
    Pool.objects.update(mode="observe")
    batch, online = pair
    farm.in_flight, farm.p99_ms[online.pk], farm.disturbance_pct[online.pk] = {batch.pk: 8}, 300.0, 90.0
    farm.now += 12 * HOUR_S
    outcome = farm.tick()
    assert outcome.limits["batch"] == {}
    assert "batch_calls" not in outcome.services["night"]["replicas"][0]
    assert limit() is None


@pytest.mark.parametrize(
    ("step", "news"), [(Step("c", None, 4), True), (Step("c", 4, 2), True), (Step("c", 2, 3), False),
                       (Step("c", 7, None), True)]
)  # fmt: skip
def test_single_steps_up_are_no_news(step: Step, news: bool) -> None:
    assert isolate.substantial(step) is news


def test_the_site_minute_is_the_sites(db: None) -> None:
    assert state.world(START).site_minute == 18 * 60 + 50


# Preloads that give way


def test_a_preload_is_called_off_for_a_neighbour_and_remembered(farm: PaperFarm, pair) -> None:
    _, online = pair
    report = factories.service("report", tier="cold")
    Service.objects.filter(pk=report.pk).update(wished_at=moment(farm.now))
    farm.hosts["h1"].load_s = 60
    farm.until(lambda: Replica.objects.filter(service=report, phase="starting").exists())
    farm.disturbance_pct[online.pk] = 35.0
    farm.until(lambda: Replica.objects.filter(service=report, want="stopped").exists(), within=15)
    row = Decision.objects.get(reason="throttle")
    assert (row.verb, row.numbers["neighbour"], row.numbers["disturbance_pct"]) == ("stop", "desk", 35.0)
    farm.disturbance_pct[online.pk] = 1.0
    (memory,) = state.world(farm.now).throttled
    assert memory == Throttled("report", CARD, row.at.timestamp())
    for _ in range(8):
        farm.tick()
    assert not Replica.objects.filter(service=report, want="ready").exists(), "the host has a rest"
    farm.now += Policy().throttle_pause_s
    farm.until(lambda: Replica.objects.filter(service=report, want="ready").exists())


def test_swaps_and_throttled_preloads_have_memories_of_their_own_length(db: None) -> None:
    service = factories.service("s")
    for ago, reason, numbers in ((50, "room", {"room_for": "x"}), (50, "throttle", {"card": "c"})):
        Decision.objects.create(at=moment(START - ago), verb="stop", reason=reason, service=service, numbers=numbers)
    for swapped, throttled, counts in ((60, 60, (1, 1)), (40, 60, (0, 1)), (60, 40, (1, 0)), (40, 40, (0, 0))):
        found = lately.made_way(moment(START - swapped), moment(START - throttled))
        assert tuple(map(len, found)) == counts


# Bounds in the routes


def test_tokens_in_flight_are_nine_tenths_of_the_kv(farm: PaperFarm, pair) -> None:
    entry = farm.tick().services["desk"]["replicas"][0]
    assert entry["tokens"] == 6144 * 2**20 // 57344 * 90 // 100


def test_a_copy_over_two_cards_holds_twice_the_tokens(db: None) -> None:
    service = factories.service("wide", cards_per_replica=2)
    core = state.seen(factories.replica(service, factories.host("h9", cards=1).cards.get()))
    (row,) = routes.ROWS.of(Service.objects.filter(pk=service.pk))
    assert bounds.kv_tokens(row, core) == 6144 * 2**20 * 2 // 57344


def test_a_full_engine_is_sent_less_where_nothing_better_is_to_be_had(farm: PaperFarm, pair) -> None:
    _, online = pair
    before = farm.tick().services["desk"]["replicas"][0]["tokens"]
    farm.hosts["h1"].kv_used_pct[online.pk], farm.hosts["h1"].waiting[online.pk] = 98.0, 4
    farm.until(lambda: farm.outcome.services["desk"]["replicas"][0]["tokens"] < before)
    assert farm.outcome.services["desk"]["replicas"][0]["tokens"] == pytest.approx(before * 7 / 9, abs=2)
    row = Decision.objects.get(refusal="kv_full")
    assert (row.service.name, row.numbers["waiting"]) == ("desk", 4)
    farm.hosts["h1"].kv_used_pct[online.pk] = 60.0
    farm.until(lambda: farm.outcome.services["desk"]["replicas"][0]["tokens"] == before)


def test_limits_and_lanes_of_a_service_are_told(farm: PaperFarm, pair) -> None:
    lane = factories.service("desk-long")
    Service.objects.filter(name="desk").update(
        max_prompt_tokens=8000, max_total_tokens=12000, long_from_tokens=4000, long_lane=lane
    )
    told = farm.tick().services["desk"]
    assert (told["max_prompt_tokens"], told["max_total_tokens"]) == (8000, 12000)
    assert (told["long_from"], told["long_lane"]) == (4000, "desk-long")
    assert "max_prompt_tokens" not in farm.tick().services["night"]


def test_a_lane_of_another_company_is_not_used(farm: PaperFarm, pair) -> None:
    lane = factories.service("theirs", tenant=factories.tenant("other"))
    Service.objects.filter(name="desk").update(long_from_tokens=4000, long_lane=lane)
    assert "long_lane" not in farm.tick().services["desk"]


@pytest.mark.parametrize(
    ("replicas", "share_pct", "count"), [(4, 25, 1), (4, 26, 2), (2, 90, 1), (1, 90, 0), (8, 0, 0), (0, 50, 0)]
)
def test_a_share_of_replicas_is_reserved_and_never_all(replicas: int, share_pct: int, count: int) -> None:
    assert bounds.reserved(replicas, share_pct) == count


def test_reserved_ones_are_marked_in_the_routes(farm: PaperFarm, pair) -> None:
    factories.host("h2", cards=1)
    Service.objects.filter(name="desk").update(long_from_tokens=4000, long_share_pct=50, max_replicas=2)
    row = Service.objects.get(name="desk")
    at = moment(farm.now)
    second = factories.replica(row, Card.objects.get(uuid="h2-c0"), loaded_at=at, last_call_at=at)
    farm.until(lambda: len(farm.outcome.services["desk"]["replicas"]) == 2)
    marks = {r["id"]: r.get("long", False) for r in farm.outcome.services["desk"]["replicas"]}
    assert marks == {pair[1].pk: True, second.pk: False}


def test_caps_are_told_by_card() -> None:
    found = bounds.batch({"b": Cap(3, Why.NEIGHBOUR), "a": Cap(0, Why.PRESSURE)})
    assert list(found.items()) == [("a", {"calls": 0, "why": "pressure"}), ("b", {"calls": 3, "why": "neighbour"})]


# Slices


def test_a_host_says_which_of_its_cards_are_slices(farm: PaperFarm) -> None:
    factories.host("h1", cards=2)
    farm.hosts["h1"].slice_of = "GPU-big"
    farm.tick()
    assert set(Card.objects.values_list("slice_of", flat=True)) == {"GPU-big"}
    assert all(card.slice_of == "GPU-big" for card in state.world(farm.now).cards.values())


def test_who_needs_a_slice_is_loaded_on_one_or_told_that_there_is_none(farm: PaperFarm) -> None:
    factories.host("h1", cards=1)
    factories.service("hotline", slice_required=True)
    farm.call("hotline")
    for _ in range(3):
        farm.tick()
    assert farm.outcome.services["hotline"]["refusal"]["code"] == "no_capacity"
    assert not Replica.objects.exists()
    factories.host("h2", cards=1)
    farm.hosts["h2"].slice_of = "GPU-big"
    farm.until(lambda: farm.ready("hotline"))
    assert farm.ready("hotline")[0].cards == ["h2-c0"]
