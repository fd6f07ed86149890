"""Latencies by replica and slot: what is counted, what is sent, what is left out."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from console.gateway.latency import TOTAL, TTFT, Latency, Tallies, body
from console.gateway.limits import KIB, Limits
from scheduler.histogram import unpacked
from tests.gateway.farm import Farm, on, until
from workers.control.latency import Slot


def read(raw: bytes) -> Slot:
    return msgspec.msgpack.decode(raw, type=Slot)


def closed(latency: Latency) -> Slot:
    latency.close()
    return read(latency._waiting[-1])


def test_calls_and_gaps_are_told_apart() -> None:
    latency = Latency("gw1", Limits())
    for ms in (300.0, 310.0, 900.0):
        latency.call(7, TTFT, ms)
    for _ in range(40):
        latency.gap(7, 21.0)
    latency.call(8, TOTAL, 50.0)
    told = closed(latency)
    metric, first, calls, first_gap, gaps = told.replicas[7]
    assert metric == TTFT
    assert unpacked(first, calls).samples == 3
    assert unpacked(first, calls).quantile_ms(1.0) == pytest.approx(900, rel=0.02)
    assert unpacked(first_gap, gaps).quantile_ms(0.99) == pytest.approx(21, rel=0.02)
    assert told.replicas[8][0] == TOTAL


def test_a_slot_with_nothing_in_it_is_not_sent() -> None:
    latency = Latency("gw1", Limits())
    latency.close()
    latency.call(7, TTFT, 300.0)
    latency.close()
    latency.close()
    assert len(latency._waiting) == 1


def test_two_metrics_are_never_mixed() -> None:
    latency = Latency("gw1", Limits())
    latency.call(7, TOTAL, 9000.0)
    latency.call(7, TTFT, 300.0)
    metric, first, calls, *_ = closed(latency).replicas[7]
    assert metric == TTFT
    assert unpacked(first, calls).samples == 1


def test_while_nobody_takes_them_only_the_last_slots_are_kept() -> None:
    latency = Latency("gw1", Limits(slots_kept=6))
    for number in range(20):
        latency.call(number, TTFT, 300.0)
        latency.close()
    assert [list(read(raw).replicas) for raw in latency._waiting] == [[n] for n in range(14, 20)]


def busy(samples: int) -> Tallies:
    tallies = Tallies()
    for sample in range(samples):
        tallies.calls.add(20.0 + 30 * sample)
        tallies.gaps.add(5.0 + sample)
    return tallies


def test_a_slot_over_its_limit_keeps_the_busiest() -> None:
    replicas = {number: busy(2 + number) for number in range(200)}
    whole = body(5, replicas, 4096 * KIB)
    assert len(read(whole).replicas) == 200
    part = body(5, replicas, 16 * KIB)
    assert len(part) <= 16 * KIB
    kept = read(part).replicas
    assert 0 < len(kept) < 200
    assert min(kept) > max(set(replicas) - set(kept))


def test_a_farm_of_busy_replicas_fits() -> None:
    assert len(body(5, {number: busy(100) for number in range(900)}, 4096 * KIB)) <= Limits().slot_kib * KIB


def test_the_running_gateway_measures_streams_by_their_first_token_and_control_can_read_it(
    own_farm: Callable[..., Farm],
) -> None:
    farm = own_farm()
    farm.routed("svc", **on(1))
    farm.routed("embedder", **on(2), p99_metric=TOTAL)
    for _ in range(3):
        assert farm.call("svc", stream=True).status_code == 200
    assert farm.call("svc").status_code == 200  # of a plain answer nobody knows the first token
    assert farm.call("embedder").status_code == 200
    key = "gateway:gw1:slots"

    def told(replica: int) -> tuple[int, int]:
        """Samples of calls and of gaps in all slots."""
        slots = [read(fields[b"b"]).replicas.get(replica) for _, fields in farm.redis.client.xrange(key)]
        found = [(unpacked(*slot[1:3]).samples, unpacked(*slot[3:]).samples) for slot in slots if slot]
        return sum(calls for calls, _ in found), sum(gaps for _, gaps in found)

    until(lambda: told(1)[0] >= 3 and told(2)[0] >= 1)
    assert told(1)[0] == 3

    def more_gaps() -> bool:
        """Chunks that arrive together are one: a gap is seen when the machine lets them come apart."""
        assert farm.call("svc", stream=True).status_code == 200
        return told(1)[1] >= 3

    until(more_gaps)
    assert told(2) == (1, 0)
    assert 0 < farm.redis.client.ttl(key) <= 600
