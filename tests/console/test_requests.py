"""Requests on their pages: asked, looked at, decided, taken back; by whom, in whose words."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from console.catalog.models import Replica, Service
from console.journal.models import Change
from console.policies.models import PolicyValue
from console.requests import course
from console.requests.kinds.whitelist import friday
from console.requests.models import Request, State
from tests.console.asking import NAME, another_approver, asked, click, decide, filed, local, seal, service, text

pytestmark = pytest.mark.django_db


def ask(client, **more):
    return client.post("/requests/new/whitelist", asked(**more), follow=True)


@pytest.mark.parametrize("role", ["tenant_admin", "tenant_member"])
def test_a_companys_people_ask_and_the_centre_decides_on_what_it_does(browse, role):
    asker, approver = browse(role), browse("approver")
    assert "已提出" in text(ask(asker))
    row = Request.objects.get()
    assert (row.state, service().whitelisted_until) == (State.OPEN, None), "asking is not having"
    assert "等信息中心决定" in text(asker.get(f"/services/{NAME}"))
    assert not seal(asker, row) or "批准</button>" not in text(asker.get(f"/requests/{row.pk}/weighed"))
    html = text(approver.get(f"/requests/{row.pk}/weighed"))
    for said in ("涉及的卡", "10 号卡", "占着不让的显存", "谁会变冷", "每月多花"):
        assert said in html, said
    page = text(click(approver, row, "approve", "评审完就还"))
    row.refresh_from_db()
    assert (row.state, service().whitelisted_until, row.conditions) == (State.IN_FORCE, row.until, "评审完就还")
    assert "决定时看到的后果" in page
    html = text(asker.get(f"/services/{NAME}"))
    for said in ("白名单至", "周五前的投标评审", "提出", "取消保留"):
        assert said in html, said
    change = Change.objects.get()
    assert (change.subject, change.before) == (row.subject, {"whitelisted_until": None})


def test_the_numbers_are_those_of_the_ledger(browse):
    row, copy = filed(), Replica.objects.get(service__name=NAME)
    click(browse("approver"), row, "approve")
    row.refresh_from_db()
    frozen, of = row.consequences, copy.service
    assert frozen["cards"] == copy.cards
    assert frozen["held_mib"] >= of.weights_mib + of.headroom_mib + copy.kv_granted_mib
    assert frozen["fen_month"] > 0
    Replica.objects.all().delete()
    row.refresh_from_db()
    assert row.consequences == frozen, "frozen at the decision"


def test_an_approver_shortens_it(browse):
    row = filed()
    click(browse("approver"), row, "approve", until=local(1))
    row.refresh_from_db()
    assert row.until < timezone.now() + timedelta(days=1, minutes=1)
    assert service().whitelisted_until == row.until


@pytest.mark.parametrize(("word", "state"), [("reject", State.REJECTED), ("return", State.RETURNED)])
def test_who_says_no_says_why(browse, word, state):
    row, approver = filed(), browse("approver")
    assert "要写原因" in text(click(approver, row, word))
    row.refresh_from_db()
    assert row.state == State.OPEN
    assert "月底前都满" in text(click(approver, row, word, "月底前都满"))
    row.refresh_from_db()
    assert (row.state, service().whitelisted_until) == (state, None)


def test_what_was_returned_is_changed_and_asked_again(browse):
    asker, approver = browse("tenant_admin"), browse("approver")
    row = filed()
    click(approver, row, "return", "太久")
    html = text(asker.get(f"/requests/{row.pk}/again"))
    assert "太久" in html
    version = re.search(r'name="version" value="(\d+)"', html)[1]
    asker.post(f"/requests/{row.pk}/again", asked(days=1, why="一天就够", version=version))
    row.refresh_from_db()
    assert (row.state, row.why) == (State.OPEN, "一天就够")
    assert "这期间有人处理过" in text(browse("tenant_member").get(f"/requests/{row.pk}/again", follow=True))
    click(approver, row, "approve")
    assert service().whitelisted_until == Request.objects.get().until


def test_a_decision_from_a_script_or_an_old_page_changes_nothing(browse):
    row, approver = filed(), browse("approver")
    old = seal(approver, row)
    for sent in ({"word": "approve"}, {"word": "approve", "seal": "made-up"}, {"word": "perhaps", "seal": old}):
        assert "看一眼新的再决定" in text(approver.post(f"/requests/{row.pk}/decision", sent, follow=True))
    another = filed()
    sent = {"word": "approve", "seal": seal(approver, another)}
    assert "看一眼新的再决定" in text(approver.post(f"/requests/{row.pk}/decision", sent, follow=True))
    PolicyValue.objects.create(name="request_seen_s", value=60)
    decide(row, word="return", text="改")
    browse("tenant_admin").post(f"/requests/{row.pk}/again", asked(version=str(row.version)))
    answer = approver.post(f"/requests/{row.pk}/decision", {"word": "approve", "seal": old}, follow=True)
    assert "有人处理过了" in text(answer)
    row.refresh_from_db()
    assert (row.state, row.first_by) == (State.OPEN, None)


def test_an_operator_is_no_approver_and_hurries_only_with_a_review(browse):
    operator = browse("operator")
    row = filed()
    assert 'name="word"' not in text(operator.get(f"/requests/{row.pk}/weighed"))
    click(operator, row, "approve")
    assert Request.objects.get().state == State.OPEN
    ask(operator, urgent="1", why="停机在即")
    urgent = Request.objects.first()
    assert (urgent.state, service().whitelisted_until) == (State.IN_FORCE, urgent.until)
    assert "要复核" in text(browse("approver").get("/requests/review"))
    click(browse("approver"), urgent, "approve")
    urgent.refresh_from_db()
    assert (urgent.unreviewed, urgent.state) == (False, State.IN_FORCE)


def test_a_company_does_not_hurry_and_does_not_see_the_box(browse):
    admin = browse("tenant_admin")
    assert 'name="urgent"' not in text(admin.get("/requests/new/whitelist"))
    assert "只有运维能紧急生效" in text(ask(admin, urgent="1"))
    assert not Request.objects.exists()


@pytest.mark.parametrize("role", ["operator", "tenant_admin"])
def test_it_can_be_taken_back(browse, role):
    row, client = decide(filed()), browse(role)
    assert "从现在起按它的档位管" in text(client.get(f"/services/{NAME}/whitelist/end"))
    assert service().whitelisted_until is not None, "looking is no deed"
    client.post(f"/services/{NAME}/whitelist/end")
    row.refresh_from_db()
    assert (service().whitelisted_until, row.state, row.end_why) == (None, State.ENDED, "revoked")
    assert "现在没有保留" in text(client.post(f"/services/{NAME}/whitelist/end", follow=True))


def test_the_requests_own_page_asks_before_it_ends_it(browse):
    row, client = decide(filed()), browse("tenant_admin")
    html = text(client.get(f"/requests/{row.pk}/end"))
    assert "从现在起不再生效" in html
    client.post(f"/requests/{row.pk}/end", {"to": str(row.version - 1)})
    assert service().whitelisted_until is not None, "another version was looked at"
    client.post(f"/requests/{row.pk}/end", {"to": str(row.version)})
    assert service().whitelisted_until is None


def test_what_nobody_wrote_down_can_be_taken_back_too(browse):
    Service.objects.filter(name=NAME).update(whitelisted_until=timezone.now() + timedelta(days=1))
    client = browse("operator")
    assert "取消保留" in text(client.get(f"/services/{NAME}"))
    client.post(f"/services/{NAME}/whitelist/end")
    assert service().whitelisted_until is None
    assert Change.objects.get().after == {"whitelisted_until": None}


@pytest.mark.parametrize(("given", "said"), [({"until": "2020-01-01T10:00"}, "已经过去"), ({"why": ""}, "gk-bad")])
def test_what_is_missing_or_past_is_an_error_beside_the_field(browse, given, said):
    answer = browse("tenant_admin").post("/requests/new/whitelist", asked() | given)
    assert answer.status_code == 422
    assert said in text(answer)
    assert not Request.objects.exists()


@pytest.mark.parametrize("role", ["manager", "auditor", "approver"])
def test_who_does_not_ask_is_not_asked_what(browse, role):
    client = browse(role)
    for address in ("/requests/new", "/requests/new/whitelist", f"/services/{NAME}/whitelist"):
        assert client.post(address, asked()).status_code == 403


def test_the_lists_are_mine_to_review_and_all(browse):
    row = filed(**asked(why="要看的"))
    admin, approver, auditor = browse("tenant_admin"), browse("approver"), browse("auditor")
    assert "要看的" in text(admin.get("/requests/mine"))
    assert "要看的" not in text(approver.get("/requests/mine"))
    assert "要看的" in text(approver.get("/requests/review"))
    assert "要看的" in text(auditor.get("/requests/"))
    assert "没有等您决定的" in text(auditor.get("/requests/review"))
    assert ">1<" in text(approver.get("/requests/badge"))
    assert ">1<" not in text(admin.get("/requests/badge"))
    decide(row, word="return", text="改")
    assert ">1<" in text(admin.get("/requests/badge"))
    assert "要看的" not in text(approver.get("/requests/?state=in_force"))
    assert "要看的" in text(approver.get("/requests/?kind=whitelist&sort=subject"))


def test_said_withdrawn_reminded_handed(browse):
    row, admin, approver = filed(), browse("tenant_admin"), browse("approver")
    other = another_approver()

    def do(client, act, **more):
        row.refresh_from_db()
        answer = client.post(f"/requests/{row.pk}/act", {"act": act, "version": str(row.version), **more}, follow=True)
        return text(answer)

    assert "三张卡都行" in do(admin, "say", text="三张卡都行")
    assert "催办" in do(admin, "remind")
    assert "不能转给这个人" in do(approver, "hand", to=str(row.asked_by_id))
    assert "转给 王芳" in do(approver, "hand", to=str(other.pk))
    assert "要看" not in text(approver.get("/requests/review"))
    assert "没有等您决定的" in text(approver.get("/requests/review?clear=1"))
    assert "不是审批人" in do(browse("operator"), "hand", to=str(other.pk))
    assert "没有写什么" in do(admin, "say", text=" ")
    sent = {"word": "approve", "seal": seal(approver, row)}
    do(admin, "withdraw")
    row.refresh_from_db()
    assert row.state == State.WITHDRAWN
    assert "有人处理过了" in text(approver.post(f"/requests/{row.pk}/decision", sent, follow=True))


def test_a_request_begins_and_ends_by_itself(browse):
    until = timezone.now() + timedelta(days=4)
    row = decide(filed(**asked(days=4, starts_at=local(2))))
    assert (row.state, service().whitelisted_until) == (State.APPROVED, None)
    course.run(timezone.now() + timedelta(days=1))
    assert service().whitelisted_until is None
    assert course.run(timezone.now() + timedelta(days=2, minutes=1)) == 1
    assert service().whitelisted_until == row.until
    assert course.run(until - timedelta(minutes=2)) == 0
    assert course.run(until) == 1
    row.refresh_from_db()
    assert (row.state, row.end_why, service().whitelisted_until) == (State.ENDED, "until", None)
    assert course.run(until) == 0


def test_the_number_of_queries_does_not_grow(browse, django_assert_max_num_queries):
    for _ in range(3):
        filed()
    client = browse("approver")
    client.get("/requests/")
    with django_assert_max_num_queries(12):
        client.get("/requests/")
    row = Request.objects.first()
    with django_assert_max_num_queries(14):
        client.get(f"/requests/{row.pk}")


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-11-24T09:00", "2026-11-27T18:00"),
        ("2026-11-27T09:00", "2026-11-27T18:00"),
        ("2026-11-27T17:30", "2026-12-04T18:00"),
        ("2026-11-29T23:59", "2026-12-04T18:00"),
    ],
)
def test_friday_is_the_next_one_that_is_still_of_use(now, expected):
    found = friday(timezone.make_aware(datetime.fromisoformat(now)))
    assert timezone.localtime(found).strftime("%Y-%m-%dT%H:%M") == expected
