"""Finished hours into bills: to the fen, once, and paid by who called."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import Sum

from console.fleet.models import Card, Pool
from console.money.models import Bill, CardBudget, CardHour, CostDay, Holding, KeyCost, Price
from console.usage.models import HourlyCalls
from tests import factories
from tests.control.test_tick import policy
from workers.control import booking

pytestmark = pytest.mark.django_db
HOUR = datetime(2026, 11, 3, 2, tzinfo=UTC)  # 10:00 in Shanghai
LATER = HOUR + timedelta(hours=1, seconds=301)
PRICE = 515


@pytest.fixture
def cards() -> list[Card]:
    factories.host("h1", cards=2)
    Card.objects.update(price_fen_h=PRICE)
    found = list(Card.objects.order_by("index"))
    for card in found:
        CardHour.objects.create(
            card=card.uuid, hour=HOUR, total_mib=card.total_mib, reserved_mib=600, samples=10, used_mib=10 * 30000
        )
    return found


def hold(card: Card, service: str = "hotline", tenant: str = "wuliu", replica: int = 1, **more) -> Holding:
    sizes = {"weights_mib": 14000, "kv_mib": 6000, "headroom_mib": 1000, "overhead_mib": 600}
    more.setdefault("began", HOUR - timedelta(hours=5))
    return Holding.objects.create(replica=replica, card=card.uuid, service=service, tenant=tenant, **(sizes | more))


def called(service: str, tenant: str, tokens: int, key: int = 7) -> None:
    HourlyCalls.objects.create(hour=HOUR, service=service, tenant=tenant, key_id=key, calls=1, prompt_tokens=tokens)


def paid(**where: object) -> int:
    return CostDay.objects.filter(**where).aggregate(fen=Sum("fen"))["fen"] or 0


def test_each_card_and_hour_sums_to_its_price(cards):
    hold(cards[0])
    hold(cards[0], "other", "energy", replica=2, began=HOUR + timedelta(minutes=12), ended=HOUR + timedelta(minutes=13))
    assert booking.run(LATER) == 1
    for row in CardHour.objects.all():
        assert row.price_fen == PRICE
        assert sum(line[5] for line in row.rows) == PRICE
        assert sum(line[4] for line in row.rows) == row.total_mib * 3600
    assert paid() == 2 * PRICE
    assert paid(service="hotline", tenant="wuliu") > paid(service="other", tenant="energy") > 0
    assert paid(card=cards[1].uuid, tenant="") == PRICE, "an empty card is the centre's"


def test_an_hour_is_booked_once_and_not_before_it_is_over_for_a_while(cards):
    assert booking.run(LATER - timedelta(seconds=2)) == 0
    assert booking.run(LATER) == 1
    assert booking.run(LATER) == 0
    assert paid() == 2 * PRICE


def test_what_is_told_after_booking_changes_no_booked_hour(cards):
    held = hold(cards[0])
    booking.run(LATER)
    before = list(CostDay.objects.values_list("service", "part", "fen"))
    Holding.objects.filter(pk=held.pk).update(ended=HOUR + timedelta(minutes=1))
    booking.run(LATER + timedelta(minutes=1))
    assert list(CostDay.objects.values_list("service", "part", "fen")) == before


def test_hours_nobody_sampled_are_booked_all_the_same(cards):
    hold(cards[0])
    booking.run(LATER)
    next_sample = HOUR + timedelta(hours=4)
    CardHour.objects.create(card=cards[0].uuid, hour=next_sample, total_mib=81920)
    booking.run(next_sample + timedelta(hours=1, minutes=6))
    assert CardHour.objects.exclude(booked_at=None).values("hour").distinct().count() == 5
    assert paid() == 2 * 5 * PRICE
    assert paid(service="hotline") > 0


def test_a_pools_owner_pays_what_nobody_uses(cards):
    Pool.objects.update(owner=factories.tenant("energy"))
    booking.run(LATER)
    assert paid(tenant="energy") == 2 * PRICE
    assert paid(tenant="") == 0


def test_a_called_service_is_paid_by_its_callers(cards):
    hold(cards[0])
    called("hotline", "energy", 300)
    called("hotline", "wuliu", 100, key=1)
    called("hotline", "energy", 300, key=8)
    booking.run(LATER)
    whole = paid(service="hotline")
    assert abs(paid(service="hotline", tenant="energy") - whole * 6 / 7) <= 1
    assert sum(KeyCost.objects.values_list("fen", flat=True)) == whole
    assert abs(KeyCost.objects.get(key_id=7).fen - whole * 3 / 7) <= 1


def test_days_and_months_are_the_sites(cards):
    """23:00 to 01:00 in Shanghai: the second hour is the next day's, and the next month's."""
    CardHour.objects.all().delete()
    for hour in (datetime(2026, 11, 30, 15, tzinfo=UTC), datetime(2026, 11, 30, 16, tzinfo=UTC)):
        CardHour.objects.create(card=cards[0].uuid, hour=hour, total_mib=81920)
    hold(cards[0])
    HourlyCalls.objects.create(
        hour=datetime(2026, 11, 30, 16, tzinfo=UTC), service="hotline", tenant="wuliu", key_id=1, generated_tokens=5
    )
    booking.run(datetime(2026, 11, 30, 17, 6, tzinfo=UTC))
    days = dict(CostDay.objects.values_list("day").annotate(fen=Sum("fen")))
    assert {str(day): fen for day, fen in days.items()} == {"2026-11-30": PRICE, "2026-12-01": PRICE}
    assert str(KeyCost.objects.get().month) == "2026-12-01"


@pytest.mark.parametrize(
    ("needs_second", "approved", "fen"), [(False, False, 900), (True, False, PRICE), (True, True, 900)]
)
def test_a_price_counts_from_its_hour_once_it_may(cards, needs_second, approved, fen):
    at = HOUR if approved else None
    Price.objects.create(card_class="a800-80", fen_h=900, starts_at=HOUR, needs_second=needs_second, approved_at=at)
    Price.objects.create(card_class="a800-80", fen_h=1, starts_at=HOUR + timedelta(hours=1))
    booking.run(LATER)
    assert set(CardHour.objects.values_list("price_fen", flat=True)) == {fen}


def test_host_memory_is_a_second_bill(cards):
    hold(cards[0], weights_mib=0, kv_mib=0, headroom_mib=0, overhead_mib=0, residue_mib=1300, host_mib=10240)
    booking.run(LATER)
    assert paid(bill=Bill.HOST) == 0
    CardHour.objects.update(booked_at=None)
    CostDay.objects.all().delete()
    policy(host_memory_fen_gib_h=3)
    booking.run(LATER)
    assert paid(bill=Bill.HOST, tenant="wuliu") == 30
    assert paid(bill=Bill.CARD) == 2 * PRICE


def test_measured_and_external_memory_have_rows(cards):
    CardHour.objects.filter(card=cards[0].uuid).update(replicas={"1": [10, 10 * 25000]}, external_mib=10 * 4000)
    hold(cards[0])
    booking.run(LATER)
    parts = {line[0]: line[4] // 3600 for line in CardHour.objects.get(card=cards[0].uuid).rows}
    assert parts["drift"] == 25000 - 21600
    assert parts["external"] == 4000


def test_a_removed_card_is_billed_no_more(cards):
    booking.run(LATER)
    Card.objects.filter(pk=cards[1].pk).delete()
    CardHour.objects.create(card=cards[0].uuid, hour=HOUR + timedelta(hours=1), total_mib=81920)
    booking.run(LATER + timedelta(hours=1))
    assert paid() == 3 * PRICE


def test_an_hour_of_many_cards_is_booked_in_steps_and_a_control_that_dies_between_two_leaves_the_rest(cards):
    factories.host("h2", cards=booking.CARDS_A_STEP + 5)
    Card.objects.update(price_fen_h=PRICE)
    others = list(Card.objects.filter(host__name="h2"))
    CardHour.objects.bulk_create(CardHour(card=c.uuid, hour=HOUR, total_mib=c.total_mib) for c in others)
    for number, card in enumerate(others):
        hold(card, replica=100 + number)
    called("hotline", "energy", 700)
    called("hotline", "wuliu", 300, key=1)
    assert booking._some(HOUR, booking.state.policy(), LATER)
    assert CardHour.objects.exclude(booked_at=None).count() == booking.CARDS_A_STEP
    assert booking.run(LATER) == 1
    assert paid() == PRICE * Card.objects.count()
    whole = paid(service="hotline")
    assert sum(KeyCost.objects.values_list("fen", flat=True)) == whole
    assert abs(paid(service="hotline", tenant="energy") - whole * 0.7) <= 4, "roundings of two steps"


def test_two_controls_book_an_hour_once(cards):
    rules = booking.state.policy()
    booking.run(LATER - timedelta(minutes=5))
    assert booking._some(HOUR, rules, LATER)
    assert not booking._some(HOUR, rules, LATER)
    assert paid() == 2 * PRICE


def test_the_planner_reckons_with_the_price_in_force(cards):
    Price.objects.create(card_class="a800-80", fen_h=900, starts_at=HOUR)
    Price.objects.create(card_class="a800-80", fen_h=1, starts_at=LATER + timedelta(hours=5))
    booking.run(LATER)
    assert set(Card.objects.values_list("price_fen_h", flat=True)) == {900}


def test_a_run_ends_in_time_and_budgets_wait_for_the_whole_hour(cards):
    factories.host("h2", cards=booking.CARDS_A_STEP * booking.STEPS_A_RUN)
    CardHour.objects.bulk_create(
        CardHour(card=c.uuid, hour=HOUR, total_mib=c.total_mib) for c in Card.objects.filter(host__name="h2")
    )
    Card.objects.update(price_fen_h=PRICE)
    row = CardBudget.objects.create(tenant=factories.tenant(), limit_fen=10)
    assert booking.run(LATER) == booking.STEPS_A_RUN
    row.refresh_from_db()
    assert row.as_of is None
    assert booking.run(LATER) == 1
    row.refresh_from_db()
    assert row.as_of == HOUR + timedelta(hours=1)
    assert paid() == PRICE * Card.objects.count()
