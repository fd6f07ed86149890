"""The driver's view: what live, dead and foreign processes hold, and how it can fail."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from tests.simulator.harness import RESERVED_MIB, TOTAL_MIB, SimHost, until
from workers.simulator.cards import CardState, TelemetryError, make_cards, read_cards, read_host
from workers.simulator.faults import clear_faults, set_fault
from workers.simulator.machine import start_ticks, write_json
from workers.simulator.memory import Memory, OutOfMemory

EMPTY_MIB = TOTAL_MIB - RESERVED_MIB


def record(host: SimHost, pid: int, start: int, held: dict[str, int], **more: object) -> None:
    fixed = {"pid": pid, "start": start, "name": "VLLM::Worker", "replica": "7", "service": "tiny", "held_mib": held}
    write_json(host.directory / "alloc" / f"{pid}.{start}.json", fixed | more)


def record_dead(host: SimHost, held_mib: int, pid: int = 999_999) -> None:
    record(host, pid, 1, {"GPU-0": held_mib})


def test_an_empty_host_shows_its_cards(host: SimHost) -> None:
    first, second = read_cards(host.directory)
    assert (first.uuid, first.index, second.index) == ("GPU-0", 0, 1)
    assert (first.total_mib, first.reserved_mib, first.free_mib) == (TOTAL_MIB, RESERVED_MIB, EMPTY_MIB)
    assert (first.util_pct, first.healthy, first.processes) == (0, True, ())


def test_what_was_made_is_read_back(host: SimHost) -> None:
    assert read_host(host.directory) == host.spec


def test_a_folder_that_is_no_host_is_an_error(tmp_path) -> None:
    with pytest.raises(OSError, match="cards.json"):
        read_cards(tmp_path)


def test_a_live_process_is_listed_with_its_memory_and_its_share_of_time(host: SimHost) -> None:
    memory = Memory(host.directory, ["GPU-0"], "7", "tiny")
    memory.take(5000)
    memory.publish(0.4, "ready")
    card = host.card()
    assert (card.free_mib, card.util_pct) == (EMPTY_MIB - 5000, 40)
    assert [(one.pid, one.used_mib, one.replica) for one in card.processes] == [(os.getpid(), 5000, "7")]
    assert host.card(1).free_mib == EMPTY_MIB


def test_more_than_is_free_is_refused_and_changes_nothing(host: SimHost) -> None:
    set_fault(host.directory, "foreign_memory", "card:GPU-0", mib=80_000)
    memory = Memory(host.directory, ["GPU-0", "GPU-1"], "7", "tiny")
    memory.take(1000)
    with pytest.raises(OutOfMemory, match=r"Tried to allocate 0.98 GiB. GPU 0 .* 80.00 GiB of which 0.31 GiB is free"):
        memory.take(2000)
    assert memory.held_mib == 1000
    assert host.free_mib(1) == EMPTY_MIB - 1000


def test_a_card_that_is_not_there_is_refused(host: SimHost) -> None:
    with pytest.raises(ValueError, match="GPU-9"):
        Memory(host.directory, ["GPU-9"], "7", "tiny")
    with pytest.raises(ValueError, match="none named"):
        Memory(host.directory, [], "7", "tiny")


def test_memory_of_a_dead_process_comes_back_late_and_its_record_goes(host: SimHost) -> None:
    record_dead(host, 9000)
    first = host.card()
    assert first.free_mib == EMPTY_MIB - 9000
    assert first.processes == ()
    until(lambda: host.free_mib() == EMPTY_MIB, "memory back")
    assert list((host.directory / "alloc").iterdir()) == []


def test_memory_comes_back_over_time_not_at_once(host: SimHost) -> None:
    set_fault(host.directory, "release", seconds=10)
    record(host, 999_999, 1, {"GPU-0": 10_000}, died_at=time.time() - 7.5)
    assert EMPTY_MIB - 6000 < host.free_mib() < EMPTY_MIB - 4000


def test_another_process_with_the_same_pid_owns_nothing(host: SimHost) -> None:
    record(host, os.getpid(), (start_ticks(os.getpid()) or 0) + 5, {"GPU-0": 4000})
    assert host.card().processes == ()
    until(lambda: host.free_mib() == EMPTY_MIB, "memory back")


def test_a_zombie_holds_nothing(host: SimHost) -> None:
    child = subprocess.Popen(["sleep", "60"])
    start = start_ticks(child.pid)
    assert start is not None
    record(host, child.pid, start, {"GPU-0": 4000})
    assert host.free_mib() == EMPTY_MIB - 4000
    child.kill()
    until(lambda: host.free_mib() == EMPTY_MIB, "memory of a zombie")
    child.wait()


def test_a_clock_set_back_does_not_pin_memory(host: SimHost) -> None:
    record(host, 999_999, 1, {"GPU-0": 4000}, died_at=time.time() + 3600)
    assert host.free_mib() == EMPTY_MIB


@pytest.mark.parametrize(("share", "stays"), [(0.25, 7500), (0.0, 10_000)])
def test_part_or_none_of_the_memory_comes_back(host: SimHost, share: float, stays: int) -> None:
    set_fault(host.directory, "release", "service:tiny", seconds=0.05, share=share)
    record_dead(host, 10_000)
    until(lambda: host.free_mib() == EMPTY_MIB - stays, "the part that comes back")
    clear_faults(host.directory, "release")
    until(lambda: host.free_mib() == EMPTY_MIB, "all of it once the fault is over")


def test_every_death_leaves_memory_behind(host: SimHost) -> None:
    set_fault(host.directory, "leave", "card:GPU-0", mib=300)
    for number in range(3):
        record_dead(host, 5000, pid=999_990 + number)
    until(lambda: host.free_mib() == EMPTY_MIB - 900, "three rounds of 300")


def test_foreign_memory_is_a_process_of_its_own(host: SimHost) -> None:
    set_fault(host.directory, "foreign_memory", "card:GPU-1", mib=70_000, name="train.py")
    assert host.free_mib(0) == EMPTY_MIB
    card = host.card(1)
    assert card.free_mib == EMPTY_MIB - 70_000
    assert [(one.name, one.used_mib, one.replica) for one in card.processes] == [("train.py", 70_000, "")]
    assert card.processes[0].pid > 4_194_304  # never a pid that somebody could end


def test_one_card_that_cannot_be_measured_is_unknown_not_empty(host: SimHost) -> None:
    set_fault(host.directory, "telemetry", "card:GPU-0")
    blind, other = read_cards(host.directory)
    assert (blind.free_mib, blind.util_pct, blind.healthy, blind.processes) == (None, None, True, ())
    assert other.free_mib == EMPTY_MIB


def test_a_card_off_the_bus_is_not_healthy(host: SimHost) -> None:
    set_fault(host.directory, "telemetry", "card:GPU-0", lost=True)
    assert [card.healthy for card in read_cards(host.directory)] == [False, True]


def test_the_whole_hosts_driver_can_fail_and_recover(host: SimHost) -> None:
    set_fault(host.directory, "telemetry")
    with pytest.raises(TelemetryError):
        read_cards(host.directory)
    clear_faults(host.directory)
    assert len(read_cards(host.directory)) == 2


def test_card_order_changes_the_index_and_not_the_card(host: SimHost) -> None:
    set_fault(host.directory, "card_order", order="1,0")
    assert [(card.index, card.uuid) for card in read_cards(host.directory)] == [(0, "GPU-1"), (1, "GPU-0")]


def test_making_cards_again_keeps_what_processes_hold(host: SimHost) -> None:
    memory = Memory(host.directory, ["GPU-0"], "7", "tiny")
    memory.take(100)
    make_cards(host.directory, host.spec.cards, init_s=3.0)
    assert host.free_mib() == EMPTY_MIB - 100
    assert read_host(host.directory).init_s == 3.0


def test_a_half_written_record_is_never_seen(host: SimHost) -> None:
    (host.directory / "alloc" / ".1.2.json.3").write_text("{")
    assert host.free_mib() == EMPTY_MIB
    assert json.loads((host.directory / "cards.json").read_text())["release_s"] == 0.2


def test_reading_eight_cards_with_two_dozen_processes_is_cheap() -> None:
    host = SimHost(cards=8)
    try:
        start = start_ticks(os.getpid())
        for number in range(24):
            row = {"pid": os.getpid(), "start": start, "name": "w", "replica": "", "service": ""}
            write_json(host.directory / "alloc" / f"{number}.0.json", row | {"held_mib": {f"GPU-{number % 8}": 100}})
        times = [_timed(host) for _ in range(20)]
        assert min(times) < 0.003
    finally:
        host.close()


def _timed(host: SimHost) -> float:
    began = time.process_time()
    states: list[CardState] = read_cards(host.directory)
    assert len(states) == 8
    return time.process_time() - began
