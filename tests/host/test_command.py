"""A want becomes exactly these arguments, and nothing of the agent's secrets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.host.harness import SPEC
from workers.host import settings
from workers.host.command import build, door
from workers.host.engines import vllm
from workers.host.engines.base import Refused
from workers.messages import ReplicaWant

AROUND = settings.Settings("farm", "gpu-01", Path("/srv/h"), "10.0.0.5", 7100, Path("/srv/token"))
SECRETS = {"REDIS_URL": "redis://u:p@x/0", "GONGKA_SECRET": "s", "GONGKA_DOOR_TOKEN_FILE": "/t", "AWS_KEY": "k"}


def want(**changes: Any) -> ReplicaWant:
    spec = replace(SPEC, **{name: changes.pop(name) for name in list(changes) if hasattr(SPEC, name)})
    return replace(ReplicaWant(12, 3, "ready", "contract-review", ["GPU-a"], spec, shutdown_s=9), **changes)


def value(argv: list[str], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def test_the_claim_becomes_flags() -> None:
    argv = build(want(), AROUND, 24_000, {}).argv
    assert value(argv, "--kv-cache-memory-bytes") == str(600 * 1024 * 1024)
    assert value(argv, "--gpu-memory-utilization") == "0.075"
    assert value(argv, "--max-num-seqs") == "64"
    assert value(argv, "--max-num-queued-reqs") == "256"
    assert value(argv, "--shutdown-timeout") == "9"
    assert value(argv, "--uds") == "/srv/h/engines/12/sock"
    assert value(argv, "--served-model-name") == "contract-review"
    assert "--enable-sleep-mode" in argv
    assert "--enable-sleep-mode" not in build(want(sleep_mode=False), AROUND, 24_000, {}).argv


@pytest.mark.parametrize(
    ("need", "total", "share"), [(1, 3, 0.3334), (1800, 24000, 0.075), (3, 3, 1.0), (1, 10**6, 0.0001)]
)
def test_the_share_is_rounded_up(need: int, total: int, share: float) -> None:
    assert vllm.share(need, total) == share


def test_a_real_engine_is_called_by_its_own_command() -> None:
    around = replace(AROUND, engine="/opt/vllm/bin/vllm", weights=Path("/models"))
    command = build(want(weights="qwen/q3"), around, 24_000, {})
    assert command.argv[:3] == ["/opt/vllm/bin/vllm", "serve", "/models/qwen/q3"]
    assert "--task" not in command.argv
    assert command.environment["CUDA_VISIBLE_DEVICES"] == "GPU-a"
    assert "GONGKA_SIM_DIR" not in command.environment
    pooling = build(want(task="embedding"), around, 24_000, {}).argv
    assert value(pooling, "--runner") == "pooling"


def test_it_carries_our_marks_and_no_secret() -> None:
    environment = build(want(), AROUND, 24_000, SECRETS | {"PATH": "/bin", "GONGKA_SIM_INTERFERENCE": "2"}).environment
    assert environment["GONGKA_FARM"] == "farm"
    assert environment["GONGKA_HOST"] == "gpu-01"
    assert environment["GONGKA_REPLICA"] == "12"
    assert environment["GONGKA_ATTEMPT"] == "3"
    assert environment["PATH"] == "/bin"
    assert environment["GONGKA_SIM_INTERFERENCE"] == "2"
    assert not set(SECRETS) & set(environment)


def test_the_doors_arguments_hold_no_token() -> None:
    argv, environment = door(AROUND, SECRETS)
    assert argv[1:] == ["-m", "workers.host.door"]
    assert environment["GONGKA_DOOR_BIND"] == "10.0.0.5:7100"
    assert "REDIS_URL" not in environment


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "sglang"},
        {"served_name": "--port"},
        {"served_name": "a b"},
        {"served_name": ""},
        {"weights": "../../etc/passwd"},
        {"weights": "a/../../b"},
        {"weights": "-x"},
        {"weights": "a;rm"},
        {"max_model_len": 0},
        {"kv_granted_mib": -5},
        {"task": "train"},
        {"tp": 2},
    ],
)
def test_it_refuses_what_is_not_on_the_list(changes: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refusal:
        build(want(**changes), AROUND, 24_000, {})
    assert refusal.value.code == "bad_arguments"
    assert refusal.value.fatal


def test_more_than_the_card_has_is_no_fault_of_the_model() -> None:
    with pytest.raises(Refused) as refusal:
        build(want(), AROUND, 1_000, {})
    assert (refusal.value.code, refusal.value.fatal) == ("out_of_memory", False)


def test_a_folder_too_deep_for_a_socket_is_said() -> None:
    with pytest.raises(Refused, match="107|套接字"):
        build(want(), replace(AROUND, folder=Path("/" + "d" * 100)), 24_000, {})


@pytest.mark.parametrize("missing", ["GONGKA_FARM", "GONGKA_HOST", "GONGKA_HOST_DIR", "GONGKA_DOOR_BIND"])
def test_a_missing_variable_is_named(missing: str) -> None:
    whole = {"GONGKA_FARM": "f", "GONGKA_HOST": "h", "GONGKA_HOST_DIR": "/h", "GONGKA_DOOR_BIND": "127.0.0.1:1"}
    whole |= {"GONGKA_DOOR_TOKEN_FILE": "/t"}
    assert settings.read(whole).door_url == "http://127.0.0.1:1"
    with pytest.raises(settings.Misconfigured, match=missing):
        settings.read({name: text for name, text in whole.items() if name != missing})


@pytest.mark.parametrize(
    ("log", "stage"),
    [
        ("", ("process", 0.0)),
        ("Loading safetensors checkpoint shards:  62% Completed | 5/8", ("weights", 0.62)),
        ("shards: 10% Completed\nsafetensors checkpoint shards:  80% Completed | 4/5", ("weights", 0.8)),
        ("checkpoint shards: 100% Completed\nLoading weights took 3.01 seconds", ("warmup", 1.0)),
    ],
)
def test_progress_is_read_from_the_log(log: str, stage: tuple[str, float]) -> None:
    assert vllm.progress(log) == stage
