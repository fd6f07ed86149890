"""`make demo-check`: the demo without a person. One JSON line on standard output, exit status 0 or 1.

Starts a farm on free ports in a folder of its own, waits until it is whole, calls as callers do, looks at the page's
socket, stops, and counts what is left. Everything it prints was measured in this run; the rest goes to stderr.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from demo import check_board, check_calls, marks, preflight
from demo.farm import KEYS, LOGINS, TRAFFIC
from demo.home import Home
from demo.run import READY_FILE
from demo.traffic import PAUSE

START_LIMIT_S = 180.0
STOP_LIMIT_S = 30.0
QUIET_LIMIT_S = 60.0  # the traffic loads a cold model about once a minute
HELD_AT_LEAST_S = 8.0  # a shorter load would not show that a call is held
ESTIMATE_WITHIN_S = 3.0
LIMITS: dict[str, float] = {
    "ready_s": 60,
    "warm_ms": 20,
    "first_progress_s": 0.5,
    "board_update_s": 2,
    "leftover_processes": 0,
}


@dataclass(slots=True)
class Result:
    """Measured figures, and which claims did not hold."""

    figures: dict[str, float | int | None] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def put(self, name: str, value: float | int | None) -> None:
        """A figure that could not be measured (None) did not hold either."""
        self.figures[name] = None if value is None else round(value, 3)
        if name in LIMITS and (value is None or value > LIMITS[name]):
            self.failed.append(name)

    def claim(self, name: str, holds: bool) -> None:
        if not holds:
            self.failed.append(name)

    def line(self) -> str:
        return json.dumps({**self.figures, "failed": self.failed}, ensure_ascii=False)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="gk-check-"))
    home, result = Home(folder), Result()
    home.make()
    farm = home.kept("farm.id", 8)
    web, gateway = preflight.free_ports(2)
    argv = [sys.executable, "-m", "demo.run", "--home", str(folder)]
    supervisor = subprocess.Popen([*argv, "--port-web", str(web), "--port-gateway", str(gateway)], stdout=sys.stderr)
    try:
        measure(home, supervisor, result)
    except Exception as error:  # whatever broke is the result; the farm must be stopped all the same
        say(f"✗ {type(error).__name__}: {error}")
        result.claim(f"{type(error).__name__}: {error}"[:300], False)
    finally:
        stop(supervisor, farm, (web, gateway), result)
    if result.failed:
        show_logs(home)
    shutil.rmtree(folder, ignore_errors=True)
    print(result.line(), flush=True)
    return 1 if result.failed else 0


def measure(home: Home, supervisor: subprocess.Popen[bytes], result: Result) -> None:
    """All that needs a living farm, in the order a newcomer meets it."""
    ready = wait_ready(home, supervisor)
    result.put("ready_s", ready["ready_s"])
    if ready["missing"]:
        raise RuntimeError(f"not whole: {', '.join(ready['missing'])}")
    key, logins = home.read_json(KEYS)[TRAFFIC], home.read_json(LOGINS)
    caller = check_calls.client(f"{ready['gateway']}/v1", key)
    result.put("warm_ms", warm(home, ready))
    board = check_board.Board.open(ready["web"], check_board.sign_in(ready["web"], "operator", logins["operator"]))
    try:
        with paused(home):
            cold_stream(ready, caller, key, board, result)
    finally:
        board.close()
    held_s, state, hold_ms = check_calls.plain_cold(caller, ready["check"]["plain"])
    result.put("plain_hold_s", held_s)
    result.claim(f"plain cold call told state {state!r}, held {hold_ms} ms", state == "cold" and hold_ms > 0)


@contextlib.contextmanager
def paused(home: Home) -> Iterator[None]:
    """No new calls of others: loads of one host share its storage, and no estimate knows who will load beside it."""
    flag = home.path / PAUSE
    flag.touch()
    try:
        yield
    finally:
        flag.unlink()


def wait_ready(home: Home, supervisor: subprocess.Popen[bytes]) -> dict[str, Any]:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        if supervisor.poll() is not None:
            raise RuntimeError(f"the supervisor ended with status {supervisor.returncode}")
        if ready := home.read_json(READY_FILE):
            answer: dict[str, Any] = ready
            return answer
        time.sleep(0.2)
    raise RuntimeError("the farm did not start")


def routes(ready: dict[str, Any]) -> dict[str, Any]:
    with redis.Redis.from_url(ready["redis"]) as store:
        body: Any = store.get("routes")
    answer: dict[str, Any] = json.loads(body)
    return answer


def loading(ready: dict[str, Any]) -> list[str]:
    return [name for name, service in routes(ready)["services"].items() if service["state"] == "loading"]


def warm(home: Home, ready: dict[str, Any]) -> float | None:
    """By a service with one replica, so that both ways meet the same engine; called with its owner's key."""
    keys = home.read_json(KEYS)
    for one in check_calls.single_replicas(routes(ready), home.path / "hosts"):
        through = check_calls.client(f"{ready['gateway']}/v1", keys[one.tenant])
        direct = check_calls.client("http://engine/v1", "none", one.socket)
        with through, direct:
            return check_calls.warm_ms(through, one.service, direct, one.engine_model)
    return None


def cold_stream(ready: dict[str, Any], caller: Any, key: str, board: check_board.Board, result: Result) -> None:
    """One load, seen by three: a raw stream, the stock client with the opt-in, and the page."""
    service = ready["check"]["stream"]
    result.claim("a load of others did not end", until(lambda: not loading(ready), QUIET_LIMIT_S))
    result.claim("the model was not cold before the call", check_calls.state_of(caller, service) == "cold")
    with ThreadPoolExecutor(2) as pool:
        raw = pool.submit(check_calls.raw_stream, ready["gateway"], key, service)
        opted = pool.submit(check_calls.readable_deltas, caller, service)
        seen, (texts, whole) = raw.result(), opted.result()
    result.put("first_progress_s", seen.first_progress_s)
    result.put("cold_hold_s", seen.answer_s)
    result.put("first_eta_s", seen.first_eta_s)
    result.claim("cold_hold_s", held_as_told(seen))
    say("\n".join(["the raw stream:", *seen.lines]))
    result.claim("the stream did not end whole", seen.done)
    result.claim("no readable progress for the stock client", whole and any("加载" in text for text in texts))
    result.put("board_update_s", board.update_s(ready["services"][service], seen.began_at))


def held_as_told(seen: check_calls.Stream) -> bool:
    if seen.answer_s is None or seen.first_eta_s is None:
        return False
    return seen.answer_s >= HELD_AT_LEAST_S and abs(seen.answer_s - seen.first_eta_s) <= ESTIMATE_WITHIN_S


def stop(supervisor: subprocess.Popen[bytes], farm: str, ports: tuple[int, ...], result: Result) -> None:
    """As Ctrl-C does; then counts processes and ports. What is left is ended, having been counted."""
    began = time.monotonic()
    if supervisor.poll() is None:
        supervisor.send_signal(signal.SIGINT)
    try:
        supervisor.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()
    result.put("stop_s", time.monotonic() - began)
    left = marks.marked(farm)
    result.put("leftover_processes", len(left))
    result.claim("a port is still in use", until(lambda: all(preflight.port_free(port) for port in ports)))
    marks.end(farm, 0)


def until(look: Callable[[], bool], limit_s: float = 2.0) -> bool:
    deadline = time.monotonic() + limit_s
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def show_logs(home: Home, lines: int = 12) -> None:
    """The end of every log: in CI the folder is gone when somebody asks."""
    for path in sorted(home.logs.glob("*.log")):
        tail = path.read_text(errors="replace").splitlines()[-lines:]
        say("\n".join([f"== {path.name}", *tail]))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that `finally` stops the farm
    sys.exit(main())
