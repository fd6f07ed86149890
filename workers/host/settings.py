"""What an agent or a door is told by its environment (docs/wire.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class Misconfigured(RuntimeError):
    """A variable is missing or makes no sense; the text names it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`engine` is "simulated" or the path of a `vllm` executable; `weights` None: names are given to it as they are."""

    farm: str
    host: str
    folder: Path
    door_address: str
    door_port: int
    token_file: Path
    telemetry: str = "simulated"
    engine: str = "simulated"
    weights: Path | None = None

    @property
    def engines(self) -> Path:
        return self.folder / "engines"

    @property
    def door_map(self) -> Path:
        return self.folder / "door.json"

    @property
    def cards(self) -> Path:
        """The folder of the simulated cards."""
        return self.folder / "sim"

    @property
    def door_url(self) -> str:
        return f"http://{self.door_address}:{self.door_port}"


def read(environment: Mapping[str, str] = os.environ) -> Settings:
    """Raises Misconfigured."""
    address, _, port = _need(environment, "GONGKA_DOOR_BIND").rpartition(":")
    if not address or not port.isdecimal():
        raise Misconfigured("GONGKA_DOOR_BIND 应为 地址:端口 (want address:port)")
    weights = environment.get("GONGKA_WEIGHTS_DIR")
    return Settings(
        farm=_need(environment, "GONGKA_FARM"),
        host=_need(environment, "GONGKA_HOST"),
        folder=Path(_need(environment, "GONGKA_HOST_DIR")).absolute(),
        door_address=address,
        door_port=int(port),
        token_file=Path(_need(environment, "GONGKA_DOOR_TOKEN_FILE")),
        telemetry=environment.get("GONGKA_TELEMETRY", "simulated"),
        engine=environment.get("GONGKA_ENGINE", "simulated"),
        weights=Path(weights) if weights else None,
    )


def _need(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise Misconfigured(f"缺少环境变量 {name} (environment variable is missing)")
    return value
