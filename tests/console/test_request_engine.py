"""The engine of requests: four eyes, chains, one outcome of many, beginnings and ends."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from console.accounts.models import Absence, User
from console.catalog.models import Service
from console.policies.models import PolicyValue
from console.requests import course
from console.requests.models import Entry, Request, State
from console.requests.rights import waiting
from console.requests.steps import No, step
from tests.console import rows
from tests.console.asking import another_approver, asked, decide, filed, local, service

pytestmark = pytest.mark.django_db


def refused(row: Request, **more) -> str:
    with pytest.raises(No) as no:
        decide(row, **more)
    row.refresh_from_db()
    return no.value.code


def test_nobody_decides_their_own_whatever_their_role(farm):
    row = filed()
    User.objects.filter(pk=row.asked_by_id).update(role="approver", tenant=None)
    assert refused(row, who="tenant_admin") == "own"
    assert row.state == State.OPEN


@pytest.mark.parametrize("column", ["first_by", "second_by", "refused_by"])
def test_the_database_itself_wants_four_eyes(farm, column):
    row = filed()
    fields = {"first_by": rows.person("approver")} | {column: row.asked_by}
    with pytest.raises(IntegrityError), transaction.atomic():
        Request.objects.filter(pk=row.pk).update(**fields)


def test_the_database_itself_wants_two_people(farm):
    row, one = filed(), rows.person("approver")
    with pytest.raises(IntegrityError), transaction.atomic():
        Request.objects.filter(pk=row.pk).update(first_by=one, second_by=one)
    with pytest.raises(IntegrityError), transaction.atomic():
        Request.objects.filter(pk=row.pk).update(second_by=one)


def test_nothing_is_in_force_that_its_approvers_did_not_agree_to(farm):
    row = filed()
    for fields in ({"steps": 1}, {"steps": 2, "first_by": rows.person("approver")}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Request.objects.filter(pk=row.pk).update(state=State.IN_FORCE, **fields)


def test_a_chain_of_two_takes_two_people(farm):
    PolicyValue.objects.create(name="approvers_whitelist", value=2)
    row = decide(filed())
    assert (row.state, row.steps, service().whitelisted_until) == (State.OPEN, 2, None)
    assert refused(row) == "twice"
    row = decide(row, another_approver())
    assert (row.state, service().whitelisted_until) == (State.IN_FORCE, row.until)
    assert row.first_by != row.second_by


def test_what_lasts_longer_than_a_quarter_takes_two_also_where_the_approver_made_it_longer(farm):
    assert filed(**asked(days=91)).steps == 2
    row = filed(**asked(days=10))
    assert row.steps == 1
    row = decide(row, until=timezone.now() + timedelta(days=120))
    assert (row.state, row.steps) == (State.OPEN, 2)


def test_a_second_who_refuses_ends_it(farm):
    PolicyValue.objects.create(name="approvers_whitelist", value=2)
    row = decide(decide(filed()), another_approver(), "reject", "太久")
    assert (row.state, service().whitelisted_until) == (State.REJECTED, None)


def test_who_agreed_before_a_change_is_asked_again(farm):
    PolicyValue.objects.create(name="approvers_whitelist", value=2)
    row = decide(decide(filed()), another_approver(), "return", "改短")
    assert row.first_by is not None
    from django.http import QueryDict

    from console import state
    from console.requests.filing import change
    from console.requests.kinds import KINDS

    given = QueryDict(mutable=True)
    given.update(asked(days=1))
    form = KINDS["whitelist"].form(row.asked_by, given, {})
    assert form.is_valid()
    change(row, KINDS["whitelist"], form, row.asked_by, state.policy(), timezone.now())
    row.refresh_from_db()
    assert (row.state, row.first_by, row.steps) == (State.OPEN, None, 2)


def test_of_two_who_saw_the_same_the_second_is_told(farm):
    row = filed()
    first, second = Request.objects.get(pk=row.pk), Request.objects.get(pk=row.pk)
    step(first, {State.OPEN}, state=State.WITHDRAWN)
    with pytest.raises(No, match="overtaken"):
        step(second, {State.OPEN}, state=State.APPROVED)


def test_what_cannot_be_done_any_more_says_so(farm):
    row = filed(**asked(starts_at=local(1)))
    decide(row)
    Service.objects.filter(pk=row.service_id).delete()
    assert course.run(timezone.now() + timedelta(days=1, minutes=1)) == 1
    row.refresh_from_db()
    assert (row.state, row.reason) == (State.FAILED, "service_gone")


def test_a_request_whose_time_is_over_lapses_and_is_not_granted(farm):
    row = filed()
    Request.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert refused(row) == "past"
    course.run(timezone.now())
    row.refresh_from_db()
    assert (row.state, service().whitelisted_until) == (State.LAPSED, None)


def test_a_later_word_replaces_the_earlier_and_its_end_does_not_end_the_later(farm):
    earlier, later = decide(filed(**asked(2, "一"))), decide(filed(**asked(5, "二")))
    earlier.refresh_from_db()
    assert (earlier.state, earlier.end_why) == (State.ENDED, "replaced")
    course.run(timezone.now() + timedelta(days=3))
    assert service().whitelisted_until == later.until


def test_what_nobody_reviewed_in_time_ends(farm):
    row = filed("operator", urgent=True)
    assert service().whitelisted_until == row.until
    assert course.run(timezone.now() + timedelta(hours=23)) == 0
    assert course.run(timezone.now() + timedelta(hours=24, seconds=1)) == 1
    row.refresh_from_db()
    assert (row.state, row.end_why, service().whitelisted_until) == (State.ENDED, "unreviewed", None)


def test_a_review_that_refuses_ends_it_at_once(farm):
    row = decide(filed("operator", urgent=True), word="reject", text="可以等")
    assert (row.state, row.end_why, service().whitelisted_until) == (State.ENDED, "refused", None)


def test_who_hurried_does_not_review_it(farm):
    row = filed("operator", urgent=True)
    away(rows.person("approver"), rows.person("operator"))
    assert refused(row, who="operator") == "own"


def away(person: User, deputy: User, days: float = 1) -> Absence:
    now = timezone.now()
    return Absence.objects.create(
        person=person, deputy=deputy, starts_at=now - timedelta(minutes=1), until=now + timedelta(days=days)
    )


def test_a_deputy_decides_while_it_lasts_and_not_after(farm):
    row, now = filed(), timezone.now()
    assert refused(row, who="operator") == "not_yours"
    absence = away(rows.person("approver"), rows.person("operator"))
    assert list(waiting(rows.person("operator"), now)) == [row]
    assert decide(row, "operator").state == State.IN_FORCE
    absence.until = now
    absence.save()
    assert refused(filed(), who="operator") == "not_yours"


def test_what_was_handed_to_somebody_away_waits_for_the_deputy(farm):
    row, now, other = filed(), timezone.now(), another_approver()
    Request.objects.update(handed_to=rows.person("approver"))
    assert list(waiting(other, now)) == []
    away(rows.person("approver"), other)
    assert list(waiting(other, now)) == [row]


def test_every_step_is_in_the_record(farm):
    row = decide(filed())
    assert [one.act for one in row.entries.all()] == [Entry.Act.ASKED, Entry.Act.APPROVED, Entry.Act.IN_FORCE]
    assert [one.by for one in row.entries.all()] == [row.asked_by, rows.person("approver"), None]
