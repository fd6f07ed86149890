"""How fast weights are read: by storage and loader, learned from real loads; what a local copy would gain."""

from __future__ import annotations

import pytest

from scheduler.estimate import load_estimate
from scheduler.policy import Policy
from scheduler.storage import (
    LOCAL,
    NETWORK,
    PARALLEL,
    STREAM,
    Line,
    learned,
    line,
    loader_of,
    local_gain,
    reading_s,
)
from tests.scheduler.build import a_host, a_service, a_world
from tests.scheduler.cases import cases

RULES = Policy()
INIT_S = RULES.load_init_s + RULES.load_warm_up_s


def there(storage=LOCAL, mib_s=2000, shards=1, loads=(), weights=20000):
    """`loads`: (MiB, seconds) of real ones on the host, by any service of this loader."""
    service, sums = a_service(weights=weights, shards=shards), None
    for size, took_s in loads:
        sums = learned(RULES, sums, size, took_s)
    reads = {} if sums is None else {("h1", loader_of(storage, service)): sums}
    return a_world(a_host(storage=storage, bandwidth_mib_s=mib_s), service, reads=reads), service


def seconds(*args, **kwargs) -> float:
    world, service = there(*args, **kwargs)
    return load_estimate(world, RULES, service, "h1").seconds


@cases(
    ("storage", "shards", "loader"),
    [(LOCAL, 1, STREAM), (LOCAL, 4, PARALLEL), (NETWORK, 1, STREAM), (NETWORK, 8, STREAM)],
)
def test_files_are_read_side_by_side_from_local_storage_only(storage, shards, loader):
    assert loader_of(storage, a_service(shards=shards)) == loader


@cases(
    ("storage", "mib_s", "shards", "seconds"),
    [
        (LOCAL, 2000, 1, 10),
        (LOCAL, 2000, 4, 10 / 1.6),
        (LOCAL, 2000, 9, 10 / 1.6),
        (NETWORK, 200, 1, 100),
        (NETWORK, 200, 4, 100),
    ],
)
def test_reading_by_what_the_host_says_of_its_storage(storage, mib_s, shards, seconds):
    world, service = there(storage, mib_s, shards)
    assert reading_s(world, RULES, service, "h1") == pytest.approx(seconds)


SIZES = (3000, 9000, 14000, 5000, 28000, 16000, 2000, 40000, 8000, 20000)


def test_before_any_load_the_hosts_word_and_the_policys_start_stand():
    world, service = there()
    assert line(world, RULES, service, "h1") == Line(2000, INIT_S)
    assert seconds() == 10 + INIT_S


@cases(("mib_s", "starts_s"), [(1000, 5.0), (500, 9.0), (3000, 2.0), (2000, 12.0)])
def test_real_loads_of_others_teach_both_speed_and_start(mib_s, starts_s):
    """The host says 2,000 MiB/s; what really happens is learned from models of all sizes."""
    loads = [(size, starts_s + size / mib_s) for size in SIZES * 3]
    truth = starts_s + 20000 / mib_s
    assert seconds(loads=loads) == pytest.approx(truth, rel=0.2)
    assert abs(seconds(loads=loads) - truth) <= abs(seconds() - truth)


def test_what_takes_longer_to_start_is_not_taken_for_a_slow_disk():
    """Small models that each take 3 s more: a large one takes 3 s more, not twice as long."""
    loads = [(3000, 3000 / 2000 + INIT_S + 3.0)] * 12
    assert seconds(loads=loads, weights=3000) == pytest.approx(3000 / 2000 + INIT_S + 3.0, rel=0.1)
    assert seconds(loads=loads, weights=28000) == pytest.approx(28000 / 2000 + INIT_S + 3.0, rel=0.2)


def test_one_odd_load_does_not_turn_the_picture():
    assert seconds(loads=[(3000, 90.0)], weights=3000) < 45
    assert seconds(loads=[(30000, 4.0)]) > 0


def test_young_loads_count_more():
    before, after = [(20000, 105.0)] * 20, [(20000, 15.0)] * 20
    assert seconds(loads=before + after) < 25
    assert seconds(loads=after + before) > 60


def test_loaders_do_not_teach_each_other():
    service = a_service(weights=20000, shards=4)
    reads = {("h1", STREAM): learned(RULES, None, 20000, 300.0)}
    world = a_world(a_host(bandwidth_mib_s=2000), service, reads=reads)
    assert load_estimate(world, RULES, service, "h1").seconds == pytest.approx(10 / 1.6 + INIT_S)


def test_unknown_is_none_and_reads_in_no_time():
    world, service = there(mib_s=0, loads=[(3000, 9.0)])
    assert line(world, RULES, service, "h1") == Line(None, INIT_S)
    assert line(world, RULES, service, "elsewhere").mib_s is None
    assert reading_s(world, RULES, service, "h1") == 0.0


@cases("loads", [[(1000, 900.0), (40000, 1.0)] * 9, [(0, 0.0)] * 5])
def test_a_line_that_makes_no_sense_is_not_believed(loads):
    got = line(*there(loads=loads)[:1], RULES, a_service(weights=20000), "h1")
    assert got.mib_s > 0
    assert got.fixed_s >= 0


def test_an_estimate_from_others_is_still_rough():
    world, service = there(loads=[(9000, 14.0)] * 5)
    got = load_estimate(world, RULES, service, "h1")
    assert got.rough
    assert got.low_s is None


def test_the_gain_of_a_local_copy_is_told_with_its_numbers():
    slow, fast = a_host("h1", storage=NETWORK, bandwidth_mib_s=200), a_host("h2", bandwidth_mib_s=2500)
    service = a_service(weights=20000)
    world = a_world(slow, fast, service)
    gain = local_gain(world, RULES, service, slow, load_estimate(world, RULES, service, "h1").seconds)
    assert (gain.now_s, gain.local_s, gain.mib_s) == (105, 13, 2500)
    assert gain.saves_s == 92


def test_learned_times_keep_what_is_not_reading():
    """It takes 30 s more than reading explains: these stay."""
    slow = a_host("h1", storage=NETWORK, bandwidth_mib_s=200)
    service = a_service(weights=20000)
    world = a_world(slow, service)
    gain = local_gain(world, RULES, service, slow, 130.0)
    assert gain.mib_s == RULES.load_local_mib_s
    assert gain.local_s == pytest.approx(30 + 10)


def test_shards_gain_more_on_a_local_disk():
    slow = a_host("h1", storage=NETWORK, bandwidth_mib_s=200)
    gains = []
    for shards in (1, 4):
        service = a_service(weights=20000, shards=shards)
        gains.append(local_gain(a_world(slow, service), RULES, service, slow, 105.0).local_s)
    assert gains[0] > gains[1]


def test_local_weights_have_nothing_to_gain():
    world, service = there()
    assert local_gain(world, RULES, service, world.hosts["h1"], 15.0) is None
