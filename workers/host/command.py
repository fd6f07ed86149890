"""A replica's want → the command that runs its engine. Pure: no disk, no clock.

Arguments come from an allow-list, field by field; nothing that a person typed becomes a flag or a path of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workers.host.engines import ENGINES
from workers.host.engines.base import ROOT, Refused
from workers.host.settings import Settings
from workers.messages import ReplicaWant

FARM, HOST, REPLICA, ATTEMPT = "GONGKA_FARM", "GONGKA_HOST", "GONGKA_REPLICA", "GONGKA_ATTEMPT"
DOOR = "GONGKA_DOOR"

#: What an engine inherits of the agent's environment: never an address of Redis, a token file or a secret.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "HF_HOME", "VLLM_CACHE_ROOT")
INHERITED_PREFIX = "GONGKA_SIM_"
LONGEST_SOCKET_BYTES = 107  # of a unix socket's address on Linux


@dataclass(frozen=True, slots=True)
class Command:
    replica: int
    attempt: int
    argv: list[str]
    environment: dict[str, str]
    folder: Path

    @property
    def socket(self) -> Path:
        return self.folder / "sock"

    @property
    def log(self) -> Path:
        return self.folder / "log"


def build(want: ReplicaWant, settings: Settings, total_mib: int, environment: Mapping[str, str]) -> Command:
    """`total_mib`: of the smallest of its cards, as the driver says. Raises Refused."""
    if want.engine.kind not in ENGINES:
        raise Refused("bad_arguments", f"不支持的引擎类型 {want.engine.kind!r} (unknown engine kind)")
    socket = settings.engines / str(want.id) / "sock"
    if len(str(socket).encode()) > LONGEST_SOCKET_BYTES:
        raise Refused("bad_arguments", "主机目录路径过长，放不下 Unix 套接字 (host folder's path is too long)")
    argv, own = ENGINES[want.engine.kind].command(want, settings, total_mib, str(socket))
    return Command(want.id, want.attempt, argv, marks(settings, want, environment) | own, socket.parent)


def marks(settings: Settings, want: ReplicaWant, environment: Mapping[str, str]) -> dict[str, str]:
    inherited = {n: v for n, v in environment.items() if n in INHERITED or n.startswith(INHERITED_PREFIX)}
    return inherited | {
        FARM: settings.farm,
        HOST: settings.host,
        REPLICA: str(want.id),
        ATTEMPT: str(want.attempt),
        "PYTHONUNBUFFERED": "1",
        "SPT_NOENV": "1",  # setproctitle would write over the environment in /proc, where our mark is
    }


def door(settings: Settings, environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of the host's door. The token travels as the name of its file."""
    variables = {n: v for n, v in environment.items() if n in INHERITED}
    variables |= {
        FARM: settings.farm,
        HOST: settings.host,
        DOOR: "1",
        "GONGKA_HOST_DIR": str(settings.folder),
        "GONGKA_DOOR_BIND": f"{settings.door_address}:{settings.door_port}",
        "GONGKA_DOOR_TOKEN_FILE": str(settings.token_file),
        "PYTHONPATH": str(ROOT),
        "SPT_NOENV": "1",
    }
    return [sys.executable, "-m", "workers.host.door"], variables
