"""A repack proposal on a paper farm: by itself where the pool enforces, move by move where it waits for a person."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from console import state
from console.accounts.models import Role, User
from console.catalog.models import Replica, Service
from console.fleet.models import Card, Pool
from console.jobs.models import Daily, Job
from console.journal.models import Decision
from console.policies.models import PolicyValue
from console.repack import proposals, searches
from console.repack.models import Move, Proposal
from console.state import moment
from scheduler import repack_cpsat
from scheduler.repack import propose
from tests import factories
from tests.control.conftest import START, PaperFarm
from workers.control import fragments, moves
from workers.jobs import run

NOW = moment(START)
Status = Move.Status


@pytest.fixture
def pool(farm: PaperFarm) -> Pool:
    """Two cards of two hosts, each half used; 60 GiB are expected and fit nowhere."""
    for name, value in {"repack_from_min": 0, "repack_until_min": 1439}.items():
        PolicyValue.objects.create(name=name, value=value)
    for host, weights in (("h1", 16_000), ("h2", 20_000)):
        factories.host(host, cards=1)
        service = factories.service(f"on-{host}", profile="lowfreq", tier="warm", weights_mib=weights)
        factories.replica(service, Card.objects.get(uuid=f"{host}-c0"), loaded_at=NOW, last_call_at=NOW)
    factories.service("large", weights_mib=50_000, tier="cold", starts_28d=20)
    farm.tick()
    farm.until(lambda: Replica.objects.filter(phase="ready").count() == 2)
    return Pool.objects.get()


def proposal(farm: PaperFarm) -> Proposal:
    rules = state.policy()
    found = propose(state.world(farm.now, farm.gateways(), rules=rules), rules, farm.now, "default")
    row = proposals.keep(found, moment(farm.now), None, None)
    assert row is not None
    return row


def statuses(row: Proposal) -> list[str]:
    return list(row.moves.values_list("status", flat=True))


def person() -> User:
    return User.objects.create_user("op", password="x", role=Role.OPERATOR)


def test_an_enforcing_pool_moves_by_itself_and_what_is_stranded_falls(farm: PaperFarm, pool: Pool) -> None:
    fragments.measure(farm.now)
    before = Pool.objects.get().stranded_pct
    row = proposal(farm)
    assert before == pytest.approx(row.before_pct)
    farm.until(lambda: Proposal.objects.get().closed_at is not None, within=90)
    assert statuses(row) == ["done"]
    move = row.moves.get()
    assert move.copy.cards == move.target
    assert move.replica.ended_at is not None
    farm.until(lambda: not Card.objects.exclude(release={}).exists(), within=30)
    fragments.measure(farm.now)
    after = Pool.objects.get().stranded_pct
    assert after == pytest.approx(row.after_pct, abs=0.5)
    assert after < before
    acts = list(Decision.objects.filter(reason="repack", refusal="").order_by("id").values_list("verb", flat=True))
    assert acts == ["start", "drain", "stop"]


def test_the_old_one_serves_until_the_copy_does(farm: PaperFarm, pool: Pool) -> None:
    move = proposal(farm).moves.get()
    name = move.service.name
    for _ in range(60):
        farm.tick()
        assert farm.ready(name), "a moment without anybody who serves"
        if Proposal.objects.get().closed_at is not None:
            return
    raise AssertionError("not moved within a minute")


def test_calls_in_flight_are_waited_for(farm: PaperFarm, pool: Pool) -> None:
    move = proposal(farm).moves.get()
    farm.in_flight[move.replica_id] = 1
    farm.until(lambda: Replica.objects.get(pk=move.replica_id).want == "drained", within=30)
    for _ in range(20):
        farm.tick()
    assert Replica.objects.get(pk=move.replica_id).want == "drained"
    assert statuses(move.proposal) == ["running"]
    farm.in_flight.clear()
    farm.until(lambda: statuses(move.proposal) == ["done"], within=30)


def test_outside_the_window_nothing_begins(farm: PaperFarm, pool: Pool) -> None:
    PolicyValue.objects.filter(name="repack_until_min").update(value=0)
    row = proposal(farm)
    for _ in range(5):
        farm.tick()
    assert statuses(row) == ["proposed"]


@pytest.mark.parametrize(("mode", "acts"), [("suggest", True), ("observe", False)])
def test_where_people_decide_each_move_waits_for_its_click(farm: PaperFarm, pool: Pool, mode: str, acts: bool) -> None:
    Pool.objects.update(mode=mode)
    row = proposal(farm)
    for _ in range(5):
        farm.tick()
    assert statuses(row) == ["proposed"]
    assert proposals.decide(row.moves.get(), Status.APPROVED, person(), moment(farm.now))
    if acts:
        farm.until(lambda: statuses(row) == ["done"], within=90)
    else:
        farm.tick()
        assert statuses(row) == ["approved"]


def test_a_move_is_decided_once(farm: PaperFarm, pool: Pool) -> None:
    Pool.objects.update(mode="suggest")
    move, someone = proposal(farm).moves.get(), person()
    assert proposals.decide(move, Status.SKIPPED, someone, NOW)
    assert not proposals.decide(move, Status.APPROVED, someone, NOW)
    assert not proposals.decide(move, Status.SKIPPED, someone, NOW)
    assert Proposal.objects.get().closed_at == NOW


def test_what_began_cannot_be_skipped(farm: PaperFarm, pool: Pool) -> None:
    row = proposal(farm)
    farm.tick()
    assert statuses(row) == ["running"]
    assert not proposals.decide(row.moves.get(), Status.SKIPPED, person(), NOW)


def test_a_move_skipped_in_the_same_moment_is_not_begun(farm: PaperFarm, pool: Pool) -> None:
    move = proposal(farm).moves.get()
    assert proposals.begin(move.pk, NOW)
    assert not proposals.begin(move.pk, NOW)


def two_moves(farm: PaperFarm) -> Proposal:
    """A second one that is as good as the first."""
    row = proposal(farm)
    first = row.moves.get()
    other = Replica.objects.filter(ended_at=None).exclude(pk=first.replica_id).get()
    Move.objects.create(
        proposal=row,
        number=2,
        service=other.service,
        replica=other,
        source=first.target,
        target=first.source,
        after_pct=0,
    )
    return row


def test_the_first_failed_move_stops_the_rest(farm: PaperFarm, pool: Pool) -> None:
    row = two_moves(farm)
    first = row.moves.first()
    farm.hosts[Card.objects.get(uuid=first.target[0]).host.name].fail.add(first.service.name)
    farm.until(lambda: Proposal.objects.get().closed_at is not None, within=60)
    assert statuses(row) == ["failed", "skipped"]
    assert [m.why for m in row.moves.all()] == ["load_failed", "stopped"]
    farm.until(
        lambda: Replica.objects.get(pk=first.copy_id or Move.objects.get(pk=first.pk).copy_id).ended_at, within=30
    )
    assert farm.ready(first.service.name), "the old one serves on"


def test_a_move_that_is_no_good_any_more_is_skipped_and_the_next_is_asked(farm: PaperFarm, pool: Pool) -> None:
    row = two_moves(farm)
    first = row.moves.first()
    Service.objects.filter(pk=first.service_id).update(whitelisted_until=moment(farm.now) + timedelta(days=1))
    farm.until(lambda: Proposal.objects.get().closed_at is not None, within=90)
    assert [m.status for m in row.moves.all()] == ["skipped", "done"]
    assert row.moves.first().why == "stays"


def test_what_has_not_begun_in_time_lapses(farm: PaperFarm, pool: Pool) -> None:
    PolicyValue.objects.filter(name="repack_until_min").update(value=0)
    row = proposal(farm)
    proposals.lapse(row.until - timedelta(seconds=1))
    assert statuses(row) == ["proposed"]
    proposals.lapse(row.until)
    assert statuses(row) == ["skipped"]
    assert Proposal.objects.get().closed_at == row.until


def test_a_move_whose_pool_is_only_observed_now_ends_with_its_proposal(farm: PaperFarm, pool: Pool) -> None:
    row = proposal(farm)
    farm.until(lambda: statuses(row) == ["running"], within=30)
    Pool.objects.update(mode="observe")
    farm.until(lambda: len(farm.ready(row.moves.get().service.name)) == 2, within=30)
    for _ in range(5):
        farm.tick()
    assert statuses(row) == ["running"]
    assert Replica.objects.filter(want="ready", ended_at=None, service=row.moves.get().service).count() == 2
    proposals.lapse(row.until)
    assert statuses(row) == ["failed"]
    assert Proposal.objects.get().closed_at == row.until


def test_a_proposal_whose_services_are_gone_is_closed(farm: PaperFarm, pool: Pool) -> None:
    PolicyValue.objects.filter(name="repack_until_min").update(value=0)
    row = proposal(farm)
    Service.objects.filter(pk=row.moves.get().service_id).delete()
    proposals.lapse(NOW)
    assert Proposal.objects.get().closed_at == NOW


def test_a_new_proposal_takes_the_place_of_one_that_has_not_begun(farm: PaperFarm, pool: Pool) -> None:
    first = proposal(farm)
    second = proposal(farm)
    assert statuses(first) == ["skipped"]
    assert Proposal.objects.get(closed_at=None) == second
    farm.tick()
    rules = state.policy()
    found = propose(state.world(farm.now, farm.gateways(), rules=rules), rules, farm.now, "default")
    assert proposals.keep(found, NOW, None, None) is None, "a move of it is running"


# The search as a job


@pytest.fixture
def quick() -> None:
    PolicyValue.objects.create(name="repack_search_s", value=2)


def searched(pool: Pool) -> Job:
    assert searches.ask(pool, None)
    job = Job.objects.get()
    run.work(job.pk)
    job.refresh_from_db()
    return job


def heard() -> None:
    """The rows of the paper farm as of this moment: a job has no clock of its own."""
    from console.fleet.models import Host

    Host.objects.update(seen_at=timezone.now())


def test_a_search_is_a_job_with_a_proposal(farm: PaperFarm, pool: Pool, quick: None) -> None:
    heard()
    job = searched(pool)
    assert (job.state, job.progress) == ("done", 1.0)
    row = Proposal.objects.get(closed_at=None)
    assert row.job == job
    assert row.after_pct < row.before_pct


def test_without_the_solver_the_heuristic_stands(farm: PaperFarm, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repack_cpsat, "available", lambda: False)
    heard()
    began = time.monotonic()
    assert searched(pool).state == "done"
    assert time.monotonic() - began < state.policy().repack_search_s
    assert Proposal.objects.get().method == "heuristic"


def test_a_cancelled_search_leaves_the_first_answer(farm: PaperFarm, pool: Pool) -> None:
    heard()
    searches.ask(pool, None)
    job = Job.objects.get()
    Job.objects.update(cancel=True)
    run.work(job.pk)
    job.refresh_from_db()
    assert job.state == "cancelled"


def test_one_search_of_a_pool_at_a_time(farm: PaperFarm, pool: Pool) -> None:
    assert searches.ask(pool, None)
    assert not searches.ask(pool, None)
    assert searches.ask(factories.pool("other"), None)


@pytest.mark.parametrize(("mode", "minute"), [("enforce", "repack_from_min"), ("suggest", "repack_propose_min")])
def test_once_a_day_each_pool_that_is_worth_it(farm: PaperFarm, pool: Pool, mode: str, minute: str) -> None:
    """Proposals that people approve come while they are at work."""
    PolicyValue.objects.update_or_create(name=minute, defaults={"value": 600})
    Pool.objects.update(mode=mode, free_mib=1000, stranded_mib=400)
    at_ten = timezone.localtime(NOW).replace(hour=10, minute=0, second=0, microsecond=0)
    assert moves.look(at_ten - timedelta(hours=3)) == 0, "a new site begins with the next one"
    assert moves.look(at_ten - timedelta(minutes=1)) == 0
    assert moves.look(at_ten + timedelta(minutes=1)) == 1
    assert moves.look(at_ten + timedelta(minutes=2)) == 0
    Job.objects.update(state="done")
    Pool.objects.update(stranded_mib=100)
    assert moves.look(at_ten + timedelta(days=1, minutes=1)) == 0, "too little is stranded"
    assert Daily.objects.filter(name=f"repack_{mode}").exists()


def test_observing_pools_are_not_searched_by_themselves(farm: PaperFarm, pool: Pool) -> None:
    Pool.objects.update(mode="observe", free_mib=1000, stranded_mib=900)
    moves.look(NOW)
    assert moves.look(NOW + timedelta(days=1)) == 0


def test_what_was_lent_is_always_worth_a_look() -> None:
    rules = state.DEFAULT
    assert moves.worth(Pool(purpose="elastic"), rules)
    assert not moves.worth(Pool(purpose="ondemand"), rules)
    assert moves.worth(Pool(purpose="ondemand", free_mib=100, stranded_mib=15), rules)


def test_closed_proposals_go_after_half_a_year(farm: PaperFarm, pool: Pool) -> None:
    for days in (None, 1, 181):
        closed = None if days is None else timezone.now() - timedelta(days=days)
        sizes = {"free_mib": 1, "stranded_before_mib": 0, "stranded_after_mib": 0, "empty_before": 0, "empty_after": 0}
        Proposal.objects.create(pool=pool, at=timezone.now(), until=timezone.now(), closed_at=closed, **sizes)
    run.work(Job.objects.create(kind="prune").pk)
    assert Proposal.objects.count() == 2
