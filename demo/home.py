"""The demo's data folder: what is kept from one run to the next, and the lock that lets only one farm use it."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from demo.problem import Problem

LOG_KEPT_BYTES = 5 * 1024 * 1024  # a longer log is moved aside once at start; one old one is kept


@dataclass(frozen=True, slots=True)
class Home:
    """Paths below one folder. Nothing here starts or stops anything."""

    path: Path

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def redis(self) -> Path:
        return self.path / "redis"

    def host(self, name: str) -> Path:
        return self.path / "hosts" / name

    @property
    def database_url(self) -> str:
        return os.environ.get("DATABASE_URL") or f"sqlite:///{self.path / 'gongka.sqlite3'}"

    def make(self) -> None:
        """Folders, open to their owner only. Raises Problem where that cannot be."""
        try:
            for folder in (self.path, self.logs, self.redis, self.path / "hosts"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = self.path / ".probe"
            probe.write_text("")
            probe.unlink()
        except OSError as error:
            raise Problem(
                f"数据目录 {self.path} 不能写入：{error.strerror}。换一个：--home 目录",
                f"cannot write to the data folder {self.path}: {error.strerror}; choose another with --home",
            ) from error

    def kept(self, name: str, length: int = 16) -> str:
        """A random text made once and kept in a file of mode 0600: the farm's id, passwords, the secret key."""
        path = self.path / name
        if path.exists() and (text := path.read_text().strip()):
            return text
        text = secrets.token_hex(length)
        self.write_private(path, text)
        return text

    def write_private(self, path: Path, text: str) -> None:
        """Replaces `path` whole, readable by its owner only: a crash leaves the old file or the new one."""
        new = path.with_name(path.name + ".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        new.replace(path)

    def read_json(self, name: str) -> Any:
        """A file that the demo data left here; empty when it is not there."""
        path = self.path / name
        return json.loads(path.read_text()) if path.exists() else {}

    def log(self, name: str) -> IO[bytes]:
        """The log of one part, appended to."""
        path = self.logs / f"{name}.log"
        if path.exists() and path.stat().st_size > LOG_KEPT_BYTES:
            path.replace(path.with_suffix(".log.1"))
        return path.open("ab")

    def lock(self) -> IO[str]:
        """Held until the returned file is closed or its process is gone, however that happens.

        Raises Problem when another supervisor of this folder lives; names its pid.
        """
        file = (self.path / "farm.lock").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            pid = file.read().strip() or "?"
            file.close()
            raise Problem(
                f"演示已在运行（进程 {pid}，数据目录 {self.path}）。先停它：kill {pid}，或用 --home 另开一份",
                f"the demo is already running (process {pid}, folder {self.path}); stop it, or use another --home",
            ) from None
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        return file
