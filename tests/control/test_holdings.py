"""Who holds what is written once, when it changes, and nothing that is told late or twice spoils it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.catalog.models import Service
from console.money.models import CardHour, Holding, PoolHour
from console.state import moment
from scheduler.world import Card, Phase, Replica, Want, World
from tests import factories
from tests.control.conftest import PaperFarm
from tests.control.test_tick import policy
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world
from workers.control.holdings import Holdings

pytestmark = pytest.mark.django_db


def rows(replica: int = 1) -> list[tuple[float, float | None, int, int]]:
    """(began, ended, weights, residue) from NOW."""
    found = Holding.objects.filter(replica=replica).order_by("began", "pk")
    return [
        (
            r.began.timestamp() - NOW,
            None if r.ended is None else r.ended.timestamp() - NOW,
            r.weights_mib,
            r.residue_mib,
        )
        for r in found
    ]


def world(*replicas: Replica, card: Card | None = None, weights: int = 8000) -> World:
    return a_world(a_service("s", weights), card or a_card(), *replicas)


def at(phase: Phase, since: float, **more) -> Replica:
    return a_replica(1, "s", phase=phase, since=NOW + since, want_since=NOW + since, **more)


def test_a_life_is_one_row_a_stretch():
    book = Holdings()
    assert book.keep(world(at(Phase.STARTING, 0)), POLICY, NOW) == 1
    assert book.keep(world(at(Phase.READY, 10)), POLICY, NOW + 11) == 0
    assert book.keep(world(at(Phase.DRAINING, 50)), POLICY, NOW + 51) == 0
    book.keep(world(at(Phase.ASLEEP, 60)), POLICY, NOW + 61)
    book.keep(world(at(Phase.STARTING, 90, waking=True, want=Want.READY)), POLICY, NOW + 90)
    book.keep(world(), POLICY, NOW + 120)
    assert rows() == [(0, 60, 8000, 0), (60, 90, 0, 1300), (90, 120, 8000, 0)]


def test_a_farm_that_stands_still_writes_nothing(django_assert_num_queries):
    book = Holdings()
    book.keep(world(at(Phase.READY, 0)), POLICY, NOW)
    with django_assert_num_queries(0):
        for second in range(5):
            assert book.keep(world(at(Phase.READY, 0, in_flight=second)), POLICY, NOW + second) == 0


def test_a_new_leader_goes_on_where_the_old_one_was():
    Holdings().keep(world(at(Phase.READY, 0)), POLICY, NOW)
    assert Holdings().keep(world(at(Phase.READY, 0)), POLICY, NOW + 500) == 0
    assert Holdings().keep(world(), POLICY, NOW + 600) == 1
    assert rows() == [(0, 600, 8000, 0)]


def test_what_a_silent_host_tells_later_is_believed_only_so_far_back():
    book = Holdings()
    book.keep(world(at(Phase.READY, 0)), POLICY, NOW)
    book.keep(world(at(Phase.ASLEEP, 100)), POLICY, NOW + 100 + POLICY.cost_late_s + 77)
    assert rows()[0][1] == 177, "not in an hour that may be booked"
    book.keep(world(at(Phase.READY, 300)), POLICY, NOW + 500)
    assert rows()[1][:2] == (177, 300)


def test_a_clock_ahead_of_ours_ends_nothing_in_the_future():
    book = Holdings()
    book.keep(world(at(Phase.READY, 0)), POLICY, NOW)
    book.keep(world(at(Phase.ASLEEP, 900)), POLICY, NOW + 100)
    assert rows()[0][1] == 100


def test_memory_on_its_way_back_is_still_the_replicas():
    book = Holdings()
    book.keep(world(at(Phase.READY, 0)), POLICY, NOW)
    releasing = a_card(releasing_mib=9000)
    assert book.keep(world(card=releasing), POLICY, NOW + 10) == 0
    assert book.keep(world(card=releasing), POLICY, NOW + 30) == 0
    book.keep(world(), POLICY, NOW + 33)
    assert rows() == [(0, 33, 8000, 0)]


def test_but_not_for_ever():
    book = Holdings()
    book.keep(world(at(Phase.READY, 0)), POLICY, NOW)
    for second in range(0, 200, 5):
        book.keep(world(card=a_card(releasing_mib=9000)), POLICY, NOW + second)
    assert rows() == [(0, POLICY.release_timeout_s, 8000, 0)]


def test_a_changed_claim_is_paid_from_when_it_was_seen():
    book = Holdings()
    book.keep(world(at(Phase.READY, 0)), POLICY, NOW)
    book.keep(world(at(Phase.READY, 0), weights=9000), POLICY, NOW + 2000)
    assert rows() == [(0, 2000, 8000, 0), (2000, None, 9000, 0)]


def test_a_sleepers_wobbling_residue_makes_no_rows():
    book = Holdings()
    for second, residue in enumerate([1300, 1310, 1290, 1305]):
        book.keep(world(at(Phase.ASLEEP, 0, residue_mib=residue)), POLICY, NOW + second)
    assert len(rows()) == 1


def test_a_replica_on_two_cards_is_on_both():
    two = replace(at(Phase.READY, 0), cards=("c1", "c2"))
    Holdings().keep(a_world(a_service("s"), a_card("c1"), a_card("c2"), two), POLICY, NOW)
    assert set(Holding.objects.values_list("card", flat=True)) == {"c1", "c2"}


def test_the_loop_writes_them_and_its_samples(farm: PaperFarm):
    factories.host("h1")
    factories.service(kv_cap_mib=6144)
    policy(cost_sample_s=1)
    farm.call("hotline")
    farm.until(lambda: farm.ready("hotline"))
    replica = farm.ready("hotline")[0]
    held = Holding.objects.get()
    assert (held.replica, held.card, held.service, held.tenant) == (replica.pk, replica.cards[0], "hotline", "wuliu")
    assert (held.kv_mib, held.weights_mib, held.ended) == (6144, Service.objects.get().weights_mib, None)
    farm.held.clear()
    farm.hosts["h1"].foreign[replica.cards[0]] = 5000
    for _ in range(70):
        farm.tick()
    row = CardHour.objects.get(card=replica.cards[0])
    assert row.hour == moment(farm.now - farm.now % 3600)
    assert row.samples > 50
    assert 2000 < row.external_mib / row.samples < 5001
    samples, total = row.replicas[str(replica.pk)]
    assert total / samples == replica.measured_mib
    assert row.util_pct / row.util_samples == 10
    assert PoolHour.objects.get().contended == 0


def test_a_wish_that_finds_no_room_is_contention(farm: PaperFarm):
    factories.host("h1", cards=1)
    factories.service(weights_mib=90_000)
    policy(cost_sample_s=1)
    farm.call("hotline")
    for _ in range(62):
        farm.tick()
    counted = PoolHour.objects.get()
    assert counted.contended == counted.samples > 50
