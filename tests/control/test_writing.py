"""Many rows in one statement: each under its own condition, and no other is touched."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from console.catalog.models import Replica, Service
from console.fleet.models import Card, Host
from console.writing import ROWS, update_each
from tests import factories

SAME_ATTEMPT = "t.attempt = v.attempt AND t.ended_at IS NULL"


@pytest.fixture
def copies(db: None) -> list[Replica]:
    card = factories.host("h1", cards=1).cards.get()
    return [factories.replica(factories.service(f"s{i}"), card) for i in range(3)]


def test_each_row_gets_its_own_values(copies: list[Replica]) -> None:
    rows = [(row.pk, f"stage{i}", i / 2, None, bool(i % 2)) for i, row in enumerate(copies)]
    Replica.objects.update(measured_mib=7)
    written = update_each(Replica, rows, ("stage", "progress", "measured_mib", "can_sleep"))
    assert sorted(written) == [row.pk for row in copies]
    there = Replica.objects.order_by("pk").values_list("stage", "progress", "measured_mib", "can_sleep")
    assert list(there) == [("stage0", 0.0, None, False), ("stage1", 0.5, None, True), ("stage2", 1.0, None, False)]


def test_a_row_that_became_another_meanwhile_is_left_alone(copies: list[Replica]) -> None:
    first, ended, stays = copies
    Replica.objects.filter(pk=first.pk).update(attempt=2)
    Replica.objects.filter(pk=ended.pk).update(ended_at=timezone.now())
    rows = [(row.pk, "weights", 1) for row in copies]
    assert update_each(Replica, rows, ("stage",), given=("attempt",), where=SAME_ATTEMPT) == [stays.pk]
    assert list(Replica.objects.order_by("pk").values_list("stage", flat=True)) == ["", "", "weights"]


def test_a_row_that_is_gone_is_not_among_the_written(copies: list[Replica]) -> None:
    rows = [(row.pk, "weights") for row in copies]
    copies[0].delete()
    assert sorted(update_each(Replica, rows, ("stage",))) == [rows[1][0], rows[2][0]]


def test_times_json_and_what_is_unknown_come_back_as_they_were(copies: list[Replica]) -> None:
    now, service = timezone.now(), Service.objects.order_by("pk")[0]
    failures = [{"card": "GPU-'1'", "at": 1.5, "code": "x", "message": '100 % "真"'}]
    update_each(Service, [(service.pk, now, failures, None)], ("last_call_at", "failures", "overhead_mib"))
    service.refresh_from_db()
    assert (service.last_call_at, service.failures, service.overhead_mib) == (now, failures, None)


def test_of_two_times_the_later_one_stays(copies: list[Replica]) -> None:
    now, (old, new, never) = timezone.now(), copies
    Replica.objects.filter(pk=old.pk).update(last_call_at=now - timedelta(seconds=9))
    Replica.objects.filter(pk=new.pk).update(last_call_at=now + timedelta(seconds=9))
    older = "t.last_call_at < v.last_call_at OR t.last_call_at IS NULL"
    rows = [(row.pk, now) for row in copies]
    assert sorted(update_each(Replica, rows, ("last_call_at",), where=older)) == [old.pk, never.pk]


def test_a_key_may_be_a_name_or_a_relation(copies: list[Replica]) -> None:
    host = Host.objects.get()
    assert update_each(Host, [("h1", "b2"), ("h2", "b3")], ("boot",), key="name") == [host.pk]
    service = copies[1].service_id
    assert update_each(Replica, [(service, "warmup")], ("stage",), key="service") == [copies[1].pk]


def test_more_rows_than_one_statement_takes(db: None) -> None:
    host = factories.host("h1", cards=0)
    pool = factories.pool()
    cards = Card.objects.bulk_create(
        Card(uuid=f"c{i}", host=host, index=i, name="A800", card_class="a800-80", pool=pool)
        for i in range(2 * ROWS + 1)
    )
    assert len(
        update_each(Card, [(card.pk, {"n": card.index}, card.index) for card in cards], ("release", "free_mib"))
    ) == len(cards)
    assert all(card.release == {"n": card.free_mib} for card in Card.objects.all())


def test_nothing_to_write_asks_nothing(copies: list[Replica], django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    with django_assert_num_queries(0):
        assert update_each(Replica, [], ("stage",)) == []


def test_any_number_of_rows_is_one_statement_on_postgresql(db: None, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    """There the client would write out each value; SQLite takes so many at once."""
    host, pool = factories.host("h1", cards=0), factories.pool()
    cards = Card.objects.bulk_create(
        Card(uuid=f"c{i}", host=host, index=i, name="A800", card_class="a800-80", pool=pool) for i in range(ROWS + 1)
    )
    with django_assert_num_queries(1 if connection.vendor == "postgresql" else 2):
        update_each(Card, [(card.pk, 5) for card in cards], ("free_mib",))
    assert set(Card.objects.values_list("free_mib", flat=True)) == {5}


def test_words_stay_words(copies: list[Replica]) -> None:
    said = "'\"%s\\ \n第二行"
    update_each(Replica, [(copies[0].pk, said)], ("stage",))
    assert Replica.objects.get(pk=copies[0].pk).stage == said
