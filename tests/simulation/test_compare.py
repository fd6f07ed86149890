"""Two policies on one past: sums by service, class and tenant, money by who called, tiers by the own thresholds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest

from scheduler.layers import Overrides
from scheduler.policy import DEFAULT
from scheduler.simulation import Call, Growth, Trace, simulate
from scheduler.simulation.compare import Scene, compare, figures, side, thresholds, with_tiers
from scheduler.simulation.farm import steps
from scheduler.simulation.measures import OfService
from scheduler.simulation.trace import Habit
from scheduler.world import Profile, Tier
from tests.scheduler.build import a_card, a_host, a_service, a_world
from tests.simulation.build import BEGAN, HOUR, OTHER, QUICK, a_call, cards

HOURS = 6


def hosts():
    return [a_host(f"h{i}", bandwidth_mib_s=2000) for i in range(2)]


def a_scene(*services, calls: list[Call] = (), hours: float = HOURS, on=(), **more) -> Scene:
    own = services or (a_service(), a_service("t", profile=Profile.LOWFREQ, tenant="other"))
    days = defaultdict(lambda: [0] * 7)
    for call in calls:
        days[call.service][0] += call.calls
    farm = a_world(*(on or cards(price_fen_h=360)), *hosts(), OTHER, *own)
    values = {"days": dict(days), "calls": sorted(calls)} | more
    return Scene(farm, BEGAN, BEGAN + hours * HOUR, **values)


def done(going):
    """What a generator returns, with all it said on the way."""
    said = []
    while True:
        try:
            said.append(next(going))
        except StopIteration as end:
            return end.value, said


def morning(service: str = "s", each_s: float = 600.0, count: int = 20) -> list[Call]:
    return [a_call(i * each_s, service) for i in range(count)]


def test_a_cold_call_waits_and_is_counted_once_everywhere():
    found, _ = done(side(a_scene(calls=[a_call(60)]), QUICK))
    for one in (found.whole, found.by_service["s"], found.by_class["online"], found.by_tenant["t"]):
        assert (one.cold_starts, one.waited, one.refused, one.calls) == (1, 1, 0, 1)
        assert one.wait_mean_s == pytest.approx(one.wait_p99_s, rel=0.05)
    assert found.by_service["t"].waited == 0
    assert found.by_service["t"].wait_mean_s is None, "nobody waited: that is no wait of 0 s"


def test_progress_goes_from_the_first_side_to_the_second_and_only_up():
    found, said = done(compare(a_scene(calls=[a_call(60)]), QUICK, QUICK))
    assert said == sorted(said)
    assert len(said) == 2 * HOURS
    assert said[HOURS - 1] == 0.5
    assert said[-1] == 1.0
    assert found.old == found.new


def test_a_longer_idle_time_holds_more_and_loads_less():
    calls = morning(each_s=1500, count=12)
    hasty, patient = replace(QUICK, idle_unload_s=300, grace_s=30), replace(QUICK, idle_unload_s=3600)
    found, _ = done(compare(a_scene(calls=calls), hasty, patient))
    assert found.new.whole.cold_starts < found.old.whole.cold_starts
    assert found.new.whole.memory_mib_h > found.old.whole.memory_mib_h
    assert found.new.whole.fen > found.old.whole.fen
    assert found.old.whole.reclaims > found.new.whole.reclaims


def test_a_layer_below_the_group_counts():
    calls = morning(each_s=1500, count=12)
    own = replace(QUICK, overrides=Overrides({}, {"s": {"idle_unload_s": 60, "grace_s": 0}}))
    found, _ = done(compare(a_scene(calls=calls), QUICK, own))
    assert found.new.whole.reclaims > found.old.whole.reclaims


def test_memory_is_the_ledgers_and_money_is_its_share_of_the_card():
    service = a_service()
    claim = service.claim
    scene = a_scene(service, calls=morning(count=36), on=[a_card("c0", "h0", total=81920, price_fen_h=81920)])
    one = done(side(scene, QUICK))[0].by_service["s"]
    held = claim.fixed_mib + claim.kv_cap_mib
    assert one.memory_mib_h == pytest.approx(held * HOURS, rel=0.02), "from the first call on"
    assert one.fen == pytest.approx(one.memory_mib_h, abs=1), "a fen a MiB and hour at this price"


def test_an_unknown_price_is_no_price_of_nothing():
    scene = a_scene(calls=[a_call(60)], on=cards(price_fen_h=0))
    found, _ = done(side(scene, QUICK))
    assert found.by_service["s"].fen is None
    assert found.whole.fen is None
    assert found.by_tenant["t"].fen is None
    assert found.by_service["t"].fen == 0, "it held nothing, on whatever card"


def test_money_follows_the_callers_and_adds_up():
    scene = a_scene(calls=morning(), callers={"s": {"north": 200, "south": 100, "idle": 0}})
    found, _ = done(side(scene, QUICK))
    whole = found.by_service["s"].fen
    assert found.by_tenant["north"].fen + found.by_tenant["south"].fen == whole
    assert found.by_tenant["north"].fen == pytest.approx(2 * found.by_tenant["south"].fen, abs=2)
    assert found.by_tenant["t"].fen == 0, "its owner called nothing"
    assert found.by_tenant["t"].cold_starts == 1, "but it is its service"
    assert "idle" not in found.by_tenant


def test_an_unknown_part_makes_a_tenants_money_unknown():
    services = [a_service("s"), a_service("u", tenant="t")]
    scene = a_scene(*services, calls=[a_call(60), a_call(90, "u")], on=[a_card("c0", "h0", price_fen_h=0)])
    assert done(side(scene, QUICK))[0].by_tenant["t"].fen is None


def test_pressure_and_who_makes_way_are_counted():
    low = a_service("low", weights=30000, profile=Profile.LOWFREQ, priority=30)
    taken = sum(one.claim.fixed_mib - one.claim.headroom_mib + one.claim.kv_cap_mib for one in (a_service(), low))
    growth = [Growth(BEGAN + 600, "s", 81920 * 96 // 100 - taken, 600.0)]
    calls = [a_call(60), a_call(70, "low"), *morning(each_s=60, count=100)]
    scene = a_scene(a_service(), low, calls=calls, growths=growth, on=[a_card("c0", "h0", total=81920)])
    found, _ = done(side(scene, QUICK))
    assert found.pressures >= 1
    assert found.whole.evictions >= 1


def test_tiers_follow_from_the_days_by_each_policys_thresholds():
    scene = a_scene(days={"s": [300] * 7, "t": [1] * 7})
    plain = with_tiers(scene, DEFAULT).services
    assert (plain["s"].tier, plain["t"].tier) == (Tier.WARM, Tier.COLD)
    assert with_tiers(scene, replace(DEFAULT, hot_calls_7d=1000)).services["s"].tier is Tier.HOT
    fixed = replace(scene, fixed=frozenset({"s"}))
    assert with_tiers(fixed, replace(DEFAULT, hot_calls_7d=1000)).services["s"].tier is scene.world.services["s"].tier


def test_fitted_thresholds_are_fitted_to_this_very_farm():
    scene = a_scene(days={"s": [300] * 7, "t": [1] * 7})
    rules = thresholds(scene, replace(DEFAULT, tiers_fitted=1))
    assert rules.hot_calls_7d < 2100, "both fit in half of the cards"
    assert thresholds(scene, DEFAULT) is DEFAULT


def test_what_was_known_before_is_expected_from_the_first_day_on():
    """Called each day at noon for weeks: it is loaded ahead, though this trace has not shown it yet."""
    today = int((BEGAN + 8 * 3600) // 86400)
    habit = Habit({today - n: 1 << 12 for n in range(1, 29)}, [(today - n, 720) for n in range(1, 29)])
    noon = [a_call(12 * HOUR + 30)]
    known, _ = done(side(a_scene(calls=noon, hours=14, habits={"s": habit}), QUICK))
    new, _ = done(side(a_scene(calls=noon, hours=14), QUICK))
    assert (known.whole.waited, new.whole.waited) == (0, 1)


def test_pieces_of_time_change_nothing():
    scene = a_scene(calls=[*morning(), *morning("t", each_s=77, count=100)])
    trace = Trace(scene.calls)
    one = simulate(scene.world, QUICK, trace, scene.until, began=BEGAN)
    many, said = done(steps(scene.world, QUICK, trace, scene.until, began=BEGAN, every_s=61.0))
    assert len(said) == 355
    assert (one.plans, one.decisions, one.busy_card_s) == (many.plans, many.decisions, many.busy_card_s)
    assert {n: vars_of(o) for n, o in one.of.items()} == {n: vars_of(o) for n, o in many.of.items()}


def vars_of(one: OfService):
    return one.cold_starts, one.held_mib_s, one.fen, one.waits.total_s


def test_calls_bunched_one_after_the_other_are_all_counted():
    bunch = [Call(BEGAN + 60 + i * 60, "s", False, 0.2, 19.8, 5) for i in range(50)]
    scene = a_scene(calls=bunch)
    measures = simulate(scene.world, QUICK, Trace(bunch), scene.until, began=BEGAN)
    assert (measures.calls, measures.answered) == (250, 250)
    assert done(side(scene, QUICK))[0].whole.calls == 250


def test_refused_bunches_count_each_call():
    nowhere = a_scene(a_service(weights=900_000), calls=[Call(BEGAN + 60, "s", False, 0.2, 9.8, 4)])
    assert done(side(nowhere, QUICK))[0].whole.refused == 4


def test_figures_of_nobody():
    assert figures([], 0).fen == 0
    assert figures([], 0).wait_p95_s is None


def test_waits_of_several_are_of_all_their_calls():
    parts = [OfService(), OfService()]
    for seconds in (1.0, 3.0):
        parts[0].waits.add(seconds)
    parts[1].waits.add(20.0)
    found = figures(parts, 3)
    assert found.waited == 3
    assert found.wait_mean_s == pytest.approx(8.0)
    assert found.wait_p99_s == pytest.approx(20.0, rel=0.02)
