"""vLLM: its flags, and what its log says. The simulated engine speaks the same flags and writes the same lines."""

from __future__ import annotations

import re
import sys

from workers.host.engines.base import ROOT, Refused
from workers.host.settings import Settings
from workers.messages import EngineSpec, ReplicaWant

MIB = 1024 * 1024
SHARE_DIGITS = (
    10_000  # --gpu-memory-utilization has four digits, rounded up: against the newcomer's neighbours, never it
)
_NAME = re.compile(r"[\w.:@-][\w.:@/-]{0,199}")
_SHARDS = re.compile(r"checkpoint shards:\s+(\d+)% Completed")
_TASKS = ("chat", "embedding")

#: (what the log says, typed fault, would another card not help?), the first that matches the log is the reason.
FAULTS: list[tuple[re.Pattern[str], str, bool]] = [
    (re.compile(r"unrecognized arguments|error: argument|error: the following arguments"), "bad_arguments", True),
    (re.compile(r"Sleep mode is not supported"), "bad_arguments", True),
    (re.compile(r"To serve at least one request with the model's max seq len"), "context_too_long", True),
    (re.compile(r"(Free|Available) memory on (device|node) .*is less than desired"), "out_of_memory", False),
    (re.compile(r"No available memory for the cache blocks"), "out_of_memory", False),
    (re.compile(r"OutOfMemoryError|CUDA out of memory|CUDA [Ee]rror: out of memory"), "out_of_memory", False),
    (re.compile(r"Error in memory profiling|Memory usage increased after sleeping"), "memory_race", False),
    (
        re.compile(r"SafetensorError|Error while deserializing|does not appear to have a file named"),
        "bad_weights",
        True,
    ),
    (re.compile(r"Repository ?Not ?Found|is not a local folder|FileNotFoundError.*safetensors"), "bad_weights", True),
    (re.compile(r"[Aa]ddress already in use"), "address_in_use", False),
    (re.compile(r"CUDA error"), "device_error", False),
]


def command(want: ReplicaWant, settings: Settings, total_mib: int, socket: str) -> tuple[list[str], dict[str, str]]:
    """Arguments and the variables of its own. Raises Refused."""
    spec, flags = want.engine, _flags(want, total_mib, socket)
    own = {"VLLM_SERVER_DEV_MODE": "1"}  # sleep and wake; the agent alone reaches them, over the socket
    if settings.engine == "simulated":
        argv = [sys.executable, "-m", "workers.simulator.engine", "--model", spec.weights, *flags, "--task", spec.task]
        return argv, own | _simulated(want, settings)
    argv = [settings.engine, "serve", _weights(spec, settings), *flags]
    argv += ["--runner", "pooling"] if spec.task == "embedding" else []
    return argv, own | {"CUDA_VISIBLE_DEVICES": ",".join(want.cards)}


def _flags(want: ReplicaWant, total_mib: int, socket: str) -> list[str]:
    spec = _checked(want)
    flags = [
        *("--uds", socket),
        *("--served-model-name", spec.served_name),
        *("--max-model-len", str(spec.max_model_len)),
        *("--max-num-seqs", str(spec.max_num_seqs)),
        *("--max-num-queued-reqs", str(spec.max_queued)),
        *("--kv-cache-memory-bytes", str(spec.kv_granted_mib * MIB)),
        *("--gpu-memory-utilization", str(share(spec.fixed_mib + spec.kv_granted_mib, total_mib))),
        *("--shutdown-timeout", str(want.shutdown_s)),
        *("--tensor-parallel-size", str(spec.tp)),
    ]
    return [*flags, "--enable-sleep-mode"] if spec.sleep_mode else flags


def share(need_mib: int, total_mib: int) -> float:
    """Of the card's total, rounded up to four digits. Raises Refused when it is more than the card has."""
    if total_mib <= 0 or need_mib > total_mib:
        text = f"需要 {need_mib} MiB，整卡只有 {total_mib} MiB (more than the card has)"
        raise Refused("out_of_memory", text, fatal=False)
    return -(-need_mib * SHARE_DIGITS // total_mib) / SHARE_DIGITS


def _checked(want: ReplicaWant) -> EngineSpec:
    spec = want.engine
    for name in (spec.served_name, spec.weights.removeprefix("/")):
        if not _NAME.fullmatch(name) or name.startswith("-") or ".." in name.split("/"):
            raise Refused("bad_arguments", f"名称不合法 {name[:60]!r} (not a name)")
    positive = (spec.max_model_len, spec.max_num_seqs, spec.kv_granted_mib, spec.fixed_mib, spec.tp)
    if min(positive) < 1 or min(spec.max_queued, want.shutdown_s) < 0:
        raise Refused("bad_arguments", "引擎参数须为正数 (engine numbers must be positive)")
    if spec.task not in _TASKS:
        raise Refused("bad_arguments", f"不支持的任务 {spec.task[:60]!r} (unknown task)")
    if len(want.cards) != spec.tp:
        raise Refused("bad_arguments", f"并行度 {spec.tp} 与卡数 {len(want.cards)} 不符 (cards do not match)")
    return spec


def _weights(spec: EngineSpec, settings: Settings) -> str:
    if settings.weights is None:
        return spec.weights
    return str(settings.weights / spec.weights.removeprefix(f"{settings.weights}/").removeprefix("/"))


def _simulated(want: ReplicaWant, settings: Settings) -> dict[str, str]:
    return {
        "GONGKA_SIM_DIR": str(settings.cards),
        "GONGKA_SIM_CARDS": ",".join(want.cards),
        "GONGKA_SIM_WEIGHTS_MIB": str(want.engine.weights_mib),
        "GONGKA_SIM_OVERHEAD_MIB": str(want.engine.overhead_mib),
        "GONGKA_SIM_KV_BYTES_PER_TOKEN": str(want.engine.kv_bytes_per_token),
        "PYTHONPATH": str(ROOT),
    }


def progress(log: str) -> tuple[str, float]:
    """Stage of a start and the share of the weights that is read (0 to 1), from the end of the log."""
    if "Loading weights took" in log or "Model loading took" in log:
        return "warmup", 1.0
    shards = _SHARDS.findall(log)
    return ("weights", int(shards[-1]) / 100) if shards else ("process", 0.0)
