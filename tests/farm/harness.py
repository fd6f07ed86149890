"""A whole running farm for tests: started as `make demo` starts it, watched and disturbed from the outside."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import redis

from demo import marks
from tests.farm.shell import ROOT, Shell
from tests.ports import free_ports

READY_S = 150.0
#: What comes at all comes by then, on a machine three times slower too: a limit ends a test that fails, nothing else.
LEAST_S = 60.0
PR_SET_PDEATHSIG = 1

#: A caller is held for as long as a load takes on a busy machine; where the hold is the point, the test sets its own.
PATIENT = {"hold_small_s": 60, "hold_large_s": 60}

#: How a part is recognised by its command line.
COMMANDS = {
    "web": "console.asgi:application",
    "gateway": "console.gateway.asgi:application",
    "control": "control@",
    "jobs": "jobs@",
    "door": "workers.host.door",
    "engine": "workers.simulator.engine",
    "redis": "--aclfile",
}


def wait_for(what: str, reached: Callable[[], Any], limit_s: float = LEAST_S, every_s: float = 0.1) -> Any:
    """The first true value of `reached()`; fails with `what` after a generous limit."""
    limit_s = max(limit_s, LEAST_S)
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if value := reached():
            return value
        time.sleep(every_s)
    raise AssertionError(f"not within {limit_s:.0f} s: {what}")


def _end_with_us() -> None:
    """A farm in a session of its own outlives a test process that is killed or hangs; so it stops as by Ctrl-C."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)


@dataclass
class Farm:
    """One supervisor process and all that it started."""

    home: Path
    web_port: int
    gateway_port: int
    process: subprocess.Popen[bytes]
    ready: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)  # before the first test: what `tidy` puts back
    shell: Shell | None = None

    @classmethod
    def start(cls) -> Farm:
        # a short path: unix sockets allow about a hundred characters
        home = Path(tempfile.mkdtemp(prefix="gk-"))
        web_port, gateway_port, door, *_ = free_ports(6)  # a door on each of the four hosts
        ports = ["--port-web", str(web_port), "--port-gateway", str(gateway_port), "--port-doors", str(door)]
        words = ["--home", str(home), *ports, "--speed", "0"]
        with (home / "supervisor.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "demo.run", *words],
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_us,
            )
        farm = cls(home, web_port, gateway_port, process)
        try:
            wait_for("farm ready", farm._look, READY_S)
            assert not farm.ready["missing"], farm.ready["missing"]
        except AssertionError as error:
            farm.stop()
            raise AssertionError(f"{error}\n{farm.said()}") from error
        return farm

    def said(self) -> str:
        """All that the supervisor wrote."""
        return (self.home / "supervisor.log").read_text(errors="replace")

    def _look(self) -> bool:
        assert self.process.poll() is None, "the supervisor has ended"
        path = self.home / "ready.json"
        if path.exists():
            self.ready = json.loads(path.read_text())
        return bool(self.ready)

    def stop(self) -> int:
        """Orderly stop; how many marked processes were left."""
        if self.shell is not None:
            self.shell.close()
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return len(marks.end(self.mark, 2.0)) if self.mark else 0

    @property
    def mark(self) -> str:
        path = self.home / "farm.id"
        return path.read_text().strip() if path.exists() else ""

    @property
    def gateway(self) -> str:
        return f"http://127.0.0.1:{self.gateway_port}"

    def key(self, service: str) -> str:
        """A key of the tenant that owns the service: it may always call it."""
        keys: dict[str, str] = json.loads((self.home / "demo-keys.json").read_text())
        owner = self.rows(
            "select t.slug from catalog_service s join accounts_tenant t on t.id = s.tenant_id where s.name = ?",
            service,
        )
        return keys[owner[0][0]]

    # Processes

    def processes(self, part: str, **environ: str) -> list[psutil.Process]:
        """Living processes of a part, by command line; `agent-<host>` is one host's agent."""
        if part.startswith("agent-"):
            word = f"agent@{part.removeprefix('agent-')}"
        else:
            word = COMMANDS[part]
        found = []
        for process in marks.marked(self.mark):
            try:
                line, env = " ".join(process.cmdline()), process.environ()
            except psutil.Error:
                continue
            if word in line and all(env.get(name) == value for name, value in environ.items()):
                found.append(process)
        return sorted(found, key=lambda p: p.create_time())

    def of_host(self, host: str) -> list[psutil.Process]:
        """All that runs on one host: agent, door, engines and whatever they began."""
        found = []
        for process in marks.marked(self.mark):
            try:
                if process.environ().get("GONGKA_HOST") == host:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def kill(self, part: str, **environ: str) -> int:
        """kill -9 of the part's first process; its pid."""
        process = self.processes(part, **environ)[0]
        process.kill()
        return process.pid

    # Rows, read straight from the database file; written by Django in a process of its own

    def rows(self, query: str, *arguments: Any) -> list[tuple[Any, ...]]:
        with sqlite3.connect(f"file:{self.home / 'gongka.sqlite3'}?mode=ro", uri=True, timeout=20) as connection:
            return connection.execute(query, arguments).fetchall()

    def writable(self, within_s: float) -> bool:
        """Whether the file's one lock for writing can be had."""
        with contextlib.closing(
            sqlite3.connect(self.home / "gongka.sqlite3", timeout=within_s, isolation_level=None)
        ) as connection:
            try:
                connection.execute("begin immediate")
            except sqlite3.OperationalError:
                return False
            connection.rollback()
            return True

    @property
    def env(self) -> dict[str, str]:
        """Of a central process of this farm."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return kept | {
            "DJANGO_SETTINGS_MODULE": "console.settings",
            "GONGKA_HOME": str(self.home),
            "GONGKA_SECRET": (self.home / "secret").read_text().strip(),
            "DATABASE_URL": f"sqlite:///{self.home / 'gongka.sqlite3'}",
            "REDIS_URL": self.ready["redis"],
            marks.MARK: self.mark,
        }

    def django(self, code: str) -> str:
        """Run statements in a Django process of this farm; what they print."""
        if self.shell is None:
            self.shell = Shell(self.env)
        return self.shell.run(code)

    def policy(self, **values: float) -> None:
        self.django(
            "from console.policies.models import PolicyValue\n"
            f"for name, value in {values!r}.items():\n"
            "    PolicyValue.objects.update_or_create(layer='group', subject='', name=name, defaults={'value': value})"
        )

    # Looking

    def replicas(self, service: str, phase: str = "ready") -> list[tuple[int, str, list[str]]]:
        """(id, host, cards) of living replicas in a phase."""
        rows = self.rows(
            "select r.id, h.name, r.cards from catalog_replica r join catalog_service s on s.id = r.service_id"
            " join fleet_host h on h.id = r.host_id where s.name = ? and r.phase = ? and r.ended_at is null",
            service,
            phase,
        )
        return [(pk, host, json.loads(cards)) for pk, host, cards in rows]

    def whole(self) -> bool:
        """Converged: every want is seen, hot services are ready, nothing is on the move."""
        moving = self.rows(
            "select id from catalog_replica where ended_at is null and not"
            " ((want = 'ready' and phase = 'ready' and phase_attempt = attempt)"
            " or (want = 'asleep' and phase = 'asleep'))"
        )
        return not moving and all(self.replicas(name) for name in self.ready["hot"])

    def converge(self, limit_s: float = 60.0) -> float:
        """Seconds until the farm is whole again."""
        began = time.monotonic()
        wait_for("the farm whole again", self.whole, limit_s, 0.3)
        return time.monotonic() - began

    def routes(self) -> dict[str, Any]:
        """What the gateways are told now."""
        with redis.Redis.from_url(self.ready["redis"]) as store:
            told: dict[str, Any] = json.loads(store.get("routes") or "{}")  # type: ignore[arg-type]
        return told

    def ask(self, service: str, *, max_tokens: int = 4, timeout_s: float = 90.0, **headers: str) -> httpx.Response:
        """A plain call through the gateway."""
        return httpx.post(
            f"{self.gateway}/v1/chat/completions",
            json=body(service, max_tokens, stream=False),
            headers={"Authorization": f"Bearer {self.key(service)}", **headers},
            timeout=timeout_s,
        )


def body(service: str, max_tokens: int, *, stream: bool, text: str = "今天的排班") -> dict[str, Any]:
    return {
        "model": service,
        "stream": stream,
        "max_tokens": max_tokens,
        "ignore_eos": True,  # an answer of exactly so many tokens
        "messages": [{"role": "user", "content": text}],
    }
