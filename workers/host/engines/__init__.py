"""Kinds of engine. One line in `ENGINES` enlists a kind; a kind is a module with `command`, `progress` and `FAULTS`."""

from __future__ import annotations

from types import ModuleType

from workers.host.engines import vllm

ENGINES: dict[str, ModuleType] = {"vllm": vllm}
