"""Cards as NVIDIA's own binding shows them, through a compiled stand-in of the driver library."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pynvml as nv
import pytest

from tests.host.harness import until
from tests.host.nvml.conftest import Driver, a_card
from workers.host.limits import Limits
from workers.host.settings import Settings
from workers.host.telemetry import Sample, Telemetry

LIMIT_S = 30.0


class Source:
    """The sampler as the agent runs it: a process that writes a line a second."""

    def __init__(self, driver: Driver) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "workers.host.telemetry.nvml", "0.1"],
            env=driver.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def line(self) -> Sample:
        return msgspec.json.decode(self.process.stdout.readline(), type=Sample)

    def until(self, wanted: Any) -> Sample:
        """The first sample that is so."""
        for _ in range(100):
            sample = self.line()
            if wanted(sample):
                return sample
        raise AssertionError(f"never so: {sample}")

    def end(self) -> int:
        self.process.stdin.close()
        try:
            return self.process.wait(LIMIT_S)
        finally:
            self.process.kill()
            self.process.stdout.close()


@pytest.fixture
def source(driver: Driver) -> Iterator[Source]:
    found = Source(driver)
    yield found
    found.end()


def test_cards_by_uuid_in_whole_mib(source: Source) -> None:
    card = source.line().cards[0]
    assert (card.uuid, card.index, card.name) == ("GPU-0", 0, "NVIDIA A800-SXM4-80GB")
    assert (card.total_mib, card.reserved_mib, card.free_mib) == (81920, 600, 81920 - 1600)
    assert (card.util_pct, card.healthy, card.note, card.compute_cap, card.slice_of) == (37, True, "", 8.0, "")
    assert [(one.pid, one.used_mib) for one in card.processes] == [(4242, 900)]


def test_it_ends_when_nobody_listens_any_more(driver: Driver) -> None:
    source = Source(driver)
    source.line()
    assert source.end() == 0


def test_an_old_driver_is_asked_the_old_way(driver: Driver, source: Source) -> None:
    driver.set(old_driver=1)
    card = source.until(lambda sample: sample.cards[0].reserved_mib == 0).cards[0]
    assert card.free_mib == 81920 - 1600, "free is the same in both"


def test_what_a_board_does_not_tell_is_unknown_not_zero(driver: Driver, source: Source) -> None:
    driver.set(c0_util=None, c0_capability=None, c0_uncorrected=None, c0_remapped=None, c0_events=None)
    driver.set(c0_processes="4242:-1,4243:500")
    card = source.until(lambda sample: sample.cards[0].util_pct is None).cards[0]
    assert card.compute_cap is None
    assert card.healthy
    assert [(one.pid, one.used_mib) for one in card.processes] == [(4242, None), (4243, 500)]
    assert not card.per_process


def test_a_process_in_two_lists_counts_once(driver: Driver, source: Source) -> None:
    driver.set(c1_graphics="4242:1200", c1_mps="7:30")
    card = source.until(lambda sample: len(sample.cards[1].processes) == 2).cards[1]
    assert [(one.pid, one.used_mib) for one in card.processes] == [(7, 30), (4242, 1200)]


@pytest.mark.parametrize("code", [15, 999])
def test_a_lost_card_spoils_no_other_and_may_come_back(driver: Driver, source: Source, code: int) -> None:
    assert all(card.healthy for card in source.line().cards)
    driver.put("1.error", code)
    cards = source.until(lambda sample: any(not card.healthy for card in sample.cards)).cards
    assert [(card.uuid, card.healthy) for card in cards] == [("GPU-0", True), ("GPU-1", False), ("GPU-2", True)]
    assert (cards[1].free_mib, cards[1].total_mib, cards[1].processes) == (None, 81920, [])
    assert cards[1].note
    driver.set(c1_error=None)
    assert source.until(lambda sample: sample.cards[1].free_mib is not None).cards[1].total_mib == 81920


def test_cards_stay_who_they_are_when_the_driver_numbers_them_anew(driver: Driver, source: Source) -> None:
    source.line()
    a_card(driver, 0, uuid="GPU-2", total=24576)
    a_card(driver, 2, uuid="GPU-0")
    cards = source.until(lambda sample: sample.cards[0].uuid == "GPU-2").cards
    assert [(card.uuid, card.total_mib) for card in cards] == [("GPU-2", 24576), ("GPU-1", 81920), ("GPU-0", 81920)]


@pytest.mark.parametrize(("xid", "healthy"), [(79, False), (48, False), (119, False), (31, True), (13, True)])
def test_a_fault_of_the_card_condemns_it_and_one_of_a_process_does_not(
    driver: Driver, source: Source, xid: int, healthy: bool
) -> None:
    source.line()
    driver.set(xid=f"2:{xid}:1")
    source.line()
    card = source.until(lambda sample: sample.cards[2].healthy is healthy).cards[2]
    assert card.note == ("" if healthy else f"XID {xid}")
    assert [one.healthy for one in source.line().cards] == [True, True, healthy], "it stays so"


@pytest.mark.parametrize(("key", "value"), [("uncorrected", 3), ("remapped", "0,1,1,0"), ("remapped", "0,0,0,1")])
def test_memory_that_fails_condemns_the_card(driver: Driver, source: Source, key: str, value: object) -> None:
    source.line()
    driver.put(f"0.{key}", value)
    assert source.until(lambda sample: not sample.cards[0].healthy).cards[0].note


def test_errors_from_before_we_looked_are_history(driver: Driver) -> None:
    driver.set(c0_uncorrected=7)
    source = Source(driver)
    source.line()
    assert source.line().cards[0].healthy
    source.end()


def test_slices_are_cards_of_their_own_and_the_cut_card_is_none(driver: Driver, source: Source) -> None:
    slices = {0: ("MIG-a", 40192), 3: ("MIG-b", 9856)}
    for place, (uuid, total) in slices.items():
        for key, value in {"uuid": uuid, "name": "MIG 3g.40gb", "total": total, "used": 16}.items():
            driver.put(f"1.mig.{place}.{key}", value)
    driver.set(c1_mig_mode="1,1", c1_util=None)
    cards = source.until(lambda sample: len(sample.cards) >= 4 and sample.cards[1].uuid == "MIG-a").cards
    cut = [card for card in cards if card.slice_of]
    assert [(c.uuid, c.index, c.total_mib, c.slice_of, c.util_pct) for c in cut] == [
        ("MIG-a", 1, 40192, "GPU-1", None),
        ("MIG-b", 1, 9856, "GPU-1", None),
    ]
    assert [c.compute_cap for c in cut] == [8.0, 8.0]


def test_cards_joined_by_links_are_a_group(driver: Driver) -> None:
    driver.put("link.0.2", 0)
    source = Source(driver)
    assert [card.group for card in source.line().cards] == ["nvlink-0", "", "nvlink-0"]
    source.end()


@pytest.mark.parametrize(("call", "code"), [("nvmlInitWithFlags", 9), ("nvmlDeviceGetCount_v2", 999)])
def test_a_driver_that_does_not_answer_is_a_fault_and_heals(driver: Driver, call: str, code: int) -> None:
    driver.put(f"error.{call}", code)
    source = Source(driver)
    fault = source.line()
    assert fault.cards == []
    assert fault.fault.startswith("NVML: ")
    driver.values.pop(f"error.{call}")
    driver.write()
    assert len(source.until(lambda sample: not sample.fault).cards) == 3
    source.end()


def test_a_machine_without_the_library_says_so(driver: Driver, tmp_path) -> None:
    driver.library = tmp_path
    source = Source(driver)
    assert "not found" in source.line().fault.lower()
    source.end()


def test_after_an_upgrade_of_the_driver_a_new_process_is_needed(driver: Driver) -> None:
    driver.put("error.nvmlInitWithFlags", nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    done = subprocess.run(
        [sys.executable, "-m", "workers.host.telemetry.nvml", "0.1"],
        env=driver.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
    )
    assert done.returncode != 0


def test_a_library_that_hangs_neither_stops_the_agent_nor_leaves_anybody(driver: Driver, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", driver.environment["LD_LIBRARY_PATH"])
    monkeypatch.setattr("workers.host.telemetry.INHERITED", ("PATH", "LD_LIBRARY_PATH", "FAKE_NVML"))
    monkeypatch.setenv("FAKE_NVML", str(driver.path))
    settings = Settings("f", "h", tmp_path, "127.0.0.1", 1, tmp_path, telemetry="nvml")
    telemetry = Telemetry(settings, Limits(sample_s=0.1, sample_hung_s=2.0))
    telemetry.begin()
    try:
        until(lambda: telemetry.at is not None)
        first = telemetry._child.pid
        driver.set(hang=1)
        until(lambda: telemetry.at is None)
        assert [card.free_mib for card in telemetry.cards()] == [None] * 3
        assert telemetry.cards()[0].note == "the driver does not answer"
        until(lambda: telemetry._child.pid != first)
        driver.set(hang=None)
        until(lambda: telemetry.at is not None)
        assert [card.free_mib for card in telemetry.cards()] == [80320] * 3
    finally:
        telemetry.halt()
    assert telemetry._child.poll() is not None


# What the fake takes for granted


@pytest.mark.parametrize(
    ("structure", "size"),
    [
        (nv.c_nvmlMemory_t, 24),
        (nv.c_nvmlMemory_v2_t, 40),
        (nv.c_nvmlProcessInfo_v3_t, 24),
        (nv.nvmlPciInfo_t, 68),
        (nv.c_nvmlEventData_t, 32),
        (nv.c_nvmlBAR1Memory_t, 24),
    ],
)
def test_structures_have_the_sizes_that_the_fake_was_written_for(structure: Any, size: int) -> None:
    assert ctypes.sizeof(structure) == size


def test_another_reader_of_the_same_driver_sees_the_same(driver: Driver, source: Source) -> None:
    """nvitop reads the same library by its own code."""
    code = """
import json
from nvitop import Device
rows = [[d.uuid(), d.name(), d.memory_total() >> 20, d.memory_free() >> 20, d.gpu_utilization(),
         sorted([p.pid, p.gpu_memory() >> 20] for p in d.processes().values())] for d in Device.all()]
print(json.dumps(rows))
"""
    theirs = json.loads(driver.python(code))
    ours = source.line().cards
    for row, card in zip(theirs, ours, strict=True):
        assert row[:5] == [card.uuid, card.name, card.total_mib, card.free_mib, card.util_pct]
        assert [pid for pid, _ in row[5]] in ([], [one.pid for one in card.processes])
