"""Decisions taken in another system: signed, named, once; and what the site tells people about requests by itself."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from console.accounts.models import Absence
from console.audit.models import Entry as Audited
from console.journal.models import Notice
from console.requests.elsewhere import sign
from console.requests.models import Entry, Request, State
from tests.console import rows
from tests.console.asking import asked, decide, filed, local, service, text
from workers.control import requests

pytestmark = pytest.mark.django_db
SECRET = "between two systems"


@pytest.fixture(autouse=True)
def _secret(settings):
    settings.DECISIONS_SECRET = SECRET


def send(row: Request, age_s: int = 0, secret: str = SECRET, **more: object) -> tuple[int, dict[str, object]]:
    given = {"person": "approver", "word": "approve", "reference": "OA-2026-118", **more}
    body, at = json.dumps(given).encode(), int(time.time()) - age_s
    client, address = Client(enforce_csrf_checks=True), f"/api/v1/requests/{row.pk}/decision"
    answer = client.post(
        address,
        body,
        content_type="application/json",
        headers={"X-Gongka-Signature": sign(secret, at, address, body)},
    )
    return answer.status_code, json.loads(answer.content) if answer["Content-Type"] == "application/json" else {}


def test_a_signed_decision_names_who_took_it(farm):
    row = filed()
    status, said = send(row, text="按会议纪要")
    row.refresh_from_db()
    assert (status, said) == (200, {"state": "in_force", "version": row.version})
    assert (row.first_by, row.conditions) == (rows.person("approver"), "按会议纪要")
    assert service().whitelisted_until == row.until
    assert row.consequences["cards"]
    assert row.entries.get(act=Entry.Act.APPROVED).numbers["reference"] == "OA-2026-118"
    told = Audited.objects.latest("id")
    assert (told.username, told.act) == ("approver", "api-request-decision")


def test_the_same_message_again_is_the_same_outcome_and_another_finds_it_decided(farm):
    row = filed()
    assert send(row) == send(row)
    assert Entry.objects.filter(act=Entry.Act.APPROVED).count() == 1
    assert send(row, word="reject", text="晚了")[0] == 409
    assert Request.objects.get().state == State.IN_FORCE


@pytest.mark.parametrize(
    ("more", "status", "error"),
    [
        ({"secret": "another"}, 401, "signature"),
        ({"age_s": 3600}, 401, "signature"),
        ({"age_s": -3600}, 401, "signature"),
        ({"person": "nobody-here"}, 403, "nobody"),
        ({"person": "operator"}, 403, "not_yours"),
        ({"person": "tenant_admin"}, 403, "own"),
        ({"word": "perhaps"}, 422, "malformed"),
        ({"until": "2027-01-01T10:00"}, 422, "malformed"),
        ({"reference": ""}, 422, "malformed"),
        ({"word": "reject"}, 422, "no_reason"),
        ({"until": "2020-01-01T10:00+08:00"}, 422, "past"),
    ],
)
def test_what_is_not_signed_named_or_clear_changes_nothing(farm, more, status, error):
    row = filed()
    assert send(row, **more) == (status, {"error": error})
    row.refresh_from_db()
    assert (row.state, row.version) == (State.OPEN, 1)


@pytest.mark.parametrize(("path", "body"), [("{}", b"{}"), ("/api/v1/requests/0/decision", b'{"person": "approver"}')])
def test_what_was_signed_for_another_body_or_another_request_is_no_decision(farm, path, body):
    row, at = filed(), int(time.time())
    address = f"/api/v1/requests/{row.pk}/decision"
    header = {"X-Gongka-Signature": sign(SECRET, at, path.replace("{}", address), body)}
    answer = Client().post(address, b'{"person": "approver"}', content_type="application/json", headers=header)
    assert answer.status_code == 401


def test_a_site_without_a_secret_has_no_such_address(farm, settings):
    settings.DECISIONS_SECRET = ""
    assert send(filed(), secret="")[0] == 404


def test_who_is_reminded_and_of_what_ends_soon(browse):
    row, now = filed(**asked(days=2)), time.time()
    assert requests.tell(now) == 0
    requests.tell(now + 86400 + 1)
    notice = Notice.objects.get(kind="waiting", closed_at=None)
    assert notice.numbers["request"] == row.pk
    assert f"申请 {row.pk}" in text(browse("approver").get("/advice/"))
    decide(row)
    requests.tell(now + 60)
    assert [one.kind for one in Notice.objects.filter(closed_at=None)] == ["expiry"]
    assert "到时自己结束" in text(browse("tenant_admin").get("/advice/"))
    assert requests.run(now + 3 * 86400) == 1
    requests.tell(now + 3 * 86400)
    assert not Notice.objects.filter(closed_at=None).exists()
    assert service().whitelisted_until is None


def test_an_urgent_one_is_told_at_once(farm):
    filed("operator", urgent=True)
    requests.tell()
    assert Notice.objects.get(kind="waiting").numbers["review_by"] > time.time()


def test_a_reminder_puts_it_before_all_at_once(browse):
    row, admin = filed(), browse("tenant_admin")
    admin.post(f"/requests/{row.pk}/act", {"act": "remind", "version": str(row.version)})
    assert requests.tell() == 1


def test_an_approver_names_a_deputy_and_comes_back(browse):
    client, deputy = browse("approver"), rows.person("operator")
    sent = {"deputy": str(deputy.pk), "starts_at": local(-1), "until": local(2)}
    assert "代您审批" in text(client.post("/requests/absences", sent, follow=True))
    row = filed()
    assert f"/requests/{row.pk}" in text(browse("operator").get("/requests/review"))
    absence = Absence.objects.get()
    client.post("/requests/absences", {"end": str(absence.pk)})
    assert f"/requests/{row.pk}" not in text(browse("operator").get("/requests/review"))
    wrong = client.post("/requests/absences", sent | {"until": local(-2)})
    assert wrong.status_code == 422


def test_the_form_on_paper_has_what_is_asked_and_what_it_does(browse):
    html = text(browse("approver").get(f"/requests/{filed().pk}/print"))
    for said in ("申请单", "周五前的投标评审", "涉及的卡", "审批人签字"):
        assert said in html, said


def test_the_whole_way_from_asked_to_over(farm):
    """Site time: asked at a wall-clock time, over at that very second."""
    row = decide(filed(**asked(days=1)))
    end = row.until.timestamp()
    assert requests.run(end - 1) == 0
    assert requests.run(end) == 1
    assert timezone.localtime(row.until) < timezone.now() + timedelta(days=1, seconds=1)
