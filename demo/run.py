"""`make demo`: a living farm on one machine, from nothing to two addresses, until Ctrl-C.

`python -m demo.run [--port-web N] [--port-gateway N] [--speed X] [--home DIR]`. Exit status 0 after an orderly stop,
1 when a process could not be ended, 2 when it could not start and why.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from demo import banner, marks, preflight, ready, redis_server
from demo.home import Home
from demo.parts import Plan, base_env, front_parts, inner_parts, jobs_part, python, redis_part, traffic_part
from demo.problem import Problem, tell
from demo.redis_server import Server
from demo.supervisor import TICK_S, Supervisor

READY_LIMIT_S = 120.0
READY_FILE = "ready.json"  # tells demo.check that all is up, and where
FIRST_DOOR = 7101


class Stopped(BaseException):
    """Somebody asked us to stop: Ctrl-C, SIGTERM, or the terminal is gone."""


def options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("demo.run", description="共卡演示 / the demo farm")
    parser.add_argument("--port-web", type=int, default=8000)
    parser.add_argument("--port-gateway", type=int, default=8080)
    parser.add_argument("--port-doors", type=int, default=FIRST_DOOR, help="第一扇门的端口 / first door's port")
    parser.add_argument("--speed", type=float, default=1.0, help="演示流量的倍速；0 为没有流量 / speed of the traffic")
    parser.add_argument("--home", type=Path, default=Path("var/demo"), help="数据目录 / data folder")
    return parser.parse_args(words)


def say(text: str) -> None:
    """A closed terminal must not end the farm in the middle of its stop."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        return


def main(words: list[str] | None = None) -> int:
    chosen = options(words)
    on_signals(_stop)
    try:
        return run(chosen)
    except Problem as problem:
        return tell(problem)
    except Stopped:
        return 0


def on_signals(action: Any) -> None:
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, action)


def _stop(number: int, frame: FrameType | None) -> None:
    on_signals(signal.SIG_IGN)
    raise Stopped


def run(chosen: argparse.Namespace) -> int:
    """Raises Problem before anything has started, Stopped never."""
    home = Home(chosen.home.resolve())
    home.make()
    with home.lock():
        preflight.check_room(home.path)
        preflight.check_length(home.path)
        farm = home.kept("farm.id", 8)
        clear_remains(home, farm)
        preflight.check_port(chosen.port_web, "--port-web")
        preflight.check_port(chosen.port_gateway, "--port-gateway")
        supervisor = Supervisor(home, farm, say)
        try:
            live(supervisor, chosen)
        except Stopped:
            say("\n正在停止 / stopping …")
        finally:
            on_signals(signal.SIG_IGN)  # a second Ctrl-C must not break the stop that the first began
            began = time.monotonic()
            left = supervisor.stop()
            say(f"已停止，用时 {time.monotonic() - began:.1f} 秒，残留进程 {left} / stopped")
        return 1 if left else 0


def clear_remains(home: Home, farm: str) -> None:
    """What a killed supervisor and its killed watchdog may have left. We hold the lock, so nobody uses it."""
    (home.path / READY_FILE).unlink(missing_ok=True)
    if remains := marks.marked(farm):
        say(f"清理上次运行留下的 {len(remains)} 个进程 / ending what an earlier run left")
        if left := marks.end(farm, 1.0):
            pids = " ".join(str(process.pid) for process in left)
            raise Problem(f"上次运行的进程无法结束：{pids}", f"processes of an earlier run cannot be ended: {pids}")


def live(supervisor: Supervisor, chosen: argparse.Namespace) -> None:
    """From nothing to a whole farm, and on until Stopped."""
    began = time.monotonic()
    home = supervisor.home
    seeded = seed(home, supervisor.farm, past=chosen.speed > 0)
    plan = make_plan(supervisor, chosen, seeded["hosts"])
    store = redis_part(plan)
    if store is not None:
        supervisor.start([store])
        redis_server.wait_answers(plan.server.port, supervisor.tend)
    supervisor.start(front_parts(plan) + inner_parts(plan))
    web, gateway = f"http://127.0.0.1:{plan.web}", f"http://127.0.0.1:{plan.gateway}"
    say(f"已启动各进程，等待就绪 / waiting until ready …（日志 / logs: {home.logs}）")
    farm = ready.Farm(web, gateway, plan.server.control, seeded["hosts"], seeded["hot"])
    missing = ready.wait(farm.missing, supervisor.tend, READY_LIMIT_S)
    took_s = time.monotonic() - began
    if missing:
        say(f"⚠ {took_s:.0f} 秒后仍未就绪 / not ready yet: {', '.join(missing)}")
    supervisor.start([jobs_part(plan)])
    if chosen.speed > 0:
        supervisor.start([traffic_part(plan)])
    body = {"web": web, "gateway": gateway, "redis": plan.server.control, "ready_s": took_s, "missing": missing}
    home.write_private(home.path / READY_FILE, json.dumps(seeded | body))
    say(banner.text(home, web, gateway, took_s))
    while True:
        time.sleep(TICK_S)
        supervisor.tend()


def seed(home: Home, farm: str, *, past: bool) -> dict[str, Any]:
    """Migrations, demo data, simulated hosts. Raises Problem with the end of the log when that fails."""
    env = base_env() | {
        "GONGKA_HOME": str(home.path),
        "GONGKA_SECRET": home.kept("secret", 32),
        "DATABASE_URL": home.database_url,
        marks.MARK: farm,
    }
    say("准备数据库与演示数据 / database and demo data …")
    with home.log("seed") as log:
        done = subprocess.run(
            python("demo.seed", str(home.path), *([] if past else ["--no-past"])),
            env=env,
            stdout=subprocess.PIPE,
            stderr=log,
            check=False,
        )
    if done.returncode != 0:
        path = home.logs / "seed.log"
        tail = "\n    ".join(path.read_text(errors="replace").splitlines()[-6:])
        raise Problem(f"准备演示数据失败，见 {path}：\n    {tail}", f"preparing the demo data failed, see {path}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def make_plan(supervisor: Supervisor, chosen: argparse.Namespace, hosts: list[str]) -> Plan:
    """Ports that nobody types are taken where they are free."""
    store, *spare = preflight.free_ports(1 + len(hosts))
    wished = range(chosen.port_doors, chosen.port_doors + len(hosts))
    doors = list(wished) if all(preflight.port_free(port) for port in wished) else spare
    server: Server = redis_server.prepare(supervisor.home, hosts, store)
    return Plan(
        home=supervisor.home,
        farm=supervisor.farm,
        web=chosen.port_web,
        gateway=chosen.port_gateway,
        doors=dict(zip(hosts, doors, strict=True)),
        server=server,
        speed=chosen.speed,
    )


if __name__ == "__main__":
    sys.exit(main())
