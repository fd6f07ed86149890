"""The engine's command line, with vLLM's own names, and what only a simulator must be told, from the environment."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class ConfigError(ValueError):
    """Values that each parse but cannot be: the engine ends with exit code 1, as vLLM does."""


@dataclass(frozen=True, slots=True)
class Flags:
    """vLLM's flags. `kv_bytes` None: measured at the start; `max_queued` None: an unbounded queue."""

    uds: str
    served_name: str
    model: str
    max_model_len: int
    max_num_seqs: int
    kv_bytes: int | None
    utilization: float
    max_queued: int | None
    shutdown_s: int
    sleep_mode: bool
    tp: int
    task: str
    load_tracking: bool
    force_usage: bool


@dataclass(frozen=True, slots=True)
class Simulated:
    """What a real engine would read from its weights and its cards. Sizes are for the whole engine, not a card."""

    directory: Path
    cards: list[str]
    weights_mib: int
    overhead_mib: int
    kv_bytes_per_token: int
    replica: str
    interference: float
    dev_mode: bool
    tree: bool


def read_flags(arguments: Sequence[str]) -> Flags:
    """Ends the process with status 2 for unknown or unreadable flags; raises ConfigError for impossible values."""
    parser = argparse.ArgumentParser(prog="vllm serve", allow_abbrev=False)
    parser.add_argument("--uds", required=True)
    parser.add_argument("--served-model-name", dest="served_name", default="")
    parser.add_argument("--model", required=True)
    parser.add_argument("--max-model-len", type=int, default=4096)
    parser.add_argument("--max-num-seqs", type=int, default=256)
    parser.add_argument("--kv-cache-memory-bytes", dest="kv_bytes", type=_size, default=None)
    parser.add_argument("--gpu-memory-utilization", dest="utilization", type=float, default=0.92)
    parser.add_argument("--max-num-queued-reqs", dest="max_queued", type=int, default=None)
    parser.add_argument("--shutdown-timeout", dest="shutdown_s", type=int, default=0)
    parser.add_argument("--enable-sleep-mode", dest="sleep_mode", action="store_true")
    parser.add_argument("--tensor-parallel-size", "-tp", dest="tp", type=int, default=1)
    parser.add_argument("--task", choices=("chat", "embedding"), default="chat")
    parser.add_argument("--enable-server-load-tracking", dest="load_tracking", action="store_true")
    parser.add_argument("--enable-force-include-usage", dest="force_usage", action="store_true")
    values = vars(parser.parse_args(arguments))
    values["served_name"] = values["served_name"] or values["model"]
    flags = Flags(**values)
    _check(flags)
    return flags


def _size(text: str) -> int:
    """`2g` is 2e9 and `2G` is 2 GiB, as in vLLM."""
    units = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
    if text[-1:] in units:
        return int(float(text[:-1]) * units[text[-1]])
    return int(text)


def _check(flags: Flags) -> None:
    if not 0 < flags.utilization <= 1:
        raise ConfigError(f"GPU memory utilization must be in (0, 1]. Got {flags.utilization}.")
    for name, value in (
        ("max_model_len", flags.max_model_len),
        ("max_num_seqs", flags.max_num_seqs),
        ("tensor_parallel_size", flags.tp),
    ):
        if value < 1:
            raise ConfigError(f"{name} must be greater than or equal to 1, got {value}.")
    if flags.shutdown_s < 0:
        raise ConfigError(f"shutdown_timeout must be non-negative, got {flags.shutdown_s}.")
    if flags.max_queued is not None and flags.max_queued < 0:
        raise ConfigError(f"max_num_queued_reqs must be non-negative, got {flags.max_queued}.")
    if flags.kv_bytes is not None and flags.kv_bytes <= 0:
        raise ConfigError("No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.")


def read_environment(environ: Mapping[str, str] = os.environ) -> Simulated:
    """Raises ConfigError naming the variable that is missing or no number."""

    def whole(name: str, default: str | None = None) -> int:
        text = environ.get(name, default)
        if text is None or not text.isdigit():
            raise ConfigError(f"{name} must be a whole number, got {text!r}.")
        return int(text)

    if not environ.get("GONGKA_SIM_DIR"):
        raise ConfigError("GONGKA_SIM_DIR must name the folder of a simulated host.")
    return Simulated(
        directory=Path(environ["GONGKA_SIM_DIR"]),
        cards=[uuid for uuid in environ.get("GONGKA_SIM_CARDS", "").split(",") if uuid],
        weights_mib=whole("GONGKA_SIM_WEIGHTS_MIB"),
        overhead_mib=whole("GONGKA_SIM_OVERHEAD_MIB", "600"),
        kv_bytes_per_token=max(1, whole("GONGKA_SIM_KV_BYTES_PER_TOKEN", "65536")),
        replica=environ.get("GONGKA_REPLICA", ""),
        interference=float(environ.get("GONGKA_SIM_INTERFERENCE", "1.0")),
        dev_mode=environ.get("VLLM_SERVER_DEV_MODE", "0") == "1",
        tree=environ.get("GONGKA_SIM_TREE", "0") == "1",
    )
