"""Slots of all gateways into one picture, and back to everybody through Redis."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec
import pytest
import redis
from pytest_django import Settings

from console import wire
from console.loads import Load, loads
from console.wire import Gateways, Latencies, Registration, ReplicaLatency, ServiceCount, ServiceLatency
from scheduler.histogram import SLOT_S, Tally
from scheduler.policy import Policy
from scheduler.world import Phase
from tests.host.harness import RedisServer, redis_server
from tests.scheduler.build import NOW, a_replica, a_service, a_world
from workers.control.latency import Latency, Slot, live_changed_at

LAST = int(NOW) // SLOT_S - 1
POLICY = Policy()


def packed(ms: float, samples: int) -> tuple[int, bytes]:
    tally = Tally()
    for _ in range(samples):
        tally.add(ms)
    return tally.packed()


def slot(replicas: dict[int, tuple[float, int]], ago: int = 0, gap_ms: float = 20.0, metric: str = "ttft") -> Slot:
    """(ms, samples) of each replica's calls, and a hundred gaps."""
    counts = {n: (metric, *packed(ms, samples), *packed(gap_ms, 100)) for n, (ms, samples) in replicas.items()}
    return Slot(LAST - ago, counts)


def test_a_service_is_all_its_replicas_on_all_gateways() -> None:
    world = a_world(a_service("s"), a_replica(1, "s"), a_replica(2, "s", card="c1"))
    latency = Latency()
    latency.take(slot({1: (300, 40), 2: (900, 10)}))
    latency.take(slot({2: (900, 10)}))  # the other gateway, the same slot
    found = latency.picture(world, {}, POLICY, NOW)
    assert found.services["s"].samples == 60
    assert found.services["s"].p99_ms == pytest.approx(900, rel=0.02)
    assert found.replicas[1].p99_ms is None, "40 samples are too few"


def test_no_look_back_behind_the_last_change_of_the_copies() -> None:
    world = a_world(a_service("s"), a_replica(1, "s"))
    latency = Latency()
    latency.take(slot({1: (9000, 100)}, ago=3))
    latency.take(slot({1: (300, 100)}))
    assert latency.picture(world, {}, POLICY, NOW).services["s"].p99_ms == pytest.approx(9000, rel=0.02)
    found = latency.picture(world, {"s": NOW - 2 * SLOT_S}, POLICY, NOW)
    assert found.services["s"].p99_ms == pytest.approx(300, rel=0.02)


def test_disturbance_of_a_replica() -> None:
    world = a_world(a_service("s"), a_replica(1, "s"))
    latency = Latency()
    for ago in range(4, 30):
        latency.take(slot({1: (300, 10)}, ago, gap_ms=20.0))
    for ago in range(2):
        latency.take(slot({1: (300, 10)}, ago, gap_ms=30.0))
    assert latency.picture(world, {}, POLICY, NOW).replicas[1].disturbance_pct == pytest.approx(
        50, abs=6.2
    )  # each side within 2 %


def test_a_service_that_changes_its_metric_begins_anew() -> None:
    world = a_world(a_service("s"), a_replica(1, "s"))
    latency = Latency()
    latency.take(slot({1: (9000, 100)}, ago=1, metric="total"))
    latency.take(slot({1: (300, 60)}))
    assert latency.picture(world, {}, POLICY, NOW).services["s"].p99_ms == pytest.approx(300, rel=0.02)


def test_replicas_that_are_gone_are_told_no_more_and_forgotten() -> None:
    latency = Latency()
    latency.take(slot({1: (300, 100)}))
    assert latency.picture(a_world(a_service("s")), {}, POLICY, NOW).replicas == {}
    latency.forget(NOW + 3600)
    assert not latency.replicas


def test_live_copies_change_when_one_starts_is_ready_or_goes() -> None:
    ready = a_replica(1, "s", want_since=NOW - 900, loaded_at=NOW - 800)
    assert live_changed_at(a_world(ready)) == {"s": NOW - 800}
    assert live_changed_at(a_world(ready, a_replica(2, "s", phase=Phase.STARTING, want_since=NOW - 30))) == {
        "s": NOW - 30
    }
    assert live_changed_at(a_world(ready, a_replica(2, "s", phase=Phase.DRAINING, want_since=NOW - 3))) == {
        "s": NOW - 3
    }
    assert live_changed_at(a_world(ready, a_replica(2, "s", phase=Phase.ASLEEP, want_since=NOW - 3))) == {
        "s": NOW - 800
    }


def test_the_load_of_a_service_is_its_ready_engines_and_what_is_held() -> None:
    replicas = [
        a_replica(1, "s", running=3, waiting=2),
        a_replica(2, "s", in_flight=4, waiting=None),  # its engine does not tell: what was sent to it runs
        a_replica(3, "s", phase=Phase.DRAINING, running=9, waiting=9),
        a_replica(4, "dark", in_flight=None),
        a_replica(5, "idle", running=0, waiting=0),
    ]
    held = Registration("gw1", "b", NOW, 1, services={"s": ServiceCount(held=5), "cold": ServiceCount(held=1)})
    latencies = Latencies(NOW, {"s": ServiceLatency(700.0, 80)})
    assert loads(replicas, Gateways(True, (held,), latencies)) == {
        "s": Load(7, 7, 700.0, 80),
        "dark": Load(None, 0),
        "cold": Load(0, 1),
    }


def test_while_the_gateways_are_not_heard_nobody_knows_who_waits() -> None:
    """A table younger than ten seconds names nobody: that is no quiet minute."""
    there = [a_replica(1, "s", running=3, waiting=0)]
    assert loads(there, Gateways(False)) == {"s": Load(3, None)}
    assert Load(3, None, queued=2).fields("online")["waiting"] is None


def test_turns_are_waited_for_save_in_batch() -> None:
    told = Registration("gw1", "b", NOW, 1, services={"s": ServiceCount(held=1, queued=4)})
    load = loads([a_replica(1, "s", running=3, waiting=2)], Gateways(True, (told,)))["s"]
    assert load.fields("online")["waiting"] == 7
    assert load.fields("batch")["waiting"] == 3


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server(["h1"]) as running:
        yield running


@pytest.fixture
def client(server: RedisServer, settings: Settings) -> Iterator[redis.Redis]:
    settings.REDIS_URL = server.url()
    wire.client.cache_clear()
    yield wire.client()
    wire.client().flushdb()
    wire.client().close()
    wire.client.cache_clear()


def send(client: redis.Redis, told: Slot, gateway: str = "gw1") -> None:
    client.xadd(f"gateway:{gateway}:slots", {"b": msgspec.msgpack.encode(told)})


def test_what_control_tells_is_read_with_the_gateways(client: redis.Redis) -> None:
    now = time.time()
    known = Gateways(True, (Registration("gw1", "b", now, 1),))
    world = a_world(a_service("s"), a_replica(1, "s", loaded_at=now - 600, want_since=now - 600))
    send(client, Slot(int(now) // SLOT_S - 1, {1: ("ttft", *packed(400, 60), *packed(20, 10))}))
    latency = Latency()
    latency.tell(known, world, POLICY, now)
    found = wire.read_gateways().latencies
    assert found.services["s"].p99_ms == pytest.approx(400, rel=0.02)
    assert found.replicas[1] == ReplicaLatency(found.services["s"].p99_ms, None)

    again = Latency()  # another leader reads the same streams from their beginning
    again.tell(known, world, POLICY, now)
    assert wire.read_gateways().latencies == found


def test_old_latencies_are_unknown(client: redis.Redis) -> None:
    wire.publish_latencies(Latencies(time.time() - 31, {"s": ServiceLatency(400.0, 60)}))
    assert wire.read_gateways().latencies == Latencies()


@pytest.mark.parametrize(
    "body", [b"", b"junk", msgspec.msgpack.encode({"slot": 1, "replicas": {1: ["ttft", 400, b"\1\0", 0, b""]}})]
)
def test_a_slot_that_cannot_be_read_is_left_out(client: redis.Redis, body: bytes) -> None:
    client.xadd("gateway:gw1:slots", {"b": body})
    send(client, Slot(5, {1: ("ttft", *packed(400, 60), 0, b"")}))
    latency = Latency()
    assert latency.read(Gateways(True, (Registration("gw1", "b", 0, 1),)))
    assert latency.replicas[1].calls[5].samples == 60


def test_long_streams_of_slots_are_read_in_parts(client: redis.Redis) -> None:
    for number in range(10):
        send(client, Slot(number, {1: ("ttft", *packed(400, 1), 0, b"")}))
    latency, known = Latency(), Gateways(True, (Registration("gw1", "b", 0, 1),))
    rounds = 0
    while latency.read(known):
        rounds += 1
    assert rounds == 3
    assert len(latency.replicas[1].calls) == 10
