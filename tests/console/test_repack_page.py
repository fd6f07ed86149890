"""The repack page: pools with what is stranded, proposals as numbered moves, and the buttons of operators."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from console.catalog.models import Replica, Service
from console.fleet.models import Card, Pool
from console.jobs.models import Job
from console.repack import searches
from console.repack.models import Move, Proposal
from scheduler import repack_cpsat
from tests.console.addresses import move, proposal

pytestmark = pytest.mark.django_db


def a_proposal(moves: int = 3, **fields) -> Proposal:
    now = timezone.now()
    sizes = {"free_mib": 120_000, "stranded_before_mib": 42_000, "stranded_after_mib": 12_000}
    row = Proposal.objects.create(
        pool=Pool.objects.first(),
        at=now,
        until=now + timedelta(hours=30),
        empty_before=0,
        empty_after=1,
        **sizes,
        **fields,
    )
    cards = list(Card.objects.order_by("number")[: moves + 1])
    copies = list(Replica.objects.filter(ended_at=None)[:moves])
    for number, copy in enumerate(copies, 1):
        Move.objects.create(
            proposal=row,
            number=number,
            service=copy.service,
            replica=copy,
            source=[cards[0].uuid],
            target=[cards[number].uuid],
            after_pct=35 - 8 * number,
        )
    return row


def text(client) -> str:
    answer = client.get("/repack/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_an_empty_page_says_what_to_do(browse):
    page = text(browse("operator"))
    assert "没有待办的方案" in page
    assert "现在找方案" in page


def test_a_proposal_is_numbered_moves_with_before_and_after(browse):
    row = a_proposal()
    page = text(browse("operator"))
    assert "35.0% → 10.0%" in page
    assert "空卡 0 → 1" in page
    for one in row.moves.all():
        assert one.service.label in page
        assert f"{one.after_pct:.1f}%" in page
    assert page.count("/skip") == 3


def test_who_only_looks_has_no_buttons(browse):
    a_proposal()
    page = text(browse("auditor"))
    assert "35.0% → 10.0%" in page
    assert "<button" not in page.split("<main", 1)[1].split("</main>", 1)[0]


@pytest.mark.parametrize("role", ["tenant_admin", "tenant_member"])
def test_companies_do_not_see_it(browse, role):
    assert browse(role).get("/repack/").status_code == 403


def test_a_click_approves_one_move_and_another_skips(browse):
    row, client = a_proposal(), browse("operator")
    first, second, third = row.moves.all()
    client.post(f"/repack/moves/{first.pk}/approve")
    client.post(f"/repack/moves/{second.pk}/skip")
    assert [m.status for m in row.moves.all()] == ["approved", "skipped", "proposed"]
    assert {m.decided_by.username for m in row.moves.exclude(pk=third.pk)} == {"operator"}
    assert "人工略过" in text(client)


def test_all_that_is_left_is_approved_at_once(browse):
    row, client = a_proposal(), browse("operator")
    first = row.moves.first()
    client.post(f"/repack/moves/{first.pk}/skip")
    client.post(f"/repack/proposals/{row.pk}/approve")
    assert [m.status for m in row.moves.all()] == ["skipped", "approved", "approved"]


def test_what_began_meanwhile_is_left_as_it_is(browse):
    row, client = a_proposal(1), browse("operator")
    row.moves.update(status="running")
    answer = client.post(f"/repack/moves/{row.moves.get().pk}/skip", follow=True)
    assert "已经不是刚才的样子" in answer.content.decode()
    assert row.moves.get().status == "running"


def test_reading_changes_nothing(browse):
    client = browse("operator")
    for address in (f"/repack/moves/{move()['pk']}/approve", f"/repack/proposals/{proposal()['pk']}/approve"):
        assert client.get(address).status_code == 405
    assert Move.objects.get().status == "proposed"


def test_a_search_is_asked_for_once_and_can_be_stopped(browse):
    pool, client = Pool.objects.first(), browse("operator")
    for _ in range(2):
        client.post(f"/repack/pools/{pool.pk}/search")
    job = Job.objects.get(kind=searches.KIND)
    assert job.arguments["pool"] == pool.name
    assert "停下" in text(client)
    Job.objects.update(state="running", progress=0.4)
    assert "40%" in text(client)
    client.post(f"/repack/jobs/{job.pk}/cancel")
    job.refresh_from_db()
    assert job.cancel


def test_one_that_waits_ends_at_once(browse):
    browse("operator").post(f"/repack/pools/{Pool.objects.first().pk}/search")
    job = Job.objects.get(kind=searches.KIND)
    assert searches.cancel(job.pk)
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert not searches.cancel(job.pk)


def test_jobs_of_another_kind_are_not_this_pages_to_stop(browse):
    other = Job.objects.create(kind="prune")
    assert browse("operator").post(f"/repack/jobs/{other.pk}/cancel").status_code == 404


def test_what_was_done_stands_below(browse):
    row = a_proposal(2, closed_at=timezone.now())
    row.moves.update(status="done", began_at=timezone.now(), ended_at=timezone.now())
    Move.objects.filter(proposal=row, number=2).update(status="failed", why="load_failed")
    page = text(browse("operator"))
    assert "做过的" in page
    assert "多次装载失败" in page


def test_without_the_solver_the_page_says_so(browse, monkeypatch):
    assert "没有装精确求解器" not in text(browse("operator"))
    monkeypatch.setattr(repack_cpsat, "available", lambda: False)
    assert "没有装精确求解器" in text(browse("operator"))


def test_pools_say_what_of_their_free_memory_is_of_no_use(browse):
    Pool.objects.update(free_mib=102_400, stranded_mib=35_840)
    assert "35.0%" in text(browse("auditor"))


def test_the_number_of_queries_does_not_grow_with_moves(browse, django_assert_max_num_queries):
    a_proposal(12)
    client = browse("operator")
    with django_assert_max_num_queries(16):
        text(client)


def test_a_service_that_is_gone_takes_its_move_along(browse):
    row = a_proposal(2)
    Service.objects.filter(pk=row.moves.first().service_id).delete()
    assert "35.0%" in text(browse("operator"))
