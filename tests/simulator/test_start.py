"""Starting as the real one does: refused until ready, checked, told in the log, and failing with its words."""

from __future__ import annotations

import os
import socket

import pytest

from tests.simulator.harness import RESERVED_MIB, ROOT, TOTAL_MIB, Engine, SimHost, until
from workers.simulator.faults import set_fault

EMPTY_MIB = TOTAL_MIB - RESERVED_MIB
SLOW = {"bandwidth_mib_s": 10_000.0}


def refused(engine: Engine) -> bool:
    """The socket is there and says no."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(engine.socket))
        except ConnectionRefusedError:
            return True
        except FileNotFoundError:
            return False
    return False


def failed(engine: Engine, code: int = 1) -> str:
    assert engine.exit_code() == code, engine.log
    return engine.log


def test_connections_are_refused_until_the_model_is_loaded() -> None:
    host = SimHost(**SLOW)
    try:
        engine = host.start(weights_mib=20_000)
        until(lambda: refused(engine), "bound but not listening")
        engine.ready()
        assert engine.get("/health").status_code == 200
    finally:
        host.close()


def test_memory_grows_while_weights_load_and_ends_at_weights_overhead_and_kv() -> None:
    host = SimHost(**SLOW)
    try:
        engine = host.start(weights_mib=20_000, kv="4G", share="0.4")
        partly = until(lambda: 5000 < EMPTY_MIB - host.free_mib() < 20_000, "part of the weights")
        assert partly
        engine.ready()
        assert EMPTY_MIB - host.free_mib() == 20_000 + 600 + 4096
    finally:
        host.close()


def test_the_log_tells_progress_and_sizes(host: SimHost) -> None:
    log = host.start(weights_mib=15_000, kv="4G").ready().log
    assert "Loading safetensors checkpoint shards:   0% Completed | 0/4 [00:00<?, ?it/s]" in log
    assert "Loading safetensors checkpoint shards: 100% Completed | 4/4 [" in log
    assert "Loading weights took " in log
    assert "GPU KV cache size: 65,536 tokens, Maximum concurrency for 4,096 tokens per request: 16.00x" in log
    assert "init engine (profile, create kv cache, warmup model) took " in log


def test_storage_bandwidth_is_shared_among_those_who_load() -> None:
    host = SimHost(bandwidth_mib_s=5_000.0)  # seconds: however late the second begins, they read beside each other
    try:
        pair = [host.start(cards=f"GPU-{number}", weights_mib=20_000, replica=str(number)) for number in (0, 1)]
        took = []
        for engine in pair:
            line = next(one for one in engine.ready().log.splitlines() if "Loading weights took" in one)
            took.append(float(line.split()[-2]))
        assert max(took) > 5.0  # alone each takes 4.0
    finally:
        host.close()


def test_too_little_free_for_the_share_fails_although_kv_is_given(host: SimHost) -> None:
    set_fault(host.directory, "foreign_memory", "card:GPU-0", mib=40_000)
    log = failed(host.start(share="0.6"))
    assert (
        "ValueError: Free memory on device cuda:0 (40.35/80.00 GiB) on startup is less than desired GPU memory "
        "utilization (0.6, 48.00 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
    ) in log
    assert log.splitlines()[-1].startswith("RuntimeError: Engine core initialization failed. See root cause above.")


def test_one_request_must_fit_in_the_kv_cache(host: SimHost) -> None:
    log = failed(host.start(kv="128M"))
    assert "To serve at least one request with the model's max seq len (4096), (0.25 GiB KV cache is needed" in log
    assert "available KV cache memory (0.12 GiB)" in log
    assert "the estimated maximum model length is 2048." in log


def test_without_a_kv_size_it_is_measured_from_the_share(host: SimHost) -> None:
    engine = host.start(kv=None, share="0.3").ready()
    assert "Available KV cache memory: 8.77 GiB" in engine.log  # 24576 - 15000 - 600 MiB
    assert EMPTY_MIB - host.free_mib() == 24_576


def test_no_room_for_kv_in_the_share(host: SimHost) -> None:
    assert "No available memory for the cache blocks." in failed(host.start(kv=None, share="0.15"))


def test_two_measuring_starts_at_once_spoil_each_others_measure() -> None:
    host = SimHost(bandwidth_mib_s=5_000.0, warm_up_s=1.0)
    try:
        pair = [host.start(kv=None, share="0.35", weights_mib=10_000, replica=str(number)) for number in (1, 2)]
        alone_mib = 28_672 - 10_600
        sizes = [until(lambda e=e: _measured_mib(e), "a measured size or a failure") for e in pair]
        assert min(sizes) < alone_mib - 5000
    finally:
        host.close()


def _measured_mib(engine: Engine) -> float | None:
    for line in engine.log.splitlines():
        if "Available KV cache memory" in line:
            return float(line.split()[-2]) * 1024 or 0.1
    return None


def test_a_neighbour_that_gives_memory_back_trips_the_measuring_start() -> None:
    host = SimHost(bandwidth_mib_s=5_000.0)
    try:
        set_fault(host.directory, "foreign_memory", "card:GPU-0", mib=30_000)
        engine = host.start(kv=None, share="0.3", weights_mib=5000)
        until(lambda: "Starting to load model" in engine.log, "past the first look")
        set_fault(host.directory, "foreign_memory", "card:GPU-0", mib=1000)
        assert "AssertionError: Error in memory profiling. Initial free memory 50.12 GiB" in failed(engine)
    finally:
        host.close()


def test_two_starts_with_given_kv_both_get_exactly_theirs(host: SimHost) -> None:
    pair = [host.start(replica=str(number), kv="4G") for number in (1, 2)]
    assert [engine.ready().info()["kv_blocks"] for engine in pair] == [4096, 4096]
    assert EMPTY_MIB - host.free_mib() == 2 * (15_000 + 600 + 4096)


def test_what_the_card_has_not_is_out_of_memory(host: SimHost) -> None:
    log = failed(host.start(weights_mib=90_000, share="0.9"))
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate" in log
    until(lambda: host.free_mib() == EMPTY_MIB, "all of it given back")


def test_tensor_parallel_halves_go_on_both_cards(host: SimHost) -> None:
    engine = host.start("--tensor-parallel-size", "2", cards="GPU-0,GPU-1", weights_mib=40_001, share="0.4").ready()
    assert [EMPTY_MIB - host.free_mib(number) for number in (0, 1)] == [20_001 + 600 + 4096] * 2
    assert engine.info()["kv_blocks"] == 8192  # half the heads on each card: twice the tokens
    assert engine.get("/get_world_size").json() == {"world_size": 2}


@pytest.mark.parametrize(
    ("flags", "code", "text"),
    [
        (["--swap-space", "4"], 2, "unrecognized arguments: --swap-space 4"),
        (["--max-num-seqs", "many"], 2, "invalid int value: 'many'"),
        (["--gpu-memory-utilization", "1.2"], 1, "must be in (0, 1]"),
        (["--max-num-seqs", "0"], 1, "max_num_seqs must be greater than or equal to 1"),
        (["--max-model-len", "-5"], 1, "max_model_len must be greater"),
        (["--shutdown-timeout", "-1"], 1, "shutdown_timeout must be non-negative"),
        (["--max-num-queued-reqs", "-1"], 1, "max_num_queued_reqs must be non-negative"),
        (["--tensor-parallel-size", "2"], 1, "tensor_parallel_size 2 needs as many cards"),
    ],
)
def test_flags_that_cannot_be(host: SimHost, flags: list[str], code: int, text: str) -> None:
    assert text in failed(host.start(*flags), code)


def test_an_unknown_card_or_weights_that_are_no_number(host: SimHost) -> None:
    assert "no simulated card GPU-7" in failed(host.start(cards="GPU-7"))
    assert "GONGKA_SIM_WEIGHTS_MIB must be a whole number" in failed(host.start(GONGKA_SIM_WEIGHTS_MIB="lots"))


def test_a_socket_path_that_is_taken_fails_before_any_memory_is(host: SimHost) -> None:
    (host.directory / "0.sock").touch()
    assert "Address already in use" in failed(host.start())
    assert host.free_mib() == EMPTY_MIB


def test_kill_9_in_the_middle_of_a_load_leaves_nothing_for_ever() -> None:
    host = SimHost(**SLOW)
    try:
        engine = host.start(weights_mib=40_000, share="0.6")
        until(lambda: EMPTY_MIB - host.free_mib() > 5000, "part of the weights")
        os.kill(engine.pid, 9)
        until(lambda: host.free_mib() == EMPTY_MIB, "memory back")
    finally:
        host.close()


def test_one_engine_is_cheap(host: SimHost) -> None:
    engine = host.start().ready()
    fields = (ROOT / f"/proc/{engine.pid}/stat").read_text().rpartition(")")[2].split()
    cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    rss_kib = int((ROOT / f"/proc/{engine.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    assert cpu_s < 1.0
    assert rss_kib < 60 * 1024
