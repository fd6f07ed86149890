"""A job is a row: taken once, with progress, cancellable, and taken over when its worker dies."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from console.catalog.models import Service
from console.jobs.models import Daily, Job
from console.journal.models import Advice, Decision, Notice, ReclaimDay
from tests import factories
from workers.control import look_after
from workers.jobs import run


@pytest.fixture(autouse=True)
def kinds(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(arguments: dict[str, object]) -> Iterator[float]:
        for step in range(4):
            if arguments.get("fails_at") == step:
                raise OSError("disk full")
            if arguments.get("cancelled_at") == step:
                Job.objects.update(cancel=True)
            yield step / 4

    monkeypatch.setitem(run.KINDS, "steps", steps)


@pytest.fixture
def pushed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sent: list[int] = []
    monkeypatch.setattr(look_after, "push", sent.append)
    return sent


def job(**arguments: object) -> Job:
    return Job.objects.create(kind="steps", arguments=arguments)


def test_it_runs_to_the_end() -> None:
    row = job()
    run.work(row.pk)
    row.refresh_from_db()
    assert (row.state, row.progress, row.tries) == ("done", 1.0, 1)


def test_a_second_message_finds_it_taken() -> None:
    row = job()
    run.work(row.pk)
    run.work(row.pk)
    row.refresh_from_db()
    assert row.tries == 1


def test_it_ends_when_cancelled() -> None:
    row = job(cancelled_at=2)
    run.work(row.pk)
    row.refresh_from_db()
    assert (row.state, row.progress) == ("cancelled", 0.25)


def test_its_fault_is_told() -> None:
    row = job(fails_at=1)
    run.work(row.pk)
    row.refresh_from_db()
    assert (row.state, row.note) == ("failed", "OSError: disk full")


def test_a_job_left_behind_is_taken_again_and_given_up_at_last(pushed: list[int]) -> None:
    row = job()
    late = timezone.now() - timedelta(seconds=1)
    for tries in range(1, look_after.MOST_TRIES):
        Job.objects.update(state="running", lease_until=late, tries=tries)
        look_after.run()
        assert Job.objects.get().state == "waiting"
    assert set(pushed) == {row.pk}
    Job.objects.update(state="running", lease_until=late, tries=look_after.MOST_TRIES)
    look_after.run()
    assert Job.objects.get().state == "failed"


def test_a_running_job_is_left_alone(pushed: list[int]) -> None:
    job()
    Job.objects.update(state="running", lease_until=timezone.now() + timedelta(seconds=9))
    look_after.run()
    assert not pushed


def test_daily_work_begins_once_a_day(pushed: list[int]) -> None:
    look_after.run()
    assert not Job.objects.exists()
    Daily.objects.update(done_at=timezone.now() - timedelta(days=1, seconds=1))
    look_after.run()
    look_after.run()
    assert sorted(Job.objects.values_list("kind", flat=True)) == sorted(look_after.DAILY), "each once"


def test_cancel_ends_a_waiting_job_and_asks_a_running_one() -> None:
    waiting, running = job(), job()
    Job.objects.filter(pk=running.pk).update(state="running")
    assert look_after.cancel(waiting.pk)
    assert look_after.cancel(running.pk)
    assert Job.objects.get(pk=waiting.pk).state == "cancelled"
    assert Job.objects.get(pk=running.pk).cancel
    assert not look_after.cancel(waiting.pk)


def test_prune_deletes_what_is_too_old_and_nothing_else() -> None:
    now = timezone.now()
    for days in (1, 179, 181, 400):
        Decision.objects.create(at=now - timedelta(days=days), verb="start", reason="hold")
    row = Job.objects.create(kind="prune")
    run.work(row.pk)
    assert Decision.objects.count() == 2
    assert Job.objects.get(pk=row.pk).state == "done"


def test_advice_and_notices_go_once_they_are_closed_for_long() -> None:
    now, pool = timezone.now(), factories.pool()
    for days in (None, 1, 181):
        closed = None if days is None else now - timedelta(days=days)
        opened = {"opened_at": now - timedelta(days=400), "refreshed_at": now, "closed_at": closed}
        Advice.objects.create(pool=pool, subject=f"s#{days}", verb="start", reason="hold", told="not_managed", **opened)
        Notice.objects.create(kind="thrash", subject=f"s{days}", **opened)
    for days in (1, 400):
        ReclaimDay.objects.create(day=(now - timedelta(days=days)).date(), service=a_service())
    run.work(Job.objects.create(kind="prune").pk)
    assert (Advice.objects.count(), Notice.objects.count(), ReclaimDay.objects.count()) == (2, 2, 1)


def a_service() -> Service:
    return Service.objects.first() or factories.service()
