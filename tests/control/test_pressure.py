"""A replica that grows on a paper farm: counted from samples, relieved, rebuilt elsewhere, told in the journal."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from console import lately
from console.catalog.models import Replica
from console.fleet.models import Card, Pool
from console.journal.models import Decision, Event
from console.state import moment
from scheduler.policy import DEFAULT
from scheduler.world import Eviction
from tests import factories
from tests.control.conftest import START, PaperFarm
from tests.control.paper import PaperHost
from workers.control import ingest
from workers.messages import encode

NOW = moment(START)


@pytest.fixture
def shared(farm: PaperFarm) -> Replica:
    """An online service and one of few calls on one card of h1; the second host is empty but for its own."""
    factories.host("h1", cards=1)
    factories.host("h2", cards=1)
    online = factories.service("online", profile="online", kv_cap_mib=30000, tier="hot")
    few = factories.service("few", profile="lowfreq", tier="warm")
    card = Card.objects.get(uuid="h1-c0")
    rows = [factories.replica(s, card, phase="ready", loaded_at=NOW, last_call_at=NOW) for s in (online, few)]
    farm.tick()
    farm.until(lambda: len(farm.ready("online") + farm.ready("few")) == 2)
    return rows[1]


def online(farm: PaperFarm, card: str) -> None:
    """A replica of about 20 GiB that may not go."""
    service = factories.service(f"on-{card}", profile="online", whitelisted_until=NOW + timedelta(days=1))
    row = factories.replica(service, Card.objects.get(uuid=card), loaded_at=NOW)
    farm.tick()
    farm.until(lambda: Replica.objects.get(pk=row.pk).phase == "ready")


def grow(farm: PaperFarm, replica: Replica, mib: int = 32000) -> None:
    farm.hosts["h1"].grown[replica.pk] = mib


def acts(service: str) -> list[tuple[str, str]]:
    rows = Decision.objects.filter(service__name=service, refusal="").order_by("id")
    return list(rows.values_list("verb", "reason"))


def test_the_grower_is_relieved_and_rebuilt_elsewhere(farm: PaperFarm, shared: Replica) -> None:
    before = acts("online")
    grow(farm, shared)
    took = farm.until(lambda: (Card.objects.get(uuid="h1-c0").free_mib or 0) > 81920 * 15 // 100, within=15)
    assert took <= 9
    farm.until(lambda: farm.ready("few") and farm.ready("few")[0].pk != shared.pk)
    assert farm.ready("few")[0].cards == ["h2-c0"]
    assert acts("few") == [("drain", "pressure"), ("start", "rebuild"), ("stop", "pressure")]
    assert acts("online") == before
    drain = Decision.objects.get(verb="drain")
    assert (drain.numbers["card"], drain.numbers["cause"], drain.card.uuid) == ("h1-c0", "drift", "h1-c0")
    assert Card.objects.get(uuid="h1-c0").pressed_samples == 0


def test_once_rebuilt_it_stays_as_it_is(farm: PaperFarm, shared: Replica) -> None:
    grow(farm, shared)
    farm.until(lambda: farm.ready("few") and farm.ready("few")[0].pk != shared.pk)
    count = Decision.objects.count()
    for _ in range(30):
        farm.tick()
    assert Decision.objects.count() == count
    assert Replica.objects.filter(service__name="few", ended_at=None).count() == 1


def test_a_call_in_flight_is_cut_at_the_short_bound_and_not_before(farm: PaperFarm, shared: Replica) -> None:
    farm.hosts["h1"].door[shared.pk] = 1
    farm.in_flight[shared.pk] = 1
    grow(farm, shared)
    farm.until(lambda: Replica.objects.get(pk=shared.pk).want == "drained", within=5)
    took = farm.until(lambda: Replica.objects.get(pk=shared.pk).want == "stopped", within=30)
    assert DEFAULT.pressure_drain_s <= took <= DEFAULT.pressure_drain_s + 1
    stop = Decision.objects.get(verb="stop")
    assert (stop.reason, Replica.objects.get(pk=shared.pk).force) == ("pressure", True)


@pytest.mark.parametrize("mode", ["observe", "suggest"])
def test_a_pool_that_is_only_advised_loses_nobody_and_gets_no_copies(
    farm: PaperFarm, shared: Replica, mode: str
) -> None:
    """The card's pool is advised, the one with room is not: a rebuild without the eviction would start one a tick."""
    quiet = factories.pool("quiet", mode=mode)
    Card.objects.filter(uuid="h1-c0").update(pool=quiet)
    grow(farm, shared)
    for _ in range(30):
        farm.tick()
    assert [r.pk for r in farm.ready("few")] == [shared.pk]
    assert Replica.objects.filter(service__name="few").count() == 1
    assert Decision.objects.filter(verb="drain", reason="pressure").exclude(refusal="").count() == 1


def test_where_nobody_may_go_one_alert_row_stands_and_callers_elsewhere_are_served(farm: PaperFarm) -> None:
    factories.host("h1", cards=1)
    factories.host("h2", cards=1)
    factories.service("late")
    online(farm, "h1-c0")
    farm.hosts["h1"].foreign["h1-c0"] = 59000
    for _ in range(20):
        farm.tick()
    alert = Decision.objects.get(reason="pressure")
    assert (alert.refusal, alert.service, alert.card.uuid) == ("no_victim", None, "h1-c0")
    assert alert.numbers["cause"] == "external"
    assert Pool.objects.get().refused_at is None, "an alert is no wish that found no room"
    farm.call("late")
    farm.until(lambda: farm.ready("late"))
    assert farm.ready("late")[0].cards == ["h2-c0"]


def test_each_card_with_an_alert_has_a_row_of_its_own(farm: PaperFarm) -> None:
    factories.host("h1", cards=2)
    for card in farm.hosts["h1"].cards:
        online(farm, card)
        farm.hosts["h1"].foreign[card] = 59000
    for _ in range(5):
        farm.tick()
    assert sorted(Decision.objects.filter(reason="pressure").values_list("card__uuid", flat=True)) == ["h1-c0", "h1-c1"]


# Samples


@pytest.fixture
def paper(db: None) -> PaperHost:
    factories.host("h1", cards=1)
    return PaperHost("h1", ["h1-c0"])


def sample(paper: PaperHost, at: float, used_mib: int | None, taken_at: float | None = None) -> int:
    paper.foreign["h1-c0"] = (used_mib or 0) - 600
    report = paper.report(at)
    cards = [replace(card, free_mib=None if used_mib is None else card.free_mib) for card in report.cards]
    report = replace(report, cards=cards, cards_at=at if taken_at is None else taken_at)
    ingest.ingest({"h1": (at, encode(report))}, at, DEFAULT)
    return Card.objects.get().pressed_samples


def test_samples_are_counted_and_relief_ends_the_count(paper: PaperHost) -> None:
    Card.objects.update(sampled_at=None)
    used = [76000, 76200, 76200, 76200, 75000, 69700, 69000, 76200, 75000]
    assert [sample(paper, START + i, mib) for i, mib in enumerate(used)] == [0, 1, 2, 2, 2, 2, 0, 1, 0]


def test_the_same_sample_told_twice_counts_once(paper: PaperHost) -> None:
    Card.objects.update(sampled_at=None)
    assert sample(paper, START, 76200) == 1
    assert sample(paper, START + 1, 76200, taken_at=START) == 1
    assert sample(paper, START + 2, 76200) == 2


def test_what_cannot_be_measured_neither_presses_nor_relieves(paper: PaperHost) -> None:
    Card.objects.update(sampled_at=None)
    assert [sample(paper, START + i, mib) for i, mib in enumerate([76200, None, 76200, None])] == [1, 1, 2, 2]


# What the journal remembers


def entry(service: object, ago_s: float, verb: str = "drain", reason: str = "pressure", **numbers: object) -> None:
    if reason == "pressure":
        numbers = {"card": "c1", "frees_mib": 5000, **numbers}
    Decision.objects.create(
        at=NOW - timedelta(seconds=ago_s), verb=verb, reason=reason, service=service, numbers=numbers
    )


def ready(service: object, ago_s: float) -> None:
    Event.objects.create(at=NOW - timedelta(seconds=ago_s), phase="ready", service=service)


def evictions() -> list[tuple[str, bool]]:
    return [(e.service, e.open) for e in lately.evictions(NOW - timedelta(seconds=1800))]


@pytest.mark.django_db
def test_an_eviction_is_open_until_a_copy_is_ready_again() -> None:
    one, other = factories.service("one"), factories.service("other")
    entry(one, 60)
    assert lately.evictions(NOW - timedelta(seconds=1800)) == (Eviction("one", "c1", START - 60, open=True),)
    ready(one, 70)
    ready(other, 50)
    assert evictions() == [("one", True)]
    ready(one, 50)
    assert evictions() == [("one", False)]


@pytest.mark.django_db
def test_each_copy_that_became_ready_closes_one() -> None:
    one = factories.service("one")
    entry(one, 60)
    entry(one, 59)
    ready(one, 40)
    assert evictions() == [("one", False), ("one", True)]
    ready(one, 30)
    assert evictions() == [("one", False), ("one", False)]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("verb", "reason", "is_open"),
    [("stop", "operator", False), ("drain", "idle", False), ("drain", "fault", True), ("start", "rebuild", True)],
)
def test_who_lets_the_service_go_afterwards_closes_it(verb: str, reason: str, is_open: bool) -> None:
    one = factories.service("one")
    entry(one, 60)
    entry(one, 50, verb, reason)
    assert evictions() == [("one", is_open)]


@pytest.mark.django_db
def test_a_load_or_sleeper_that_was_stopped_is_remembered_and_not_rebuilt() -> None:
    one = factories.service("one")
    entry(one, 60, "stop")
    assert evictions() == [("one", False)]


@pytest.mark.django_db
def test_old_ones_refused_ones_and_the_end_of_a_drain_are_none() -> None:
    one = factories.service("one")
    entry(one, 1900)
    Decision.objects.create(at=NOW, verb="stop", reason="pressure", service=one, numbers={"lasted_s": 3})
    Decision.objects.create(
        at=NOW, verb="drain", reason="pressure", service=one, refusal="not_managed", numbers={"frees_mib": 1}
    )
    assert evictions() == []
