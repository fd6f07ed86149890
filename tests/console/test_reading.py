"""A World is read as values, built anew only where they differ, in a fixed number of queries."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console import lately, seats, state
from console.catalog.models import Replica, Service
from console.fleet.models import Card, Pool
from console.same_rows import Rows, Standing
from console.unchanged import MOST, Unchanged
from console.usage.models import HourlyCalls
from console.wire import UNKNOWN
from scheduler.policy import Policy
from tests import factories
from tests.console import rows

#: Policy, foreign use, cards, replicas, week, hosts, load times, services and their
#: pools, pools and their tenants, bandwidths, whether forecasts changed, swaps, evictions, orders, card budgets,
#: quotas, looks of scaling (rows of their own: people save services), moves of a repack.
WORLD_QUERIES = 20
#: Foreign use, replicas, services, cards; then the service asked about and its pools; hosts; pools (2).
PLANNING_QUERIES = 9


@dataclass(frozen=True)
class Thing:
    value: int


def test_the_same_values_give_the_same_thing():
    kept: Unchanged[Thing] = Unchanged()
    first = kept.of("a", (1,), lambda: Thing(1))
    assert kept.of("a", (1,), lambda: Thing(2)) is first
    assert kept.of("a", (2,), lambda: Thing(2)) == Thing(2)
    assert kept.of("b", (2,), lambda: Thing(3)) == Thing(3)


def test_it_does_not_grow_for_ever():
    kept: Unchanged[Thing] = Unchanged()
    first = kept.of(0, 0, lambda: Thing(0))
    for key in range(1, MOST + 1):
        kept.of(key, key, lambda key=key: Thing(key))
    assert kept.of(0, 0, lambda: Thing(0)) is not first


def test_many_are_looked_up_at_once_as_one_by_one():
    kept: Unchanged[Thing] = Unchanged()
    built: list[int] = []

    def build(value: int, more: int) -> Thing:
        built.append(value)
        return Thing(value + more)

    first = kept.each([("a", (1, 0)), ("b", (2, 5))], build)
    assert first == [Thing(1), Thing(7)]
    again = kept.each([("b", (2, 5)), ("a", (3, 0))], build)
    assert again == [Thing(7), Thing(3)]
    assert again[0] is first[1] is kept.of("b", (2, 5), lambda: Thing(9))
    assert built == [1, 2, 3]
    assert kept.each([], build) == []


@pytest.mark.django_db
def test_rows_of_which_there_are_none_yet_are_read_once_there_are():
    kept = Rows("pk", "card_classes", "wished_at")
    assert kept.of(Service.objects.none()) == kept.of(Service.objects.all()) == []
    one = factories.service()
    assert kept.of(Service.objects.all()) == [(one.pk, [], None)]


@pytest.mark.django_db
def test_what_is_kept_of_rows_does_not_grow_for_ever(monkeypatch):
    monkeypatch.setattr("console.same_rows.MOST", 2)
    kept, asked = Rows("pk", "name"), Service.objects.order_by("pk")
    for name in "abc":
        factories.service(name=name)
    full = kept.of(asked)
    assert all(old is new for old, new in zip(full, kept.of(asked), strict=True))
    assert [row.name for row in kept.of(asked.filter(name="b"))] == ["b"]
    again = kept.of(asked)
    assert again == full
    assert [old is new for old, new in zip(full, again, strict=True)] == [False, True, False]


@pytest.mark.django_db
def test_what_rows_say_alike_is_translated_once():
    kept = Rows("pk", "card_classes", "last_call_at")
    called = rows.moment()
    for name in "ab":
        factories.service(name=name)
    Service.objects.update(last_call_at=called, card_classes=["a"])
    first, second = kept.of(Service.objects.order_by("pk"))
    assert first.last_call_at == second.last_call_at == called
    assert first.card_classes is second.card_classes
    assert first.card_classes == second.card_classes == ["a"]


@pytest.mark.django_db
def test_a_row_is_translated_again_only_where_the_database_says_otherwise():
    kept = Rows("pk", "name", "card_classes", "last_call_at", "model__shards")
    first, second = factories.service(name="a"), factories.service(name="b")
    asked = Service.objects.order_by("pk")
    before = kept.of(asked)
    assert before == list(asked.values_list(*kept.columns))
    assert all(old is new for old, new in zip(before, kept.of(asked), strict=True))
    called = rows.moment()
    Service.objects.filter(pk=second.pk).update(card_classes=["a800-80"], last_call_at=called)
    after = kept.of(asked)
    assert after[0] is before[0]
    assert (after[1].card_classes, after[1].last_call_at) == (["a800-80"], called)
    assert kept.of(asked.filter(pk=first.pk)) == [before[0]]
    assert kept.of(asked.none()) == []


@pytest.mark.django_db
def test_a_standing_question_is_asked_each_time(django_assert_num_queries):
    standing = Standing(lambda: Service.objects.filter(tier="warm").order_by("-name"), "pk", "name", "failures")
    assert standing.all() == []
    one = factories.service(tier="warm")
    for _ in range(2):
        with django_assert_num_queries(1):
            assert standing.all() == [(one.pk, one.name, [])]
    Service.objects.filter(pk=one.pk).update(tier="cold")
    assert standing.all() == []


@pytest.mark.django_db
def test_a_world_is_read_again_where_it_changed():
    now, on = rows.moment().timestamp(), factories.host(cards=2).cards.order_by("index")[0]
    service = factories.service()
    replica = factories.replica(service, on)
    before = state.world(now)
    again = state.world(now)
    assert again.services[service.name] is before.services[service.name]
    assert again.replicas[replica.pk] is before.replicas[replica.pk]
    Service.objects.filter(pk=service.pk).update(
        priority=77, failures=[{"card": "c", "at": 1.0, "code": "x", "message": ""}]
    )
    Replica.objects.filter(pk=replica.pk).update(measured_mib=12345, cards=["GPU-other"])
    service.pools.add(Pool.objects.create(name="named", label="named"))
    after = state.world(now)
    there = after.services[service.name]
    assert (there.priority, there.failures[0].code, there.pools) == (77, "x", frozenset({"named"}))
    assert (after.replicas[replica.pk].measured_mib, after.replicas[replica.pk].cards) == (12345, ("GPU-other",))
    assert state.world(now, rules=Policy(default_overhead_mib=900)).services[service.name].claim.overhead_mib == 900


@pytest.mark.django_db
def test_cards_come_in_the_order_of_the_board_with_host_and_pool(farm, django_assert_num_queries):
    found = seats.reading.card_rows()
    assert [row.pk for row in found] == list(Card.objects.order_by("host__name", "index").values_list("pk", flat=True))
    with django_assert_num_queries(0):
        assert all(row.host.pk == row.host_id and row.pool.pk == row.pool_id for row in found)
    stored = Card.objects.select_related("host", "pool").get(pk=found[0].pk)
    for mine, theirs in ((found[0], stored), (found[0].host, stored.host), (found[0].pool, stored.pool)):
        assert {k: v for k, v in vars(mine).items() if k != "_state"} == {
            k: v for k, v in vars(theirs).items() if k != "_state"
        }
        assert (mine._state.adding, mine._state.db, mine) == (False, "default", theirs)
    found[0].host_id = found[-1].host_id + 1
    assert "host" not in found[0]._state.fields_cache
    found[0].host_id = stored.host_id
    some = {stored.host_id}
    assert {row.host_id for row in seats.reading.card_rows(some)} == some


@pytest.mark.django_db
def test_queries_do_not_grow_with_the_farm(farm, django_assert_num_queries):
    now, name = rows.moment().timestamp(), Service.objects.order_by("pk")[0].name
    for turn in range(2):
        with django_assert_num_queries(WORLD_QUERIES):
            state.world(now)
        with django_assert_num_queries(PLANNING_QUERIES):
            seats.planning(now, UNKNOWN, Policy(), [name])
        owner = Service.objects.order_by("pk")[0]
        for i in range(5):
            more = Service.objects.get(pk=owner.pk)
            more.pk, more.name = None, f"more-{turn}-{i}"
            more.save()


@pytest.mark.django_db
def test_services_by_name_are_whole_and_without_traffic(farm):
    name = Service.objects.order_by("pk")[0].name
    known = state.services_named([name], Policy())
    assert list(known) == [name]
    assert known[name].tenant
    assert known[name].demand.last_call_at == state.world(rows.moment().timestamp()).services[name].demand.last_call_at


@pytest.mark.django_db
def test_the_week_of_one_service_is_not_the_week_of_all(farm):
    now, name = rows.moment(), Service.objects.order_by("pk")[0].name
    other = Service.objects.exclude(name=name)[0].name
    for service in (name, other):
        HourlyCalls.objects.create(hour=now, service=service, tenant="t", key_id=1, calls=4, ok=4, total_ms=8000)
    world = state.world(now.timestamp(), week_of=[name])
    assert (world.services[name].demand.calls_7d, world.services[name].generation_s) == (4, 2.0)
    assert (world.services[other].demand.calls_7d, world.services[other].generation_s) == (0, None)
    assert state.world(now.timestamp()).services[other].generation_s == 2.0


@pytest.mark.django_db
def test_a_planned_world_differs_from_a_drawn_one_in_what_is_drawn_only(farm):
    now = rows.moment().timestamp()
    drawn = seats.seated(UNKNOWN, Policy(), state.taken(rows.moment())).world
    planned = seats.planning(now, UNKNOWN, Policy(), [])
    assert planned.replicas == drawn.replicas
    assert planned.cards == drawn.cards


@pytest.mark.django_db
def test_the_journal_is_not_read_from_end_to_end():
    since = rows.moment()
    with CaptureQueriesContext(connection) as asked:
        lately.made_way(since, since)
        lately.evictions(since)
    for query in asked:
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN " + ("QUERY PLAN " if connection.vendor == "sqlite" else "") + query["sql"])
            steps = " ".join(str(step) for step in cursor.fetchall())
        assert connection.vendor != "sqlite" or "SCAN journal_decision" not in steps, steps
