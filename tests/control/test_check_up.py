"""Six symptoms out of real rows: opened once, refreshed, closed when they are gone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from console import state
from console.catalog.models import LoadTime, Replica, Service
from console.fleet.models import Card
from console.journal.models import Decision, Event
from console.money.models import CardHour, Symptom
from console.state import moment
from console.usage.models import HourlyCalls, Session
from console.wire import UNKNOWN, Gateways, Registration
from scheduler import symptoms
from scheduler.draft import Draft
from scheduler.symptoms import Kind
from tests import factories
from tests.control.conftest import START
from tests.control.test_roll_up import count, record
from tests.control.test_tick import policy
from workers.control import check_up, figures

pytestmark = pytest.mark.django_db
NOW = START
HOUR = moment(NOW - NOW % 3600)
QUIET = Gateways(True, (Registration("gw1", "b", NOW, 1, {}, {}),))


def run(gateways: Gateways = UNKNOWN) -> dict[str, Symptom]:
    check_up.run(NOW, gateways)
    return {row.kind: row for row in Symptom.objects.filter(closed_at=None)}


def ready(service: Service, card: Card, **more: object) -> Replica:
    since = moment(NOW - 9000)
    values = {"phase_since": since, "want_since": since, "loaded_at": since, "last_call_at": since, "door_in_flight": 0}
    return factories.replica(service, card, **(values | more))


def sampled(card: Card, used_mib: int, util: int | None) -> None:
    util_sums = {} if util is None else {"util_samples": 10, "util_pct": 10 * util}
    CardHour.objects.create(card=card.uuid, hour=HOUR, total_mib=81920, samples=10, used_mib=10 * used_mib, **util_sums)


@pytest.fixture
def cards() -> list[Card]:
    factories.host("h1", cards=3)
    return list(Card.objects.order_by("index"))


@pytest.mark.parametrize(
    ("used", "util", "calls", "found"),
    [(76000, 3, 2, True), (60000, 3, 2, False), (76000, 40, 2, False), (76000, None, 2, False), (76000, 3, 900, False)],
)
def test_a_full_pool_at_rest(cards, used, util, calls, found):
    hot = factories.service("hot", tier="hot")
    for card in cards:
        sampled(card, used, util)
    ready(hot, cards[0])
    factories.service("another", label="or it were alone in its pool")
    HourlyCalls.objects.create(hour=HOUR, service="hot", tenant="wuliu", key_id=1, calls=calls)
    seen = run().get(Kind.FULL_IDLE)
    assert (seen is not None) is found
    if seen is not None:
        assert seen.pool.name == "default"
        assert seen.numbers["cards"] == 3
        claim = hot.weights_mib + hot.kv_cap_mib + hot.headroom_mib + 600
        assert seen.others == [["hot", claim - 1300]]
        assert seen.remedies == [["warm", "hot", None]]


def test_whom_a_rule_keeps_is_not_named(cards):
    kept = factories.service("kept", tier="hot", min_replicas=1)
    sampled(cards[0], 80000, 2)
    ready(kept, cards[0])
    assert run() == {}


def test_first_calls_that_wait(cards):
    factories.service()
    for day in range(1, 6):
        start = HOUR - timedelta(days=day)
        Session.objects.create(service="hotline", start=start, last=start, hit=day == 5)
        Session.objects.create(service="hotline", start=start + timedelta(hours=1), last=start, hit=True)
        HourlyCalls.objects.create(
            hour=start.replace(minute=0), service="hotline", tenant="wuliu", key_id=1, calls=2, cold=1, hold_ms=14_000
        )
    seen = run()[Kind.FIRST_CALL]
    assert (seen.service.name, seen.numbers["days"], seen.numbers["of_days"]) == ("hotline", 4, 5)
    assert seen.numbers["wait_s"] == 14.0


def test_calls_that_end_at_the_cap_are_counted_and_found(cards):
    service = factories.service()
    LoadTime.objects.create(service=service, host=cards[0].host, kind="start", seconds=[22.0, 24.0])
    bodies = [record(i, at=NOW, outcome="refused", code="model_loading", hold_ms=15_000) for i in range(1, 5)]
    told_at_once = [record(5, at=NOW, outcome="refused", code="model_loading", hold_ms=3), record(6, at=NOW)]
    count(*bodies, *told_at_once)
    assert HourlyCalls.objects.get().capped == 4
    seen = run()[Kind.HOLD_CAP]
    assert 22.0 < seen.numbers.pop("load_s") < 24.0
    assert seen.numbers == {"capped": 4, "calls": 6, "cap_s": 15}
    assert seen.remedies[0] == ["longer_hold", "", None]


def test_dead_after_a_failed_load(cards):
    failure = {"card": cards[0].uuid, "at": NOW - 900, "code": "out_of_memory", "message": "x", "fatal": False}
    factories.service(failures=[failure, failure | {"at": NOW - 60}])
    seen = run()[Kind.LOAD_FAILED]
    assert (seen.numbers["failures"], seen.numbers["failed_s"], seen.numbers["fault"]) == (2, 900, "out_of_memory")
    ready(Service.objects.get(), cards[0])
    assert run() == {}
    assert Symptom.objects.get().closed_at == moment(NOW)


def test_swapping_names_the_partner_and_the_price(cards):
    Card.objects.update(price_fen_h=1000)
    one, other = factories.service("one", tier="cold"), factories.service("other")
    for minute in range(1, 20, 3):
        at = moment(NOW - 60 * minute)
        Event.objects.create(at=at, phase="ready", service=one, how="start", seconds=9)
        Decision.objects.create(at=at, verb="drain", reason="room", service=other, numbers={"room_for": "one"})
    HourlyCalls.objects.create(hour=HOUR, service="one", tenant="wuliu", key_id=1, calls=8)
    seen = run()[Kind.SWAPPING]
    assert seen.service.name == "one"
    assert seen.others == [["other", 0]]
    assert seen.numbers["loads"] == 7
    assert seen.numbers["slot_fen_h"] > seen.numbers["tier_fen_h"] > 0


def test_slow_beside_an_idle_neighbour(cards):
    busy, hog = factories.service("busy"), factories.service("hog")
    ready(busy, cards[0], last_call_at=moment(NOW), running=9, waiting=7)
    there = ready(hog, cards[0])
    ready(factories.service("far"), cards[1])
    seen = figures.busy(_draft("busy", p99_ms=2500.0, waiting=7))
    (one,) = [s for s in (symptoms.neighbour(b, state.policy()) for b in seen) if s]
    assert one.others == (("hog", one.numbers["held_mib"]),)
    assert one.remedies[0].replica == there.pk


def _draft(busy: str, **figures_of: object) -> Draft:
    world = state.world(NOW, QUIET)
    services = {**world.services, busy: replace(world.services[busy], **figures_of)}
    return Draft(replace(world, services=services), state.policy(), NOW)


def test_a_standing_symptom_is_one_row(cards, django_assert_max_num_queries):
    policy(dead_after_s=10)
    failure = {"card": "c", "at": NOW - 900, "code": "crashed", "message": "x", "fatal": False}
    factories.service(failures=[failure])
    run()
    opened = Symptom.objects.get().opened_at
    with django_assert_max_num_queries(45):
        check_up.run(NOW + 300, UNKNOWN)
    row = Symptom.objects.get()
    assert (row.opened_at, row.seen_at, row.numbers["failed_s"]) == (opened, moment(NOW + 300), 1200)
    Service.objects.all().delete()
    check_up.run(NOW + 600, UNKNOWN)
    assert not Symptom.objects.exists()


def test_a_well_farm_has_none(cards):
    ready(factories.service(), cards[0])
    for card in cards:
        sampled(card, 30000, 30)
    assert run(QUIET) == {}
