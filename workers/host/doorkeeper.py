"""The agent's side of the door: its map of replicas, its counts, and that there is always one."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import threading
import time
from pathlib import Path

from workers.host import command, files
from workers.host.engine import DoorCounts
from workers.host.launchers.process import ProcessLauncher
from workers.host.limits import Limits
from workers.host.settings import Settings

log = logging.getLogger(__name__)


class DoorKeeper:
    """Adopts the door that runs, starts one when there is none. `ok`: it answered the last time it was asked."""

    def __init__(self, settings: Settings, limits: Limits) -> None:
        self.settings, self.limits = settings, limits
        self.ok = False
        self._without_token = False
        self._launcher = ProcessLauncher(settings.farm, settings.host)
        self._client = DoorCounts(settings.door_url, limits.probe_s)
        self._lock = threading.Lock()
        self._routes = _read_map(settings.door_map)
        self._changed_at: dict[int, float] = {}  # when a replica's route changed, by the monotonic clock
        self._counts: dict[int, int] | None = None
        self._counted_at = float("-inf")  # when the question was asked
        self._answered_at = time.monotonic()
        self._started_at = float("-inf")
        self._child: subprocess.Popen[bytes] | None = None
        self._kick, self._halt = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="doorkeeper", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def halt(self) -> None:
        self._halt.set()
        self._kick.set()
        self._thread.join(self.limits.probe_s + 1)

    # The map

    def has(self, replica: int) -> bool:
        return replica in self._routes

    def route(self, replica: int, socket: Path) -> None:
        self._write(replica, str(socket))

    def unroute(self, replica: int) -> None:
        self._write(replica, None)
        self._kick.set()

    def _write(self, replica: int, socket: str | None) -> None:
        with self._lock:
            if self._routes.get(replica) == socket:
                return
            routes = {key: value for key, value in self._routes.items() if key != replica}
            if socket is not None:
                routes[replica] = socket
            files.replace(self.settings.door_map, json.dumps({str(key): routes[key] for key in routes}).encode())
            self._routes = routes
            self._changed_at[replica] = time.monotonic()

    # The counts

    def in_flight(self, replica: int) -> int | None:
        """Calls at the door, asked for after the replica's route last changed; None: not known."""
        with self._lock:
            if self._counts is None or self._counted_at <= self._changed_at.get(replica, float("-inf")):
                return None
            return self._counts.get(replica, 0)

    def _run(self) -> None:
        while not self._halt.is_set():
            self._kick.clear()
            try:
                self._look()
            except Exception:  # without a door nothing is reachable: never end this thread
                log.exception("door")
            quick = self._counts is None or self._fresh_wanted()
            self._kick.wait(self.limits.door_quick_s if quick else self.limits.door_poll_s)

    def _fresh_wanted(self) -> bool:
        with self._lock:
            return any(at >= self._counted_at for at in self._changed_at.values())

    def _look(self) -> None:
        asked_at = time.monotonic()
        token = _token(self.settings.token_file)
        if not token and not self._without_token:
            log.error("no token in %s: the door lets nobody pass", self.settings.token_file.name)
        self._without_token = not token
        answer = self._client.read(token)
        with self._lock:
            self.ok = answer is not None
            self._counts = answer[1] if answer else None
            self._counted_at = asked_at if answer else float("-inf")
        if answer:
            self._answered_at = asked_at
        else:
            self._revive(asked_at)

    def _revive(self, now: float) -> None:
        if self._child is not None and self._child.poll() is not None:
            self._child = None
        if now - self._started_at < self.limits.door_start_s:
            return
        doors = self._launcher.doors()
        if doors and (self._without_token or now - max(self._answered_at, self._started_at) < self.limits.door_hung_s):
            return
        if doors:
            log.error("the door is silent: replaced")
            self._launcher.kill(doors)
        self._start(now)

    def _start(self, now: float) -> None:
        self._started_at = now
        argv, environment = command.door(self.settings, os.environ)
        self.settings.folder.mkdir(parents=True, exist_ok=True)
        with (self.settings.folder / "door.log").open("ab") as out:
            self._child = subprocess.Popen(
                argv,
                env=environment,
                cwd=self.settings.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that an agent upgrade cuts no stream
            )


def _read_map(path: Path) -> dict[int, str]:
    try:
        return {int(key): str(value) for key, value in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _token(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
