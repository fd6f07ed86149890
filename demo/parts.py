"""The process table of the demo: what runs, with exactly the environment it needs (docs/wire.md)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from demo import redis_server
from demo.home import Home
from demo.redis_server import Server
from demo.supervisor import Part

WORKER = ("--without-gossip", "--without-mingle", "--without-heartbeat")
HEADS = "console.heads:Bounded"  # the server itself bounds no request's head
GRACEFUL = ("--timeout-graceful-shutdown", "5")  # then who is still there is told, and ended
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "VIRTUAL_ENV")
TRAFFIC, FRONT, LOOP, STORE = range(4)  # the order of stopping: callers first, the store last


@dataclass(frozen=True, slots=True)
class Plan:
    """All that differs from one run to another."""

    home: Home
    farm: str
    web: int
    gateway: int
    doors: Mapping[str, int]  # host's name → port of its door
    server: Server
    speed: float


def base_env() -> dict[str, str]:
    """What any process needs of its surroundings. Nothing else of the person's environment reaches a part."""
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return passed | {
        "PYTHONUNBUFFERED": "1",
        # A process that writes its title may overwrite its environment, and with it the mark it is found by.
        "SPT_NOENV": "1",
    }


def central_env(plan: Plan, redis_url: str) -> dict[str, str]:
    """Of the processes that know the database."""
    return base_env() | {
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "GONGKA_HOME": str(plan.home.path),
        "GONGKA_SECRET": plan.home.kept("secret", 32),
        "DATABASE_URL": plan.home.database_url,
        "REDIS_URL": redis_url,
    }


def agent_env(plan: Plan, host: str) -> dict[str, str]:
    """Of an agent, its door and its engines: no database, no secret key, Redis as the host's own user."""
    folder = plan.home.host(host)
    return base_env() | {
        "GONGKA_HOME": str(folder),
        "GONGKA_HOST": host,
        "GONGKA_HOST_DIR": str(folder),
        "GONGKA_DOOR_BIND": f"127.0.0.1:{plan.doors[host]}",
        "GONGKA_DOOR_TOKEN_FILE": str(folder / "door.token"),
        "GONGKA_TELEMETRY": "simulated",
        "GONGKA_ENGINE": "simulated",
        "REDIS_URL": plan.server.hosts[host],
    }


def python(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", *words)


def redis_part(plan: Plan) -> Part | None:
    if plan.server.binary is None:
        return None
    return Part("redis", redis_server.arguments(plan.server, plan.home), base_env(), STORE)


def uvicorn(application: str, port: int, *more: str) -> tuple[str, ...]:
    words = ("uvicorn", application, "--http", HEADS, "--host", "127.0.0.1", "--port", str(port))
    return python(*words, *GRACEFUL, *more)


def celery(application: str, pool: str, width: int, name: str) -> tuple[str, ...]:
    return python("celery", "-A", application, "worker", "-P", pool, "-c", str(width), *WORKER, "-n", name)


def front_parts(plan: Plan) -> list[Part]:
    """What answers people and callers."""
    web, gateway = central_env(plan, plan.server.control), central_env(plan, plan.server.gateway)
    printed = {"GONGKA_GATEWAY_URL": f"http://127.0.0.1:{plan.gateway}"}
    return [
        Part("web", uvicorn("console.asgi:application", plan.web), web | printed, FRONT, stop_s=6.5),
        Part(
            "gateway",
            uvicorn("console.gateway.asgi:application", plan.gateway, "--no-access-log"),
            gateway | {"GONGKA_GATEWAY": "gw1"},
            FRONT,
            stop_s=6.5,
        ),
    ]


def inner_parts(plan: Plan) -> list[Part]:
    """What decides and what carries out."""
    env = central_env(plan, plan.server.control)
    agents = [
        Part(f"agent-{host}", celery("workers.host.app", "threads", 1, f"agent@{host}"), agent_env(plan, host), LOOP)
        for host in plan.doors
    ]
    return [Part("control", celery("workers.control.app", "threads", 2, "control@gongka"), env, LOOP), *agents]


def jobs_part(plan: Plan) -> Part:
    """Started once the farm is whole: nobody waits for a report in the first seconds, all wait for the processors."""
    env = central_env(plan, plan.server.control)
    return Part("jobs", celery("workers.jobs.app", "prefork", 1, "jobs@gongka"), env, FRONT)


def traffic_part(plan: Plan) -> Part:
    """Calls as tenants' applications do: by HTTP, with a key, knowing nothing else of us."""
    address = f"http://127.0.0.1:{plan.gateway}"
    argv = python("demo.traffic", "--gateway", address, "--speed", f"{plan.speed:g}")
    return Part("traffic", argv, base_env() | {"GONGKA_HOME": str(plan.home.path)}, TRAFFIC, stop_s=1.5)
