"""Rules obey the narrowest layer: the same two copies or cards, one of them under a value of its own."""

from __future__ import annotations

from dataclasses import replace

from scheduler.hold import hold_cap_s
from scheduler.layers import Overrides
from scheduler.memory import buffer_mib
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.pressed import under_pressure
from scheduler.world import Phase
from tests.scheduler.build import NOW, a_card, a_replica, a_service, a_world, acting, held
from tests.scheduler.cases import cases


def layered(pools=None, services=None, **values) -> Policy:
    return replace(Policy(), **values, overrides=Overrides(pools or {}, services or {}))


def two_idle(idle_s: float = 1000.0):
    """s on c1 in pool `day`, n on c2 in pool `night`, both idle; their cards are more than half full."""
    cards = [a_card("c1", total=24576, pool="day"), a_card("c2", total=24576, pool="night")]
    copies = [a_replica(i, s, f"c{i}", last_call_at=NOW - idle_s) for i, s in ((1, "s"), (2, "n"))]
    return a_world(*cards, a_service("s"), a_service("n"), *copies)


def noticed(policy: Policy, idle_s: float = 1000.0) -> dict[int, float]:
    """Replica → seconds of notice, of those that got one."""
    return {d.replica: d.not_before - NOW for d in acting(plan(two_idle(idle_s), policy, NOW)) if d.not_before}


@cases(
    ("policy", "expected"),
    [
        (layered(), {}),
        (layered(services={"n": {"idle_unload_s": 600}}), {2: 300}),
        (layered(pools={"day": {"idle_unload_s": 600, "grace_s": 60}}), {1: 60}),
        (layered(pools={"day": {"idle_unload_s": 600}}, services={"s": {"idle_unload_s": 3600}}), {}),
        (layered(pools={"day": {"idle_unload_s": 600}}, services={"s": {"grace_s": 90}}), {1: 90}),
        (layered(idle_unload_s=600, services={"s": {"idle_unload_s": 3600}}), {2: 300}),
    ],
)
def test_idle_time_and_notice(policy, expected):
    assert noticed(policy) == expected


def test_minimum_stay_of_one_service():
    policy = layered(idle_unload_s=600, services={"s": {"min_loaded_s": 86400}})
    assert noticed(policy).keys() == {2}


def test_grace_of_room_is_the_victims():
    victim = a_service("v", 15 * 1024, 24 * 1024)
    caller = a_service("c", 15 * 1024, 24 * 1024, demand=held())
    there = a_replica(1, "v", kv_granted_mib=24 * 1024)
    (notice,) = acting(
        plan(a_world(a_card(), victim, caller, there), layered(services={"v": {"grace_room_s": 30}}), NOW)
    )
    assert notice.not_before == NOW + 30


def test_an_overdue_drain_of_one_service_is_taken_back_earlier():
    copies = [
        a_replica(i, s, f"c{i}", Phase.DRAINING, reason="idle", want_since=NOW - 400, in_flight=1)
        for i, s in ((1, "s"), (2, "n"))
    ]
    world = a_world(a_card("c1"), a_card("c2"), a_service("s"), a_service("n"), *copies)
    policy = layered(services={"s": {"drain_overdue_s": 300, "left_alone_s": 7200}})
    (back,) = acting(plan(world, policy, NOW))
    assert (back.replica, back.numbers["left_alone_until"]) == (1, NOW + 7200)


def test_a_hold_as_long_as_its_service_says():
    policy = layered(services={"s": {"hold_small_s": 60}})
    assert hold_cap_s(policy, a_service("s")) == 60
    assert hold_cap_s(policy, a_service("n")) == 15
    assert hold_cap_s(policy, a_service("s", hold_cap_s=20.0)) == 20, "its own cap is narrower still"


def test_a_pools_buffer():
    policy = layered(pools={"p": {"buffer_pct": 20}})
    assert buffer_mib(a_card(pool="p"), policy) == 16384
    assert buffer_mib(a_card(), policy) == 6554


@cases(("pool", "pressed"), [("p", True), ("default", False)])
def test_a_pools_pressure_begins_at_its_own_line(pool, pressed):
    policy = layered(pools={"p": {"pressure_pct": 80, "pressure_samples": 1}}, pressure_samples=2)
    card = a_card(pool=pool, unavailable_mib=70000, pressed_samples=1)
    assert under_pressure(card, policy) is pressed
