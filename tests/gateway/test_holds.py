from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from console.gateway.counts import Counts
from console.gateway.errors import Refused
from console.gateway.holds import Held, Holds, Waiter
from console.gateway.limits import MIB, Limits


def holds(**limits) -> Holds:
    return Holds(Limits(**limits), lambda service, begun: None)


def enter(h: Holds, service: str = "s", tenant: str = "t", size: int = 1, stream: bool = False) -> Waiter:
    return h.enter(service, tenant, stream, size)


@pytest.mark.parametrize("limits", [{"held_per_service": 2}, {"held_in_all": 2}, {"held_bodies_mib": 2}])
def test_bounds(limits: dict[str, int]) -> None:
    h = holds(**limits)
    first, _ = enter(h, size=MIB), enter(h, size=MIB)
    with pytest.raises(Refused) as refused:
        enter(h, size=MIB)
    assert (refused.value.status, refused.value.code) == (429, "too_many_waiting")
    h.leave(first)
    enter(h, size=MIB)
    assert len(h) == 2


@given(st.lists(st.sampled_from("abc"), max_size=20))
def test_no_tenant_waits_for_two_of_another(tenants: list[str]) -> None:
    h = holds()
    waiters = [enter(h, tenant=tenant) for tenant in tenants]
    order = h.order("s")
    assert sorted(map(id, order)) == sorted(map(id, waiters))
    for n, waiter in enumerate(order):
        before = [other.tenant for other in order[:n]]
        own = before.count(waiter.tenant)
        assert all(before.count(tenant) <= own + 1 for tenant in set(before))
        assert h.position(waiter) == n + 1
    for tenant in set(tenants):
        mine = [waiter for waiter in order if waiter.tenant == tenant]
        assert mine == [waiter for waiter in waiters if waiter.tenant == tenant]


def test_a_promise_stands_until_it_is_kept_or_over() -> None:
    h = holds(promise_s=60)
    h.promise("s", 30)
    until = h.all()["s"].expected_until
    assert 30 < until - time.time() <= 40
    h.promise("s", 10)
    assert h.all()["s"] == Held(0, 0, None, until), "never shortened"
    enter(h)
    enter(h, stream=True)
    assert (h.all()["s"].held, h.all()["s"].held_streams, h.all()["s"].expected_until) == (2, 1, until)
    h.promise("far", 1e9)
    assert h.all()["far"].expected_until <= time.time() + 60
    h.kept({"s"})
    assert h.all()["s"].expected_until is None
    over = holds(come_back_s=0)
    over.promise("s", 0)
    assert over.all() == {}


def test_waking_and_time() -> None:
    async def case() -> None:
        h = holds()
        waiter = enter(h)
        started = time.monotonic()
        await waiter.wait(0.05)
        assert time.monotonic() - started >= 0.04
        task = asyncio.create_task(waiter.wait(30))
        await asyncio.sleep(0)
        h.wake({"other"})
        await asyncio.sleep(0)
        assert not task.done()
        h.wake({"s"})
        await asyncio.wait_for(task, 5)
        await waiter.wait(-1)
        h.wake({"s"})  # while the waiter does something else
        await asyncio.wait_for(waiter.wait(30), 5)

    asyncio.run(case())


class HoldsMachine(RuleBasedStateMachine):
    """Whatever the order of arrivals and departures, the sums are those of who is there."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, bool]] = []
        self.holds = Holds(Limits(held_per_service=3, held_in_all=5), lambda *what: self.told.append(what))
        self.inside: list[Waiter] = []
        self.changes = 0

    @rule(service=st.sampled_from("xyz"), tenant=st.sampled_from("ab"), size=st.integers(0, 9), stream=st.booleans())
    def arrive(self, service: str, tenant: str, size: int, stream: bool) -> None:
        full = len(self.inside) >= 5 or sum(w.service == service for w in self.inside) >= 3
        try:
            self.inside.append(self.holds.enter(service, tenant, stream, size))
            assert not full
            self.changes += 1
        except Refused:
            assert full

    @rule(data=st.data())
    def depart(self, data) -> None:
        if self.inside:
            self.holds.leave(self.inside.pop(data.draw(st.integers(0, len(self.inside) - 1))))
            self.changes += 1

    @invariant()
    def sums(self) -> None:
        assert len(self.holds) == len(self.inside)
        assert self.holds._bytes == sum(w.size_bytes for w in self.inside)
        assert len(self.told) == self.changes
        counted = {name: (held.held, held.held_streams, held.held_since) for name, held in self.holds.all().items()}
        services = {w.service for w in self.inside}
        assert counted == {
            s: (
                sum(w.service == s for w in self.inside),
                sum(w.service == s and w.stream for w in self.inside),
                min(w.since for w in self.inside if w.service == s),
            )
            for s in services
        }


TestHoldsMachine = HoldsMachine.TestCase


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=30))
def test_counts_return_to_zero_whatever_happens(calls: list[tuple[int, bool]]) -> None:
    emptied: list[int] = []
    counts = Counts(emptied.append)

    async def call(replica: int, fails: bool) -> None:
        with counts.granted(replica):
            await asyncio.sleep(0)
            if fails:
                raise ValueError

    async def case() -> None:
        tasks = [asyncio.create_task(call(*each)) for each in calls]
        await asyncio.sleep(0)
        assert sum(counts.all().values()) == len(calls)
        for task in tasks[::3]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(case())
    assert counts.all() == {}
    assert set(emptied) == {replica for replica, _ in calls}
