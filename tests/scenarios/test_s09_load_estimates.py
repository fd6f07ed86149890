"""S09: 20 GB from local NVMe at 2 GB/s, and from network storage at 200 MB/s; one file or four."""

from __future__ import annotations

from random import Random

import pytest

from scheduler.estimate import load_estimate
from scheduler.policy import Policy
from scheduler.storage import LOCAL, NETWORK, local_gain
from tests.scheduler.build import a_host, a_service, a_world

RULES = Policy()
GB_MIB = 10**9 / 2**20
PLACES = [(LOCAL, 2000, 15.0), (NETWORK, 200, 105.0)]


def estimate(storage, mb_s, size_gb=20, shards=1, times=()):
    host = a_host(storage=storage, bandwidth_mib_s=round(mb_s * GB_MIB / 1000))
    service = a_service(weights=round(size_gb * GB_MIB), shards=shards)
    world = a_world(host, service, load_s={("s", "h1"): times} if times else None)
    return load_estimate(world, RULES, service, "h1")


@pytest.mark.parametrize(("storage", "mb_s", "near_s"), PLACES)
def test_before_the_first_load_the_estimate_is_near_and_says_that_it_is_rough(storage, mb_s, near_s):
    got = estimate(storage, mb_s)
    assert got.seconds == pytest.approx(near_s, rel=0.02)
    assert got.rough
    assert got.low_s is None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size_gb", [4, 20, 70])
@pytest.mark.parametrize(("storage", "mb_s"), [(LOCAL, 2000), (LOCAL, 600), (NETWORK, 200), (NETWORK, 90)])
def test_after_three_loads_it_is_within_a_fifth(storage, mb_s, size_gb, seed):
    """Real storage is half as fast as its data sheet, and no two loads are alike."""
    dice = Random(seed)
    truth = size_gb * 1000 / (mb_s / 2) + 9.0
    times = [truth * dice.uniform(0.85, 1.15) for _ in range(3)]
    got = estimate(storage, mb_s, size_gb, times=times)
    assert got.seconds == pytest.approx(truth, rel=0.2)
    assert not got.rough
    assert got.low_s <= got.seconds


@pytest.mark.parametrize("size_gb", [7, 20, 60])
def test_shards_help_only_where_storage_is_parallel(size_gb):
    assert estimate(LOCAL, 2000, size_gb, shards=4).seconds < estimate(LOCAL, 2000, size_gb, shards=1).seconds
    assert estimate(NETWORK, 200, size_gb, shards=4) == estimate(NETWORK, 200, size_gb, shards=1)


def test_old_loads_fade_when_storage_changes():
    """Weights moved from the share to the disk: after three loads the old ones hardly count any more."""
    times = [105.0] * 7 + [15.0] * 3
    plain = sum(times) / len(times)
    assert estimate(LOCAL, 2000, times=times).seconds < plain
    assert estimate(LOCAL, 2000, times=[105.0] * 20 + [15.0] * 10).seconds == pytest.approx(15)


@pytest.mark.parametrize(("size_gb", "saves_s"), [(20, 90), (5, 22.5), (60, 270)])
def test_the_advice_says_what_a_local_copy_saves(size_gb, saves_s):
    slow, fast = a_host("h1", storage=NETWORK, bandwidth_mib_s=191), a_host("h2", bandwidth_mib_s=1907)
    service = a_service(weights=round(size_gb * GB_MIB))
    world = a_world(slow, fast, service)
    gain = local_gain(world, RULES, service, slow, load_estimate(world, RULES, service, "h1").seconds)
    assert gain.saves_s == pytest.approx(saves_s, rel=0.02)
