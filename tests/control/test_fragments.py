"""What is expected is counted from the journal; what is stranded is written on the pools."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from console import claims, state
from console.board.stranded import stranded_pct
from console.catalog.models import Service
from console.fleet.models import Card, Pool
from console.journal.models import Decision
from scheduler.fragmentation import weight_of
from tests import factories
from workers.control import fragments

pytestmark = pytest.mark.django_db


def started(service: Service, days_ago: float = 1, **fields):
    at = timezone.now() - timedelta(days=days_ago)
    Decision.objects.create(at=at, service=service, **({"verb": "start", "reason": "hold"} | fields))


def test_starts_of_28_days_that_were_somebodys_wish():
    one, other = factories.service("one"), factories.service("other", starts_28d=9)
    for days in (0, 5, 27.9):
        started(one, days)
    started(one, 28.1)
    started(one, verb="wake")
    started(one, refusal="short_of_memory")
    started(one, reason="repack")
    started(one, reason="fault")
    assert fragments.count_starts() == 2
    assert dict(Service.objects.values_list("name", "starts_28d")) == {"one": 3, "other": 0}
    assert fragments.count_starts() == 0
    assert other.starts_28d == 9


def test_the_planner_is_told_what_to_expect():
    factories.host("h1", 1)
    factories.service("one", starts_28d=4, tier="cold", cards_per_replica=2)
    for world in (state.world(0.0), claims.world(0.0, state.policy())):
        service = world.services["one"]
        assert (weight_of(service), service.cards_per_replica) == (5, 2)


def test_both_readings_judge_alike_who_may_live_where():
    factories.host("h1", 1)
    row = factories.service("one", card_classes=["a800-80"])
    row.pools.add(factories.pool("p"))
    whole, light = state.world(0.0).services["one"], claims.world(0.0, state.policy()).services["one"]
    for field in ("tenant", "claim", "pools", "card_classes", "min_compute_cap", "tier", "profile"):
        assert getattr(whole, field) == getattr(light, field)


def test_a_pool_says_what_of_its_free_memory_is_of_no_use():
    """Two cards of 80 GiB with 40 GiB left each, and only a service of 60 GiB is expected."""
    factories.host("h1", 2)
    Card.objects.update(free_mib=46_000)
    factories.service("large", weights_mib=50_000, tier="cold")
    fragments.measure()
    pool = Pool.objects.get()
    assert pool.free_mib == pool.stranded_mib == 2 * (46_000 - 6554)
    assert pool.stranded_pct == stranded_pct([pool]) == 100
    Card.objects.update(free_mib=80_000)
    fragments.measure()
    assert Pool.objects.get().stranded_pct == 0


def test_over_pools_each_counts_by_what_is_free_in_it():
    pools = [Pool(free_mib=1000, stranded_mib=500), Pool(free_mib=3000, stranded_mib=0), Pool()]
    assert stranded_pct(pools) == 12.5
    assert stranded_pct([Pool()]) is None
    assert stranded_pct([Pool(free_mib=0, stranded_mib=0)]) == 0
    assert Pool().stranded_pct is None


def test_the_board_says_it_to_staff(client):
    from console.accounts.models import Role, User

    factories.host("h1", 1)
    factories.service("large", weights_mib=90_000, tier="cold")
    fragments.measure()
    user = User.objects.create_user("op", password="x", role=Role.OPERATOR)
    User.objects.update(must_change_password=False)
    client.force_login(User.objects.get(pk=user.pk))
    (key,) = [key for key in client.get("/").context["keys"] if key.name == "stranded"]
    assert (key.value, key.unit) == ("100", "%")


def test_a_measurement_is_a_fixed_number_of_queries(django_assert_num_queries):
    factories.host("h1", 4)
    for number in range(5):
        factories.service(f"s{number}", tier="cold")
    with django_assert_num_queries(11):
        fragments.measure()
