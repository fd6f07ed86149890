"""One planner at a time, and what a holder that lost it can still do: nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from console.jobs.models import Lease
from workers.control import lease


def expire() -> None:
    Lease.objects.update(until=Now() - timedelta(seconds=1))


@pytest.fixture(autouse=True)
def row(db: None) -> None:
    lease.ensure()


def test_it_is_taken_once() -> None:
    assert lease.take("a") == 1
    assert lease.take("b") is None


def test_its_holder_takes_it_again_at_once_with_a_new_token() -> None:
    first = lease.take("a")
    assert lease.take("a") == first + 1


def test_it_goes_to_another_when_it_ran_out() -> None:
    lease.take("a")
    expire()
    assert lease.take("b") == 2


def test_an_old_token_records_nothing() -> None:
    old = lease.take("a")
    expire()
    new = lease.take("b")
    with pytest.raises(lease.Lost):
        lease.fence(old)
    lease.fence(new)


def test_a_fence_renews() -> None:
    token = lease.take("a")
    Lease.objects.update(until=Now() + timedelta(seconds=1))
    before = Lease.objects.get().until
    lease.fence(token)
    assert Lease.objects.get().until > before
    assert lease.take("b") is None


def test_a_release_lets_the_next_in_at_once() -> None:
    lease.take("a")
    lease.release("a")
    assert lease.take("b") is not None


def test_a_release_by_another_changes_nothing() -> None:
    lease.take("a")
    lease.release("b")
    assert lease.take("b") is None


def test_route_versions_go_up_under_the_fence_only() -> None:
    token = lease.take("a")
    assert lease.raise_route_version(token) == 1
    assert lease.raise_route_version(token) == lease.route_version() == 2
    with pytest.raises(lease.Lost):
        lease.raise_route_version(token - 1)
