"""What was asked for and approved is what the planner does, from its first second to its last, no second more."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.http import QueryDict
from django.utils import timezone

from console import state
from console.accounts.models import User
from console.catalog.models import Replica
from console.policies.models import PolicyValue
from console.requests import deciding, filing
from console.requests.kinds import KINDS
from console.requests.models import Request, State
from console.wire import Gateways, Registration
from scheduler.planner import plan
from tests import factories
from workers.control import requests

pytestmark = pytest.mark.django_db
IDLE_S = 3000


@pytest.fixture
def idle(db: None) -> Replica:
    """A copy that nobody called for longer than the limit, on a card that others need."""
    now = timezone.now()
    host = factories.host("h1", cards=1, seen_at=now)
    PolicyValue.objects.create(name="half_empty_pct", value=0)
    factories.service("other")
    copy = factories.replica(factories.service(tier="cold"), host.cards.get(), phase_attempt=1, door_in_flight=0)
    before = now - timedelta(seconds=IDLE_S)
    Replica.objects.filter(pk=copy.pk).update(
        loaded_at=before, last_call_at=before, want_since=before, phase_since=before
    )
    return copy


def would_go(copy: Replica, now: datetime) -> bool:
    """Does the next plan give it notice? Its host and card are heard of at that time."""
    host = copy.host
    type(host).objects.filter(pk=host.pk).update(seen_at=now)
    host.cards.update(sampled_at=now)
    at = now.timestamp()
    gateways = Gateways(True, (Registration("gw1", "b", at, 10**9, {}, {}),))
    rules = state.policy()
    decisions = plan(state.world(at, gateways, rules=rules), rules, at)
    return any(d.replica == copy.pk and d.verb == "drain" and d.refusal is None for d in decisions)


def approved(copy: Replica, until: datetime, starts_at: datetime | None = None) -> Request:
    asker = User.objects.create(username="asker", role="tenant_admin", tenant=copy.service.tenant)
    given = QueryDict(mutable=True)
    moments = {"until": until, "starts_at": starts_at}
    stamps = {name: timezone.localtime(at).isoformat() for name, at in moments.items() if at is not None}
    given.update({"service": copy.service.name, "why": "评审", **stamps})
    form = KINDS["whitelist"].form(asker, given, {})
    assert form.is_valid(), form.errors
    now, rules = timezone.now(), state.policy()
    row = filing.file(KINDS["whitelist"], form, asker, rules, now)
    approver = User.objects.create(username="approver", role="approver")
    weighed = KINDS["whitelist"].consequences(row, now.timestamp())
    deciding.decide(row, approver, deciding.Given(deciding.Word.APPROVE, weighed), rules, now)
    return row


def test_it_is_kept_until_the_very_second_and_then_reclaimed(idle: Replica) -> None:
    now = timezone.now()
    assert would_go(idle, now)
    row = approved(idle, now + timedelta(hours=2))
    assert row.consequences["cards"] == idle.cards
    assert not would_go(idle, now)
    assert not would_go(idle, row.until - timedelta(seconds=1))
    assert requests.run(row.until.timestamp() - 1) == 0
    assert would_go(idle, row.until), "also where the tick that ends it is late"
    assert requests.run(row.until.timestamp()) == 1
    row.refresh_from_db()
    assert row.state == State.ENDED
    assert would_go(idle, row.until + timedelta(seconds=1))


def test_it_is_kept_from_the_time_that_was_asked_for_and_not_before(idle: Replica) -> None:
    now = timezone.now()
    row = approved(idle, now + timedelta(hours=2), now + timedelta(hours=1))
    assert row.state == State.APPROVED
    requests.run((now + timedelta(minutes=59)).timestamp())
    assert would_go(idle, now + timedelta(minutes=59))
    assert requests.run((now + timedelta(minutes=60)).timestamp()) == 1
    assert not would_go(idle, now + timedelta(minutes=61))
