"""A simulated host in a temporary folder and real engine processes on it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from workers.simulator.cards import CardState, HostSpec, make_cards, read_cards
from workers.simulator.faults import clear_faults, set_fault

ROOT = Path(__file__).resolve().parents[2]
GENEROUS_S = 40.0
LOOK_S = 0.02
TOTAL_MIB = 81_920
RESERVED_MIB = 600
FAST = {"bandwidth_mib_s": 200_000.0, "init_s": 0.02, "warm_up_s": 0.02, "release_s": 0.2}
HELLO = [{"role": "user", "content": "你好，请介绍一下"}]


def until(what: Callable[[], Any], note: str = "", timeout_s: float = GENEROUS_S) -> Any:
    """Waits until `what` says something true and returns that."""
    end = time.monotonic() + timeout_s
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < end, f"waited in vain: {note or what}"
        time.sleep(LOOK_S)


def card_rows(count: int) -> list[dict[str, Any]]:
    """Cards with the memory of an A100 and ten times its bandwidth: tests want answers soon."""
    fixed = {
        "name": "NVIDIA A100-SXM4-80GB",
        "total_mib": TOTAL_MIB,
        "reserved_mib": RESERVED_MIB,
        "mem_bw_gbs": 20_390,
    }
    return [{"uuid": f"GPU-{number}", "index": number} | fixed for number in range(count)]


class Engine:
    """One engine process; `get` and `post` speak to its socket."""

    def __init__(self, folder: Path, number: int, arguments: list[str], variables: dict[str, str]) -> None:
        self.socket = folder / f"{number}.sock"
        self.log_path = folder / f"{number}.log"
        command = [sys.executable, "-m", "workers.simulator.engine", "--uds", str(self.socket), *arguments]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | variables, cwd=ROOT, start_new_session=True
            )
        self._clients: list[httpx.Client] = []
        self.client = self.new_client()

    def new_client(self) -> httpx.Client:
        """A client with connections of its own: a hang-up of one disturbs no other."""
        transport = httpx.HTTPTransport(uds=str(self.socket))
        client = httpx.Client(transport=transport, base_url="http://engine", timeout=GENEROUS_S)
        self._clients.append(client)
        return client

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8")

    @property
    def pid(self) -> int:
        return self.process.pid

    def connects(self) -> bool:
        """Asked with a bare socket: httpx leaks one for each refused connection."""
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(self.socket))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
        return True

    def ready(self) -> Engine:
        until(lambda: self.connects() or self.process.poll() is not None, "engine ready")
        assert self.process.poll() is None, self.log
        return self

    def get(self, path: str) -> httpx.Response:
        return self.client.get(path)

    def post(self, path: str, body: Any = None) -> httpx.Response:
        return self.client.post(path, json={} if body is None else body)

    def chat(self, **more: Any) -> httpx.Response:
        return self.post("/v1/chat/completions", {"model": "tiny", "messages": HELLO, "max_tokens": 5} | more)

    def info(self) -> dict[str, Any]:
        content: dict[str, Any] = self.get("/sim/info").json()
        return content

    def metric(self, name: str, *labels: str) -> float:
        """The value of the first line of `name` that has all `labels` in it."""
        for line in self.get("/metrics").text.splitlines():
            if line.startswith(name + "{") and all(label in line for label in labels):
                return float(line.rpartition(" ")[2])
        raise AssertionError(f"no metric {name} {labels}")

    def stream(self, stack: ExitStack, tokens: int = 2000, **more: Any) -> Iterator[str]:
        """The data lines of a long stream on a connection of its own, open until `stack` ends."""
        body = {"model": "tiny", "messages": HELLO, "max_tokens": tokens, "ignore_eos": True, "stream": True} | more
        request = self.new_client().stream("POST", "/v1/chat/completions", json=body)
        response = stack.enter_context(request)
        lines = (line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: "))
        stack.callback(lines.close)  # also keeps it: a forgotten generator would hang up
        return lines

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self) -> int:
        return self.process.wait(GENEROUS_S)

    def close(self) -> None:
        for client in self._clients:
            client.close()
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # the whole group: an engine may be a tree
        self.process.wait(GENEROUS_S)


class SimHost:
    """A folder with cards, and the engines started on it; `close` ends them all."""

    def __init__(self, cards: int = 2, **loading: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sim")
        self.directory = Path(self._folder.name)
        self.spec: HostSpec = make_cards(self.directory, card_rows(cards), **(FAST | loading))
        self.engines: list[Engine] = []

    def start(
        self,
        *flags: str,
        cards: str = "GPU-0",
        replica: str = "7",
        weights_mib: int = 15_000,
        kv: str | None = "4G",
        share: str = "0.3",
        **variables: str,
    ) -> Engine:
        """An engine of the model `tiny`; later flags overrule the usual ones."""
        arguments = ["--served-model-name", "tiny", "--model", "models/tiny", "--max-model-len", "4096"]
        arguments += ["--max-num-seqs", "4", "--gpu-memory-utilization", share, "--enable-sleep-mode"]
        arguments += ["--kv-cache-memory-bytes", kv] if kv else []
        settings = {
            "GONGKA_SIM_DIR": str(self.directory),
            "GONGKA_SIM_CARDS": cards,
            "GONGKA_SIM_WEIGHTS_MIB": str(weights_mib),
            "GONGKA_SIM_OVERHEAD_MIB": "600",
            "GONGKA_SIM_KV_BYTES_PER_TOKEN": "65536",
            "GONGKA_REPLICA": replica,
            "VLLM_SERVER_DEV_MODE": "1",
        }
        engine = Engine(self.directory, len(self.engines), [*arguments, *flags], settings | variables)
        self.engines.append(engine)
        return engine

    @contextmanager
    def slow(self) -> Iterator[None]:
        """Tokens come so slowly that whoever calls is there at once with the others, however busy the machine is."""
        set_fault(self.directory, "slow", factor=30.0)
        try:
            yield
        finally:
            clear_faults(self.directory, "slow")

    def card(self, number: int = 0) -> CardState:
        return read_cards(self.directory)[number]

    def free_mib(self, number: int = 0) -> int:
        free = self.card(number).free_mib
        assert free is not None
        return free

    def close(self) -> None:
        for engine in self.engines:
            engine.close()
        self._folder.cleanup()
