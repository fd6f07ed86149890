"""Whatever is killed: what runs goes on, a new agent adopts it, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import psutil

from tests.host.harness import SPEC, HostHarness, Stream, until
from workers.host.command import marks
from workers.host.settings import read
from workers.simulator.faults import set_fault


def ready(host: HostHarness, number: int = 1) -> int:
    """Starts a replica, returns its engine's pid."""
    host.serve(number)
    return host.processes(number)[0].pid


def test_an_agent_killed_while_an_engine_runs_adopts_it(host: HostHarness) -> None:
    pid = ready(host)
    door = host.processes(door=True)[0].pid
    host.kill_agent()
    assert host.call(1).status_code == 200
    host.start_agent()
    seen = host.until_phase(1, "ready", 1)
    report = host.control.report()
    assert report is not None
    assert report.generation == 0
    assert seen.took == "start"
    assert [one.pid for one in host.processes(1)] == [pid]
    assert [one.pid for one in host.processes(door=True)] == [door]
    host.say_again()
    until(lambda: (now := host.control.report()) and now.generation == host.control.generation, "the want is applied")
    assert host.call(1).status_code == 200
    assert [one.pid for one in host.processes(1)] == [pid]


def test_an_agent_killed_while_an_engine_starts_adopts_it(make_host: Callable[..., HostHarness]) -> None:
    host = make_host(init_s=3.0)
    host.start_agent()
    host.want(1, "ready")
    host.until_phase(1, "starting")
    pid = until(lambda: host.processes(1), "the engine's process")[0].pid
    host.kill_agent()
    host.start_agent()
    assert host.until_phase(1, "starting").attempt == 1
    host.want(2, "ready", cards=[host.cards[0]])
    assert host.until_phase(2, "starting").stage == "queued"
    seen = host.until_phase(1, "ready", 1)
    assert seen.took_s is not None
    assert seen.took_s >= 3.0
    assert [one.pid for one in host.processes(1)] == [pid]
    host.until_phase(2, "ready")


def test_a_stream_through_the_door_outlives_two_agents(host: HostHarness) -> None:
    ready(host)
    stream = Stream(host, 1, max_tokens=1500)
    until(lambda: len(stream.lines) > 5, "the stream flows")
    host.kill_agent()
    host.start_agent()
    host.say_again()
    assert host.stop_agent() == 0
    host.start_agent()
    stream.finish()
    assert stream.whole, (stream.error, stream.lines[-2:])


def test_a_sleeper_is_adopted(host: HostHarness) -> None:
    pid = ready(host)
    host.want(1, "asleep")
    host.until_phase(1, "asleep")
    host.kill_agent()
    host.start_agent()
    assert host.until_phase(1, "asleep").attempt == 1
    host.want(1, "ready")
    assert host.until_phase(1, "ready").took == "wake"
    assert [one.pid for one in host.processes(1)] == [pid]


def test_a_stop_goes_on_after_the_agent_died_in_it(host: HostHarness) -> None:
    ready(host)
    stream = Stream(host, 1, max_tokens=1000)
    until(lambda: len(stream.lines) > 3, "the stream flows")
    host.want(1, "stopped")
    until(lambda: (one := host.see(1)) and one.stage == "door", "waits for its call")
    assert "1" not in host.door_map()
    assert host.call(1).status_code == 404
    host.kill_agent()
    host.start_agent()
    assert host.until_phase(1, "draining").stage == "door"
    host.say_again()
    stream.finish()
    assert stream.whole
    host.until_phase(1, "stopped", 1)
    assert host.processes(1) == []


def test_a_killed_engine_is_failed_and_a_larger_attempt_starts_again(host: HostHarness) -> None:
    pid = ready(host)
    os.kill(pid, signal.SIGKILL)
    seen = host.until_phase(1, "failed", 1)
    assert seen.fault
    assert host.processes(1) == []
    assert "1" not in host.door_map()
    host.say_again()
    host.stop_agent()
    host.start_agent()
    assert host.until_phase(1, "failed", 1).fault == seen.fault
    host.want(1, "ready", attempt=2)
    host.until_phase(1, "ready", 2)
    assert host.processes(1)[0].pid != pid


def test_an_engine_that_ends_unasked_has_crashed_even_with_status_0(host: HostHarness) -> None:
    pid = ready(host)
    os.kill(pid, signal.SIGTERM)
    host.until_phase(1, "failed", 1)
    assert host.processes(1) == []


def test_a_hung_engine_is_killed_and_failed(host: HostHarness) -> None:
    pid = ready(host)
    os.kill(pid, signal.SIGSTOP)
    seen = host.until_phase(1, "failed", 1)
    assert seen.fault == "hung"
    assert host.processes(1) == []


def test_a_start_that_crashes_tells_the_true_reason(host: HostHarness) -> None:
    set_fault(host.sim, "load_crash", at_pct=50.0)
    host.want(1, "ready")
    seen = host.until_phase(1, "failed", 1)
    assert seen.fault == "device_error"
    assert "CUDA error" in seen.fault_text
    assert host.processes(1) == []


def test_a_start_without_memory_tells_so(host: HostHarness) -> None:
    set_fault(host.sim, "foreign_memory", f"card:{host.cards[0]}", mib=23_500)
    host.want(1, "ready")
    seen = host.until_phase(1, "failed", 1)
    assert seen.fault == "out_of_memory"
    assert not seen.fatal
    assert "less than desired" in seen.fault_text


def test_bad_arguments_are_fatal_and_nothing_is_started(host: HostHarness) -> None:
    host.want(1, "ready", engine=replace(SPEC, kind="unheard-of"))
    seen = host.until_phase(1, "failed", 1)
    assert (seen.fault, seen.fatal) == ("bad_arguments", True)
    assert host.processes(1) == []


def test_a_start_is_called_off_although_its_first_sigterm_is_lost(make_host: Callable[..., HostHarness]) -> None:
    host = make_host(init_s=30.0)
    host.start_agent()
    host.want(1, "ready")
    until(lambda: host.processes(1), "the engine's process")
    host.want(1, "stopped")
    host.until_phase(1, "stopped", 1)
    assert host.processes(1) == []


def test_force_cuts_what_a_plain_stop_waits_for(host: HostHarness) -> None:
    ready(host)
    stream = Stream(host, 1, max_tokens=100_000)
    until(lambda: len(stream.lines) > 3, "the stream flows")
    host.want(1, "stopped")
    until(lambda: (one := host.see(1)) and one.stage == "door", "waits for its call")
    host.want(1, "stopped", force=True, shutdown_s=1)
    host.until_phase(1, "stopped", 1)
    stream.finish()
    assert not stream.whole
    assert host.processes(1) == []
    assert host.counts() == {}


def test_what_no_want_names_is_stopped(host: HostHarness) -> None:
    ready(host)
    host.forget(1)
    until(lambda: not host.processes(1), "the orphan is gone")
    until(lambda: host.say_again() or host.see(1) is None, "and forgotten")
    until(lambda: not host.engine_folder(1).exists(), "with its folder")


def test_a_stranger_with_our_mark_is_stopped_but_only_after_a_want(host: HostHarness) -> None:
    around = read(host.environment())
    environment = marks(around, host.replica(77, attempt=4), os.environ)
    child = subprocess.Popen(
        [sys.executable, "-c", "import time\nwhile True: time.sleep(0.5)"], env=environment, start_new_session=True
    )
    try:
        assert host.until_phase(77, "starting").attempt == 4
        assert child.poll() is None
        host.send()
        until(lambda: child.poll() is not None, "it is ended")
        assert child.returncode == -signal.SIGTERM
    finally:
        child.kill()
        child.wait(10)


def test_a_process_of_another_farm_is_left_alone(host: HostHarness) -> None:
    environment = marks(read(host.environment()), host.replica(78), os.environ) | {"GONGKA_FARM": "somebody-else"}
    child = subprocess.Popen(
        [sys.executable, "-c", "import time\nwhile True: time.sleep(0.5)"], env=environment, start_new_session=True
    )
    try:
        ready(host)
        host.want(1, "stopped")
        host.until_phase(1, "stopped")
        assert host.see(78) is None
        assert child.poll() is None
    finally:
        child.kill()
        child.wait(10)


def test_an_older_want_is_ignored(host: HostHarness) -> None:
    ready(host)
    newest = host.send()
    host.wanted[1] = host.replica(1, want="stopped", force=True)
    host.send(newest - 1)
    host.wanted[1] = host.replica(1, want="ready", force=False)
    applied = host.send(newest)
    until(lambda: (now := host.control.report()) and now.generation == applied, "the newest is what counts")
    assert host.see(1).phase == "ready"  # type: ignore[union-attr]
    assert host.call(1).status_code == 200
    phases = {one.phase for report in host.control.reports() for one in report.replicas}
    assert "stopped" not in phases


def test_starts_on_one_card_never_overlap_and_two_cards_do_not_wait(make_host: Callable[..., HostHarness]) -> None:
    host = make_host(init_s=1.0)
    host.start_agent()
    for number, card in ((1, 0), (2, 0), (3, 1)):
        host.wanted[number] = host.replica(number, cards=[host.cards[card]])
    host.send()
    for number in (1, 2, 3):
        host.until_phase(number, "ready")
    loading = [
        {one.id for one in report.replicas if one.phase == "starting" and one.stage != "queued"}
        for report in host.control.reports()
    ]
    assert not any({1, 2} <= together for together in loading)
    assert any(3 in together and together & {1, 2} for together in loading)


def test_a_killed_sampler_comes_back(host: HostHarness) -> None:
    def samplers() -> list[int]:
        found = []
        for one in psutil.Process(host.agent.pid).children():  # type: ignore[union-attr]
            with suppress(psutil.Error):
                found += [one.pid] if "telemetry.simulated" in " ".join(one.cmdline()) else []
        return found

    pid = until(samplers, "the sampler runs")[0]
    os.kill(pid, signal.SIGKILL)
    until(lambda: samplers() and samplers() != [pid], "another one runs")
    until(lambda: (now := host.control.report()) and now.cards_at, "and measures")
    new = samplers()[0]
    host.kill_agent()
    until(lambda: not os.path.exists(f"/proc/{new}"), "it ends with its agent")


def test_an_engine_that_hangs_and_says_it_is_well_is_killed_and_failed(host: HostHarness) -> None:
    ready(host)
    set_fault(host.sim, "hang")
    stream = Stream(host, 1, 50)
    host.want(1, "ready", stall_s=3)
    seen = host.until_phase(1, "failed", 1)
    stream.thread.join(30)
    assert seen.fault == "stalled"
    assert host.processes(1) == []
