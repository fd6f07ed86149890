"""The farm in thought does what a farm does: loads take their time, calls wait for them, memory comes back."""

import math
from dataclasses import replace

import pytest

from scheduler.decision import Decision, Reason, Verb
from scheduler.simulation import Machine, Measures, Trace, learning, simulate
from scheduler.simulation.interference import DECODE_FLOOR, LOADING, busy_share, slowdown
from scheduler.simulation.measures import Spread, over
from scheduler.simulation.recording import record
from scheduler.world import Phase, Profile, Tier, Want
from tests.scheduler.build import POLICY, a_card, a_replica, a_service, a_world
from tests.simulation.build import BEGAN, DAY, HOUR, QUICK, a_call, a_farm, a_growth, played, run
from workers.simulator import interference as engines

LOAD_S = 8000 / 2000 + 8.0


def many(count: int, gap: float = 1.0, since: float = 10.0, service: str = "s", **more):
    return [a_call(since + i * gap, service, **more) for i in range(count)]


# Loads


def test_a_cold_call_waits_for_its_load_and_is_answered():
    found = played(calls=[a_call(10)])
    assert (found.calls, found.answered, found.told, found.loads, found.cold_starts) == (1, 1, 0, 1, 1)
    assert found.waits.at(0.5) == pytest.approx(LOAD_S, rel=0.05)


def test_one_load_serves_all_who_wait():
    found = played(calls=[a_call(10 + i / 10) for i in range(8)])
    assert (found.answered, found.loads) == (8, 1)


def test_two_loads_of_one_host_share_its_storage():
    farm = a_farm(a_service("a"), a_service("b"), a_card("c9", "h0"))
    first, second = (Decision(Verb.START, n, Reason.HOLD, cards=(c,), kv_granted_mib=4000) for n, c in
                     (("a", "c0"), ("b", "c9")))  # fmt: skip
    farm.world = replace(farm.world, cards={**farm.world.cards, "c9": a_card("c9", "h0")})
    farm.now = BEGAN
    record(farm, first)
    record(farm, second)
    run(farm, 8 + 8 - 0.5)
    assert {c.seen.phase for c in farm.copies.values()} == {Phase.STARTING}
    run(farm, 8 + 8 + 0.5)
    assert {c.seen.phase for c in farm.copies.values()} == {Phase.READY}


def test_a_plain_caller_gives_up_at_its_cap_and_a_stream_waits_on():
    slow = Machine(init_s=30.0)
    found = played(calls=[a_call(10), a_call(10, stream=True)], machine=slow)
    assert (found.told, found.answered) == (1, 1)
    assert found.cut == 0


def test_what_was_loaded_is_learned():
    farm = run(a_farm(a_service()), 60, [a_call(10)])
    (times,) = farm.load_times.values()
    assert times.seconds[-1] == pytest.approx(LOAD_S, abs=0.5)


# Engines


def test_calls_beyond_what_an_engine_runs_at_once_queue_in_it():
    one = a_service(max_num_seqs=2)
    calls = [a_call(0), *(a_call(60, decode=10.0) for _ in range(4))]
    found = played(one, calls=calls)
    waited = found.first_token["online night"]
    assert found.answered == 5
    assert over(waited.tally, 9.0) == 2


def test_a_neighbour_slows_by_its_busy_share():
    both = (a_service("a"), a_service("b"), a_replica(1, "a", "c0"), a_replica(2, "b", "c0"))
    calls = [a_call(100, "b", decode=500.0), a_call(110, "a")]
    apart = (a_service("a"), a_service("b"), a_replica(1, "a", "c0"), a_replica(2, "b", "c1"))
    slow = played(*both, calls=calls).first_token["online night"].at(1.0)
    alone = played(*apart, calls=calls).first_token["online night"].at(1.0)
    assert slow / alone == pytest.approx(1 + busy_share(1, 16), rel=0.05)


@pytest.mark.parametrize("strength", [0.5, 1.0, 2.0])
def test_the_model_is_that_of_the_simulated_engines(strength):
    assert (DECODE_FLOOR, LOADING) == (engines.DECODE_FLOOR, engines.LOADING)
    for running in range(20):
        assert busy_share(running, 8) == engines.busy_share(running, 8)
    assert slowdown(0.3 + 0.7, strength) == engines.slowdown([0.3, 0.7], strength)


def test_utilisation_is_the_share_of_the_time_of_cards_in_use():
    hot = a_service(tier=Tier.HOT)
    found = played(hot, a_replica(1, "s", "c0"), calls=[a_call(0, decode=HOUR / 2, prefill=0.0)])
    assert found.utilisation == pytest.approx(busy_share(1, 16) / 2, rel=0.02)
    assert found.cards_in_use == pytest.approx(1.0)
    assert found.models_a_card == 1.0


# Giving back


def test_an_idle_copy_is_announced_and_goes_and_its_memory_is_back():
    farm = run(a_farm(a_service()), HOUR, [a_call(10)])
    assert not farm.copies
    assert farm.measures.reclaims == 1
    assert farm.world.cards["c0"].unavailable_mib == farm.world.cards["c1"].unavailable_mib == 600


def test_a_warm_one_sleeps_and_wakes_for_the_next_call():
    calls = [a_call(10), a_call(HOUR)]
    found = played(a_service(tier=Tier.WARM), calls=calls, hours=1.5)
    assert (found.loads, found.wakes, found.answered) == (1, 1, 2)
    assert found.waits.at(0.1) == pytest.approx(3.0, abs=0.3)


def test_a_cold_one_whose_load_outlasts_a_hold_sleeps_and_wakes_in_time():
    slow = Machine(init_s=12.0)
    calls = [a_call(10, stream=True), a_call(HOUR)]
    found = played(calls=calls, machine=slow, policy=replace(QUICK, cold_sleep_pct=75), hours=1.5)
    assert (found.loads, found.wakes, found.answered, found.harmful) == (1, 1, 2, 0)
    stopped = played(calls=calls, machine=slow, hours=1.5)
    assert (stopped.loads, stopped.wakes, stopped.harmful) == (2, 0, 1)


def test_a_call_in_its_grace_keeps_it():
    idle = QUICK.idle_unload_s + QUICK.grace_s / 2
    found = played(calls=[a_call(10), a_call(10 + LOAD_S + idle)], hours=0.6)
    assert (found.loads, found.reclaims) == (1, 0)


def test_a_reclaim_that_left_a_caller_without_an_answer_is_harmful_once():
    slow = Machine(init_s=30.0)
    calls = [a_call(10, stream=True), a_call(HOUR), a_call(HOUR + 1), a_call(HOUR + 2, stream=True)]
    found = played(calls=calls, machine=slow, hours=1.5)
    assert (found.harmful, found.harmful_reclaims) == (2, 1)
    assert found.answered == 2


def test_a_load_soon_after_a_reclaim_is_regretted():
    gap = QUICK.idle_unload_s + QUICK.grace_s + 60
    found = played(calls=[a_call(10), a_call(10 + LOAD_S + gap)])
    assert (found.reclaims, found.regrets) == (2, 1), "the second was a quiet one"


def test_a_session_that_has_to_wait_is_no_hit():
    found = played(a_service(tier=Tier.WARM, max_num_seqs=4), calls=[a_call(10), a_call(20), a_call(HOUR)], hours=1.5)
    assert (found.sessions, found.hits) == (2, 0)
    resident = played(a_replica(1, "s", "c0"), calls=[a_call(10), a_call(20)], hours=0.2)
    assert (resident.sessions, resident.hits) == (1, 1)


# Scaling


def test_a_queue_brings_copies_and_a_quiet_hour_takes_them_back_without_a_cut():
    busy = a_service(max_replicas=2, max_num_seqs=4, tier=Tier.HOT)
    calls = many(400, 0.5, decode=20.0)
    found = played(busy, calls=calls, hours=3)
    assert found.loads == 2
    assert found.scale_ups
    assert max(found.scale_ups) < 60
    assert found.cut == 0
    assert found.answered == 400


# Memory


def test_a_small_growth_is_absorbed():
    found = played(a_replica(1, "s", "c0"), growths=[a_growth(60, mib=1000)])
    assert (found.growths, found.absorbed, found.kills) == (1, 1, 0)


def crowded(**more):
    """A card on which an online service and a lowfreq one leave little but the buffer."""
    big = a_service("big", weights=52000, kv=9000, headroom=400, tier=Tier.HOT)
    low = a_service("low", weights=6000, kv=3000, headroom=400, profile=Profile.LOWFREQ, tier=Tier.HOT, **more)
    return big, low, a_replica(1, "big", "c0", kv_granted_mib=9000), a_replica(2, "low", "c0", kv_granted_mib=3000)


def test_pressure_is_relieved_by_one_neighbour_that_is_rebuilt_elsewhere():
    found = played(*crowded(), growths=[a_growth(60, "low", 6000, 600)])
    assert (found.kills, found.absorbed) == (0, 0)
    assert len(found.relieved) == 1
    assert max(found.relieved) <= 15
    assert len(found.rebuilt) == 1


AT_ONCE = Machine(grow_mib_s=math.inf)


def test_who_takes_more_than_there_is_between_two_samples_is_killed_and_loaded_again():
    calls = [a_call(55, "low", decode=100.0)]
    found = played(*crowded(), calls=calls, growths=[a_growth(60, "low", 20000, 600)], machine=AT_ONCE)
    assert found.kills == 1
    assert found.cut_by_kills == 1
    assert found.loads == 1


def growing(profile: Profile, beside: Profile | None, mib: int) -> Measures:
    """A growth on a card that is full by the ledger, alone or beside another, who is not in use."""
    one = a_service("one", weights=30000 if beside else 60000, kv=6000, profile=profile, tier=Tier.HOT)
    two = a_service("two", weights=22000, kv=6000, profile=beside or Profile.LOWFREQ, tier=Tier.HOT)
    copies = [a_replica(1, "one", "c0", kv_granted_mib=6000)]
    copies += [a_replica(2, "two", "c0", kv_granted_mib=6000)] if beside else []
    services = (one, two) if beside else (one,)
    return played(*services, *copies, growths=[a_growth(60, "one", mib, 600)])


@pytest.mark.parametrize("mib", [11000, 14000, 20000, 40000])
@pytest.mark.parametrize(
    ("profile", "beside"),
    [
        (Profile.ONLINE, Profile.LOWFREQ),
        (Profile.ONLINE, Profile.BATCH),
        (Profile.LOWFREQ, Profile.ONLINE),
        (Profile.BATCH, Profile.ONLINE),
        (Profile.BATCH, None),
        (Profile.LOWFREQ, None),
    ],
)
def test_whoever_grows_is_relieved_in_time_where_anybody_may_go(profile, beside, mib):
    """A neighbour that is not online, or the grown one itself: nobody is killed, however much it is."""
    found = growing(profile, beside, mib)
    assert (found.kills, found.growths, found.absorbed) == (0, 1, 0)
    assert found.relieved[0] <= 15


def test_where_all_are_online_nobody_goes_and_only_who_grows_is_killed():
    found = growing(Profile.ONLINE, Profile.ONLINE, 20000)
    assert (found.kills, found.rebuilt) == (1, [])
    assert found.cut == 0, "a neighbour pays for nobody"


def test_a_growth_that_stays_below_the_line_is_absorbed_however_slow():
    growths = [a_growth(60, mib=3000)]
    slow = played(a_replica(1, "s", "c0"), growths=growths, machine=Machine(grow_mib_s=5.0))
    assert (slow.growths, slow.absorbed, slow.kills) == (1, 1, 0)


# Learning


def test_a_daily_job_is_ready_before_its_callers_once_it_has_repeated():
    at = 9 * HOUR + 600
    calls = [a_call(day * DAY + at + i) for day in range(4) for i in range(3)]
    found = played(calls=calls, hours=4 * 24)
    assert found.sessions == 4
    assert found.hits >= 1
    assert found.loads >= 4


def test_tiers_follow_calls():
    farm = a_farm(a_service(tier=Tier.COLD))
    learning.start(farm)
    run(farm, 1.5 * DAY, many(2000, 40.0))
    assert farm.services["s"].tier is Tier.HOT


# As a whole


def test_the_same_arguments_give_the_same_measures():
    calls = many(50, 97.0) + many(30, 211.0, service="b")
    once, again = (played(a_service(), a_service("b", tier=Tier.WARM), calls=calls, hours=5) for _ in range(2))
    assert repr(once.first_token["online night"].tally.counts) == repr(again.first_token["online night"].tally.counts)
    assert (once.loads, once.plans, once.reclaims, once.busy_card_s) == (
        again.loads, again.plans, again.reclaims, again.busy_card_s,
    )  # fmt: skip


def test_every_call_is_answered_told_cut_or_still_in_hand():
    calls = [a_call(i * 61.0, name, stream=bool(i % 2)) for i in range(120) for name in ("s", "b")]
    found = played(a_service(), a_service("b", weights=30000), calls=calls, hours=4, machine=Machine(init_s=12.0))
    assert found.calls == 240 == found.answered + found.told + found.cut


def test_a_quiet_farm_is_hardly_planned():
    found = played(a_replica(1, "s", "c0"), a_service(tier=Tier.HOT), hours=24)
    assert found.plans < 200


def test_another_planner_decides_instead():
    asked = []

    def nothing(world, policy, now):
        asked.append(now)
        return []

    world = a_world(a_card(), a_service())
    found = simulate(world, POLICY, Trace([a_call(10)]), BEGAN + HOUR, began=BEGAN, planner=nothing)
    assert asked
    assert (found.told, found.loads) == (1, 0)


def test_copies_of_the_world_are_there_from_the_beginning():
    farm = a_farm(a_service(), a_replica(7, "s", "c1"), a_replica(8, "s", "c0", Phase.ASLEEP))
    assert {c.seen.want for c in farm.copies.values()} == {Want.READY, Want.ASLEEP}
    assert farm.next_id == 9
    assert [c.seen.id for c in farm.desks["s"].routed] == [7]


def test_a_spread_tells_quantiles_within_its_error():
    spread = Spread()
    for i in range(1, 1001):
        spread.add(i / 100)
    assert spread.at(0.5) == pytest.approx(5.0, rel=0.03)
    assert spread.at(0.99) == pytest.approx(9.9, rel=0.03)
    assert Spread().at(0.5) is None
