"""Start, drain, sleep, wake, stop: with a real agent, real engines, a real door."""

from __future__ import annotations

from dataclasses import replace

import httpx

from tests.host.harness import SPEC, HostHarness, Stream, until
from workers.simulator.faults import set_fault


def test_it_starts_an_engine_that_answers_through_the_door(host: HostHarness) -> None:
    host.want(1, "ready")
    seen = host.until_phase(1, "ready", 1)
    assert seen.took == "start"
    assert seen.took_s is not None
    assert seen.took_s > 0.3
    assert "1" in host.door_map(), "ready is said when a call would be answered, not before"
    answer = host.call(1)
    assert answer.status_code == 200
    assert answer.json()["model"] == SPEC.served_name
    measured = until(lambda: (one := host.see(1)) and one.measured_mib, "its memory is measured")
    assert 1000 <= measured <= 1800


def test_it_sleeps_wakes_and_stops(host: HostHarness) -> None:
    host.want(1, "ready")
    host.until_phase(1, "ready")
    host.want(1, "drained")
    host.until_phase(1, "draining")
    assert "1" in host.door_map()
    host.want(1, "asleep")
    host.until_phase(1, "asleep")
    assert "1" not in host.door_map()
    assert host.call(1).status_code == 404
    host.want(1, "ready")
    woken = host.until_phase(1, "ready")
    assert woken.took == "wake"
    until(lambda: "1" in host.door_map(), "routed again")
    assert host.call(1).status_code == 200
    host.want(1, "stopped")
    host.until_phase(1, "stopped", 1)
    assert host.processes(1) == []
    assert not (host.engine_folder(1) / "sock").exists()


def test_a_sleep_waits_for_the_calls_in_flight(host: HostHarness) -> None:
    host.want(1, "ready")
    host.until_phase(1, "ready")
    until(lambda: "1" in host.door_map(), "routed")
    stream = Stream(host, 1, max_tokens=300)
    until(lambda: len(stream.lines) > 3, "the stream flows")
    host.want(1, "drained")
    host.want(1, "asleep")
    until(lambda: "1" not in host.door_map(), "no new call reaches it")
    assert host.call(1).status_code == 404
    stream.finish()
    assert stream.whole
    host.until_phase(1, "asleep")


def test_a_wake_without_memory_fails_with_the_engines_words(host: HostHarness) -> None:
    host.want(1, "ready")
    host.until_phase(1, "ready")
    host.want(1, "asleep")
    host.until_phase(1, "asleep")
    set_fault(host.sim, "foreign_memory", f"card:{host.cards[0]}", mib=22_700)
    host.want(1, "ready")
    seen = host.until_phase(1, "failed", 1)
    assert (seen.fault, seen.fatal) == ("out_of_memory", False)
    assert "out of memory" in seen.fault_text
    assert host.processes(1) == []


def test_an_embedding_engine_starts_too(host: HostHarness) -> None:
    host.want(1, "ready", engine=replace(SPEC, task="embedding"))
    host.until_phase(1, "ready")
    until(lambda: "1" in host.door_map(), "routed")
    answer = httpx.post(
        f"{host.door}/r/1/v1/embeddings",
        json={"model": SPEC.served_name, "input": "你好"},
        headers=host.bearer,
        timeout=60,
        trust_env=False,
    )
    assert answer.status_code == 200
