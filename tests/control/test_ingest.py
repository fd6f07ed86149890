"""Reports in: whose word counts for what, and what one report changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.catalog.models import LoadTime, Replica, Service
from console.fleet.models import Card, Host
from console.journal.models import Event
from console.state import moment
from console.wire import Gateways, Registration, ServiceCount
from scheduler.policy import DEFAULT
from tests import factories
from tests.control.paper import PaperHost
from workers.control import ingest
from workers.messages import HostReport, ReplicaReport, encode

NOW = 1_795_949_446.0


@pytest.fixture
def host(db: None) -> Host:
    return factories.host("h1", cards=2)


@pytest.fixture
def paper(host: Host) -> PaperHost:
    return PaperHost("h1", ["h1-c0", "h1-c1"])


def take(report: HostReport, name: str = "h1", now: float = NOW) -> ingest.Ingested:
    return ingest.ingest({name: (now, encode(report))}, now, DEFAULT)


def seen(row: Replica, phase: str, **fields: object) -> ReplicaReport:
    return ReplicaReport(id=row.pk, attempt=1, phase=phase, cards=row.cards, since=NOW, **fields)


def test_it_writes_the_host_and_its_cards(paper: PaperHost) -> None:
    paper.foreign["h1-c1"] = 5000
    assert take(paper.report(NOW)).hosts == {"h1"}
    host, card = Host.objects.get(), Card.objects.get(uuid="h1-c1")
    assert host.seen_at == moment(NOW)
    assert host.bandwidth_mib_s == 2000
    assert card.free_mib == 81920 - 600 - 5000


def test_an_older_report_of_the_same_life_changes_nothing(paper: PaperHost) -> None:
    old = paper.report(NOW)
    take(paper.report(NOW + 1), now=NOW + 1)
    assert not take(replace(old, version="stale"), now=NOW + 2).hosts
    assert Host.objects.get().version == "paper"


def test_a_new_life_begins_to_count_anew(paper: PaperHost) -> None:
    for _ in range(3):
        take(paper.report(NOW))
    assert take(replace(paper.report(NOW + 1), boot="b2", seq=1)).hosts == {"h1"}


def test_a_host_speaks_for_itself_only(paper: PaperHost) -> None:
    factories.host("h2")
    other = factories.replica(factories.service(), Card.objects.get(uuid="h2-c0"))
    report = replace(paper.report(NOW), replicas=[seen(other, "failed")])
    assert not take(report, name="h2").hosts  # the stream's key says who speaks
    take(report)
    other.refresh_from_db()
    assert other.phase == "ready"


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b"\xff", b'{"host": "h1"}'])
def test_what_is_no_report_is_refused(host: Host, body: bytes) -> None:
    assert not ingest.ingest({"h1": (NOW, body)}, NOW, DEFAULT).hosts


def test_memory_that_cannot_be_measured_is_unknown(paper: PaperHost) -> None:
    report = paper.report(NOW)
    take(replace(report, cards=[replace(report.cards[0], free_mib=None), report.cards[1]]))
    assert Card.objects.get(uuid="h1-c0").free_mib is None
    take(replace(paper.report(NOW + 1), cards_at=None, cards=[]))
    assert Card.objects.get(uuid="h1-c1").free_mib is None


def test_a_card_that_is_not_listed_any_more_is_missing_until_it_is_listed_again(paper: PaperHost) -> None:
    take(paper.report(NOW))
    report = paper.report(NOW + 1)
    swapped = replace(report.cards[1], uuid="GPU-new")
    take(replace(report, cards=[report.cards[0], swapped]))
    stays, gone = Card.objects.order_by("index")
    assert (stays.free_mib, stays.healthy) == (81320, True)
    assert (gone.free_mib, gone.healthy, gone.note) == (None, False, ingest.MISSING)
    assert not Card.objects.filter(uuid="GPU-new").exists(), "a new card is approved by a person"
    take(paper.report(NOW + 2))
    assert Card.objects.get(pk=gone.pk).healthy


def test_a_cards_capability_is_what_its_driver_says_where_it_says_so(paper: PaperHost) -> None:
    report = paper.report(NOW)
    take(replace(report, cards=[replace(report.cards[0], compute_cap=8.9), report.cards[1]]))
    assert [card.compute_cap for card in Card.objects.order_by("index")] == [8.9, 8.0]


def test_a_start_that_ended_teaches_how_long_it_takes(paper: PaperHost) -> None:
    service = factories.service()
    row = factories.replica(service, Card.objects.get(uuid="h1-c0"), phase="starting")
    Service.objects.update(failures=[{"card": "x", "at": 1.0, "code": "c", "message": "", "fatal": False}])
    take(replace(paper.report(NOW), replicas=[seen(row, "ready", took_s=9.5, took="start")]))
    row.refresh_from_db()
    assert (row.phase, row.loaded_at) == ("ready", moment(NOW))
    assert LoadTime.objects.get().seconds == [9.5]
    assert Service.objects.get().failures == []


def test_only_the_last_ten_loads_are_kept(paper: PaperHost) -> None:
    service = factories.service()
    row = factories.replica(service, Card.objects.get(uuid="h1-c0"), phase="starting")
    for number in range(12):
        Replica.objects.update(phase="starting")
        take(replace(paper.report(NOW), replicas=[seen(row, "ready", took_s=float(number), took="start")]))
    assert LoadTime.objects.get().seconds == [float(n) for n in range(2, 12)]


def test_a_failure_is_counted_once_with_its_true_reason(paper: PaperHost) -> None:
    row = factories.replica(factories.service(), Card.objects.get(uuid="h1-c0"), phase="starting")
    failed = seen(row, "failed", fault="out_of_memory", fault_text="ValueError: Free memory", fatal=False)
    for _ in range(3):
        take(replace(paper.report(NOW), replicas=[failed]))
    row.refresh_from_db()
    assert (row.failures_here, row.fault, row.failed_at) == (1, "out_of_memory", moment(NOW))


def test_a_report_of_an_attempt_that_was_never_ordered_is_ignored(paper: PaperHost) -> None:
    row = factories.replica(factories.service(), Card.objects.get(uuid="h1-c0"), phase="starting")
    take(replace(paper.report(NOW), replicas=[replace(seen(row, "ready"), attempt=2)]))
    row.refresh_from_db()
    assert row.phase == "starting"


def test_stopped_ends_a_replica_only_when_that_was_wanted(paper: PaperHost) -> None:
    card = Card.objects.get(uuid="h1-c0")
    vanished = factories.replica(factories.service("a"), card)
    wanted = factories.replica(factories.service("b"), card, want="stopped", phase="draining")
    take(replace(paper.report(NOW), replicas=[seen(vanished, "stopped"), seen(wanted, "stopped")]))
    vanished.refresh_from_db()
    wanted.refresh_from_db()
    assert vanished.ended_at is None
    assert wanted.ended_at == moment(NOW)


def test_memory_of_a_stopped_replica_is_releasing_until_two_samples_show_it_back(paper: PaperHost) -> None:
    card = Card.objects.get(uuid="h1-c0")
    row = factories.replica(factories.service(), card, want="stopped", phase="draining", measured_mib=20000)
    paper.lagging = [(2, "h1-c0", 20000)]
    take(replace(paper.report(NOW), replicas=[seen(row, "draining", measured_mib=20000)]))
    held = []
    for second in range(1, 6):
        paper.lagging = [(1, "h1-c0", 20000)] if second < 3 else []
        take(replace(paper.report(NOW + second), replicas=[seen(row, "stopped")]), now=NOW + second)
        held.append(Card.objects.get(uuid="h1-c0").release.get("releasing_mib", 0))
    assert held[0] == held[1] == held[2] >= 20000  # the third sample is the first to show it back
    assert held[3:] == [0, 0]


def test_figures_of_a_whole_farm_are_written_in_as_many_statements_as_those_of_one_host(
    paper: PaperHost, django_assert_num_queries: Any
) -> None:
    service = factories.service()
    rows = [factories.replica(service, Card.objects.get(uuid="h1-c0"))]
    for name in ("h2", "h3"):
        factories.host(name, cards=3)
        rows += [factories.replica(service, card) for card in Card.objects.filter(host__name=name)]
    papers = [PaperHost(name, list(Card.objects.filter(host__name=name).values_list("uuid", flat=True))) for name in
              ("h1", "h2", "h3")]  # fmt: skip

    def moved(papers: list[PaperHost], second: int) -> dict[str, tuple[float, bytes]]:
        """Every figure is another one than a second ago."""
        bodies = {}
        for one in papers:
            here = [row for row in rows if row.host.name == one.name]
            said = [seen(row, "ready", running=second, waiting=1, kv_used_pct=row.pk / 2 + second) for row in here]
            one.foreign = {card: 100 + second for card in one.cards}
            bodies[one.name] = (NOW + second, encode(replace(one.report(NOW + second), replicas=said)))
        return bodies

    ingest.ingest(moved(papers, 1), NOW + 1, DEFAULT)
    alone, all_three = moved(papers[:1], 2), moved(papers, 3)
    with CaptureQueriesContext(connection) as asked:
        ingest.ingest(alone, NOW + 2, DEFAULT)
    with django_assert_num_queries(len(asked)):
        ingest.ingest(all_three, NOW + 3, DEFAULT)
    told = Replica.objects.order_by("pk").values_list("running", "kv_used_pct")
    assert list(told) == [(3, row.pk / 2 + 3) for row in rows]
    assert set(Card.objects.values_list("free_mib", flat=True)) == {81920 - 600 - 103}


def test_a_figure_that_stands_is_not_written(paper: PaperHost) -> None:
    row = factories.replica(factories.service(), Card.objects.get(uuid="h1-c0"))
    take(replace(paper.report(NOW), replicas=[seen(row, "ready", running=1)]))
    with CaptureQueriesContext(connection) as asked:
        take(replace(paper.report(NOW + 1), replicas=[seen(row, "ready", running=1)]), now=NOW + 1)
    written = [query["sql"] for query in asked if "UPDATE" in query["sql"]]
    assert not [sql for sql in written if "catalog_replica" in sql]
    assert not [sql for sql in written if "fleet_card" in sql and "free_mib" in sql]


def gateways(name: str, at: float, in_flight: dict[str, int] | None = None) -> Gateways:
    return Gateways(True, (Registration("gw", "b", NOW, 1, in_flight or {}, {name: ServiceCount(last_call_at=at)}),))


def test_the_last_call_is_remembered_coarsely(host: Host) -> None:
    service = factories.service()
    row = factories.replica(service, Card.objects.get(uuid="h1-c0"))
    for at in (NOW, NOW + 3, NOW + 9):
        ingest.take_calls(gateways("hotline", at), NOW + 10)
    service.refresh_from_db()
    row.refresh_from_db()
    assert service.last_call_at == row.last_call_at == moment(NOW + 9)
    ingest.take_calls(gateways("hotline", NOW + 2), NOW + 10)
    service.refresh_from_db()
    assert service.last_call_at == moment(NOW + 9)


def test_a_busy_replica_was_called_now_and_a_call_of_the_future_is_now(host: Host) -> None:
    service = factories.service()
    row = factories.replica(service, Card.objects.get(uuid="h1-c0"), last_call_at=moment(NOW - 60))
    ingest.take_calls(gateways("hotline", NOW + 999, {str(row.pk): 2, "x": 1}), NOW)
    service.refresh_from_db()
    row.refresh_from_db()
    assert service.last_call_at == row.last_call_at == moment(NOW)


def test_the_journal_tells_what_became_of_a_replica(paper: PaperHost) -> None:
    row = factories.replica(factories.service(), Card.objects.get(uuid="h1-c0"), phase="starting")
    Replica.objects.filter(pk=row.pk).update(want_since=moment(NOW - 12))
    report = paper.report(NOW)
    take(replace(report, replicas=[seen(row, "ready", took_s=9.6, took="start")]))
    take(replace(paper.report(NOW + 1), replicas=[seen(row, "ready", took_s=9.6, took="start")]), now=NOW + 1)
    take(replace(paper.report(NOW + 2), replicas=[seen(row, "failed", fault="crashed", fault_text="exit 137")]))
    failed, ready = Event.objects.all()  # newest first, and each once
    assert (ready.phase, ready.seconds, ready.how, ready.card.uuid) == ("ready", 9.6, "start", "h1-c0")
    assert (failed.phase, failed.how, failed.text, failed.service_id) == (
        "failed",
        "crashed",
        "exit 137",
        row.service_id,
    )


def test_what_never_ran_has_not_stopped(paper: PaperHost) -> None:
    row = factories.replica(factories.service(), Card.objects.get(uuid="h1-c0"), phase="stopped", phase_attempt=0)
    take(replace(paper.report(NOW), replicas=[seen(row, "stopped")]))
    assert not Event.objects.exists()
