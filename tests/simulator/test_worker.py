"""An engine as a tree: what the death of each part does to the other and to the memory."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, suppress

import pytest

from tests.simulator.harness import RESERVED_MIB, TOTAL_MIB, Engine, SimHost, until
from workers.simulator.machine import start_ticks

EMPTY_MIB = TOTAL_MIB - RESERVED_MIB


@pytest.fixture
def tree(host: SimHost) -> Engine:
    return host.start(GONGKA_SIM_TREE="1").ready()


def worker(host: SimHost) -> int:
    (process,) = host.card().processes
    return process.pid


def test_the_driver_shows_the_worker_and_not_the_pid_that_was_started(host: SimHost, tree: Engine) -> None:
    pid = worker(host)
    assert pid != tree.pid
    assert os.getpgid(pid) == tree.pid
    with open(f"/proc/{pid}/cmdline", "rb") as handle:
        assert handle.read().startswith(b"VLLM::Worker")
    assert tree.chat().status_code == 200


def test_killing_the_api_server_alone_leaves_an_orphan_with_its_memory(host: SimHost, tree: Engine) -> None:
    pid, held = worker(host), EMPTY_MIB - host.free_mib()
    try:
        tree.process.kill()
        tree.exit_code()
        assert worker(host) == pid
        assert EMPTY_MIB - host.free_mib() == held > 0
        os.killpg(tree.pid, signal.SIGKILL)
        until(lambda: host.free_mib() == EMPTY_MIB, "memory back")
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_killing_the_worker_ends_the_api_server_with_code_0(host: SimHost, tree: Engine) -> None:
    with ExitStack() as stack:
        lines = tree.stream(stack)
        next(lines)
        os.kill(worker(host), signal.SIGKILL)
        rest = list(lines)
    assert "EngineCore encountered an issue" in rest[-2]
    assert tree.exit_code() == 0
    until(lambda: host.free_mib() == EMPTY_MIB, "memory back")


def test_a_stop_and_a_failed_start_leave_no_worker(host: SimHost, tree: Engine) -> None:
    pid = worker(host)
    tree.terminate()
    assert tree.exit_code() == 0
    until(lambda: start_ticks(pid) is None, "worker gone")
    late = host.start(share="0.99", weights_mib=90_000, cards="GPU-1", GONGKA_SIM_TREE="1")
    assert late.exit_code() == 1
    until(lambda: host.free_mib(1) == EMPTY_MIB, "memory back")
    with pytest.raises(ProcessLookupError):
        until(lambda: os.killpg(late.pid, 0), "nobody left in its group", timeout_s=5)
