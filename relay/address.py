"""Where an upstream listens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Address:
    """Where an upstream listens: a TCP host and port, or the path of a unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def of(cls, url: str) -> Self:
        """From `http://host:port` or `unix:/path`. Raises ValueError for anything else."""
        if url.startswith("unix:"):
            return cls(path=url.removeprefix("unix:"))
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"not an http:// or unix: address: {url!r}")
        return cls(parts.hostname, parts.port or 80)

    @property
    def authority(self) -> str:
        if self.path:
            return "localhost"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
