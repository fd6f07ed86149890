"""From booked hours to a stopped copy: a spent budget acts on a farm of real ticks, and its neighbour feels nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from console.catalog.models import Replica
from console.fleet.models import Card
from console.journal.models import Decision
from console.money.models import CardBudget, CardHour, CostDay, Holding
from console.state import moment
from tests import factories
from tests.control.conftest import START, PaperFarm
from tests.control.test_tick import policy
from workers.control import booking

pytestmark = pytest.mark.django_db


@pytest.fixture
def two(farm: PaperFarm) -> PaperFarm:
    """A lab's batch model and an airline's hotline, both awake; notices are short."""
    policy(grace_s=20, min_loaded_s=10)
    factories.host("h1")
    factories.host("h2")
    Card.objects.update(price_fen_h=500)
    factories.service("wild", tenant=factories.tenant("lab"), profile="batch", tier="hot")
    factories.service("hotline", tenant=factories.tenant("air"), profile="online", tier="hot", min_replicas=1)
    farm.until(lambda: farm.ready("wild") and farm.ready("hotline"))
    for _ in range(12):
        farm.tick()
    return farm


def spend(limit_fen: int, hours: int = 3) -> None:
    """Hours before the farm's own, in which the lab held a card, are booked."""
    first = moment(START - START % 3600) - timedelta(hours=hours + 1)
    card = Card.objects.order_by("pk").first()
    for i in range(hours):
        CardHour.objects.create(card=card.uuid, hour=first + timedelta(hours=i), total_mib=81920)
    Holding.objects.create(
        replica=999, card=card.uuid, service="wild", tenant="lab", began=first, ended=first + timedelta(hours=hours),
        weights_mib=60000,
    )  # fmt: skip
    CardBudget.objects.create(tenant=factories.tenant("lab"), limit_fen=limit_fen)
    while booking.run(moment(START)):  # a run a minute, until nothing is left
        pass


def test_spent_it_is_announced_then_stopped(two: PaperFarm) -> None:
    spend(limit_fen=1000)
    budget = CardBudget.objects.get()
    assert budget.spent_fen >= 1000, "three hours at about 370 fen"
    assert budget.told == "spent"
    copy = two.ready("wild")[0]
    two.tick()
    notice = Decision.objects.get(verb="drain", reason="budget")
    assert (notice.replica_id, notice.numbers["limit_fen"]) == (copy.pk, 1000)
    assert notice.numbers["not_before"] == pytest.approx(two.now + 20, abs=2)
    assert two.ready("wild"), "routed while the notice stands"
    took = two.until(lambda: not Replica.objects.filter(service__name="wild", ended_at=None).exists(), within=90)
    assert took >= 18
    two.until(lambda: not Holding.objects.filter(service="wild", ended=None).exists(), within=30)
    assert not Decision.objects.filter(service__name="hotline", verb__in=("drain", "stop")).exists()
    assert two.ready("hotline")


def test_a_call_afterwards_is_served(two: PaperFarm) -> None:
    spend(limit_fen=1000)
    two.until(lambda: not Replica.objects.filter(service__name="wild", ended_at=None).exists(), within=120)
    two.call("wild")
    two.until(lambda: two.ready("wild"))
    assert not Decision.objects.filter(service__name="wild", reason="hold").exclude(refusal="").exists()


def test_warned_it_goes_on_as_before(two: PaperFarm) -> None:
    spend(limit_fen=1300)
    assert CardBudget.objects.get().told == "warned"
    for _ in range(60):
        two.tick()
    assert two.ready("wild")
    assert not Decision.objects.filter(verb="drain").exists()


def test_a_raised_limit_takes_the_notice_back(two: PaperFarm) -> None:
    spend(limit_fen=1000)
    two.tick()
    CardBudget.objects.update(limit_fen=10_000_000)
    for _ in range(30):
        two.tick()
    assert two.ready("wild")
    assert Decision.objects.filter(verb="wake", reason="unneeded").exists()
    assert CostDay.objects.filter(service="wild").exists()
