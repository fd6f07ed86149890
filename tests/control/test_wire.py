"""The door to Redis, against a real server: what is read, what is refused, and what a late writer may still change."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
import redis
from pytest_django import Settings

from console import wire
from tests.host.harness import RedisServer, redis_server


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server(["h1", "h2"]) as running:
        yield running


@pytest.fixture
def client(server: RedisServer, settings: Settings) -> Iterator[redis.Redis]:
    settings.REDIS_URL = server.url()
    wire.client.cache_clear()
    yield wire.client()
    wire.client().flushdb()
    wire.client().close()
    wire.client.cache_clear()


def test_a_nudge_between_two_reads_is_not_lost(client: redis.Redis) -> None:
    inbox = wire.Inbox()
    assert not inbox.wait_nudge(0.01)
    wire.nudge("hotline")
    assert inbox.wait_nudge(5)
    assert not inbox.wait_nudge(0.01)


def test_the_newest_report_of_each_host_is_read_once(client: redis.Redis) -> None:
    inbox = wire.Inbox()
    for number in range(3):
        client.xadd("host:h1:report", {"b": f"one {number}"})
    client.xadd("host:h2:report", {"b": "two"})
    found = inbox.read_reports(["h1", "h2"])
    assert {name: body for name, (_, body) in found.items()} == {"h1": b"one 2", "h2": b"two"}
    assert abs(found["h1"][0] - time.time()) < 60
    assert inbox.read_reports(["h1", "h2"]) == {}


def test_a_report_too_large_is_left_out_and_a_stream_too_long_is_trimmed(client: redis.Redis) -> None:
    inbox = wire.Inbox()
    client.xadd("host:h1:report", {"b": "x" * (wire.REPORT_MAX_BYTES + 1)})
    assert inbox.read_reports(["h1"]) == {}
    for _ in range(500):
        client.xadd("host:h1:report", {"b": "{}"})
    inbox.read_reports(["h1"])
    assert client.xlen("host:h1:report") < 300


def test_no_hosts_is_no_question(client: redis.Redis) -> None:
    assert wire.Inbox().read_reports([]) == {}


def test_routes_go_forward_only(client: redis.Redis) -> None:
    """A holder that was frozen and wakes up publishes into the void."""
    new, old = (7 << 32) | 1, (6 << 32) | 999
    assert wire.routes_absent()
    assert wire.publish_routes(new, b"new")
    assert not wire.publish_routes(old, b"old")
    assert not wire.publish_routes(new, b"again")
    assert client.get("routes") == b"new"
    assert not wire.routes_absent()
    assert client.xlen("routes:bell") == 1


def register(client: redis.Redis, name: str, body: str) -> None:
    client.zadd("gateways", {name: time.time()})
    client.set(f"gateway:{name}", body, ex=5)


def test_a_young_table_is_unknown_and_an_old_one_means_what_it_says(client: redis.Redis) -> None:
    assert not wire.read_gateways().known
    client.set("gateways:since", time.time() - wire.TABLE_YOUNG_S)
    assert wire.read_gateways() == wire.Gateways(known=True)


def test_registrations_are_read_and_one_that_ran_out_is_gone(client: redis.Redis) -> None:
    client.set("gateways:since", 1)
    body = {
        "name": "gw1",
        "boot": "b",
        "at": 5.0,
        "routes_version": 3,
        "in_flight": {"12": 2},
        "services": {"hotline": {"held": 1, "held_since": 4.0}},
        "something_new": True,
    }
    register(client, "gw1", json.dumps(body))
    client.zadd("gateways", {"gone": time.time()})
    gateways = wire.read_gateways()
    assert [gateway.name for gateway in gateways.gateways] == ["gw1"]
    assert gateways.gateways[0].in_flight == {"12": 2}
    assert gateways.gateways[0].services["hotline"].held == 1


@pytest.mark.parametrize("body", ["", "{", "[]", '{"name": 1}'])
def test_a_gateway_that_cannot_be_read_makes_everything_unknown(client: redis.Redis, body: str) -> None:
    client.set("gateways:since", 1)
    register(client, "gw1", body)
    assert not wire.read_gateways().known


def test_without_redis_the_gateways_are_unknown(server: RedisServer, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    wire.client.cache_clear()
    assert wire.read_gateways() == wire.UNKNOWN
    wire.client.cache_clear()


def test_usage_is_read_in_order_and_dropped_when_acknowledged(client: redis.Redis) -> None:
    for seq in range(5):
        client.xadd("usage", {"b": str(seq)})
    entries = wire.read_usage("0-0", count=3)
    assert [body for _, body in entries] == [b"0", b"1", b"2"]
    wire.acknowledge_usage({"gw1": 2}, entries[-1][0])
    assert client.get("usage:ack:gw1") == b"2"
    assert [body for _, body in wire.read_usage("0-0")] == [b"3", b"4"]
    wire.acknowledge_usage({}, None)


def test_nothing_waits_for_a_silent_host(client: redis.Redis) -> None:
    client.lpush("host:h1:want", "old")
    wire.drop_wants(["h1"])
    wire.drop_wants([])
    assert not client.exists("host:h1:want")
