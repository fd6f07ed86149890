"""Whole ticks of the control loop on a database of their own; a line of JSON each state. Run by `benchmarks.planner`.

The loop's own `round` and `say` are timed, with a real Redis-family server between: reports of all hosts are in their
streams and a gateway is registered before each tick, as on a running farm.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

WARM_UP = 4
STORM = 124


def main(argv: list[str]) -> int:
    folder, seed, most, seconds = Path(argv[0]), int(argv[1]), int(argv[2]), float(argv[3])
    with redis_server(folder) as url:
        os.environ |= {"REDIS_URL": url, "DJANGO_SETTINGS_MODULE": "console.settings"}
        import django

        django.setup()
        logging.disable(logging.WARNING)
        from django.core.management import call_command

        from benchmarks.console_farm import Size, make

        call_command("migrate", verbosity=0)
        make(Size(decisions=5000), seed)
        for found in measure(most, seconds):
            print(json.dumps(found), flush=True)
    return 0


def measure(most: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Milliseconds of each tick, by state: steady, with first callers of many services in every tick, and busy."""
    from benchmarks.planner import sampled
    from console import garbage
    from workers.app import make as make_app
    from workers.control.loop import Loop

    loop = Loop(None)
    loop.app = make_app("bench", "bench", "bench:")
    garbage.settle()  # as the worker does
    for state, held, busy in (("steady", 0, False), ("storm of wishes", STORM, False), ("every figure moves", 0, True)):
        farm = Farm(held, busy)
        with loop.app.producer_pool.acquire(block=True) as producer:
            for _ in range(WARM_UP):
                tick(loop, farm, producer)
            ticks = sampled(partial(tick, loop, farm, producer), most, seconds)
        yield {"state": state, "ticks": ticks}


class Farm:
    """What hosts and a gateway say before each tick; and the leader's memory."""

    def __init__(self, held: int, busy: bool) -> None:
        from console import wire
        from console.catalog.models import Replica
        from workers.control import lease
        from workers.control.record import Recorder
        from workers.control.routes import Routes
        from workers.control.tick import Tick

        lease.ensure()
        self.token = lease.take("bench") or 0
        self.inbox, self.tick = wire.Inbox(), Tick(self.token, Recorder(self.token))
        self.routes, self.held, self.seq = Routes(self.token), held, 0
        self.bodies, self.busy = bodies(), busy
        wire.client().set("gateways:since", time.time() - 60)
        self.called = set(Replica.objects.filter(ended_at=None, phase="ready").values_list("service__name", flat=True))

    def speak(self) -> None:
        """A second passed: every host reports, the gateway registers."""
        import msgspec

        from console import wire
        from console.catalog.models import Service
        from workers.control import lease
        from workers.messages import encode

        self.seq, now = self.seq + 1, time.time()
        pipe = wire.client().pipeline(transaction=False)
        for name, report in self.bodies.items():
            fresh = replace(report, at=now, boot=f"b{self.token}", seq=self.seq, cards_at=now)
            fresh = moved(fresh, self.seq) if self.busy else fresh
            pipe.xadd(f"host:{name}:report", {"b": encode(fresh)}, maxlen=5)
        names = list(Service.objects.order_by("-pk").values_list("name", flat=True)[: self.held])
        waiting = {name: wire.ServiceCount(1, 0, now, now) for name in names}
        flying: dict[str, int] = {}
        if self.busy:
            waiting = {name: wire.ServiceCount(last_call_at=now) for name in self.called}
            ready = [one.id for report in self.bodies.values() for one in report.replicas if one.phase == "ready"]
            flying = {str(replica): 1 + self.seq % 3 for replica in ready}
        registered = wire.Registration("gw1", "b", now, lease.route_version(), flying, waiting)
        pipe.zadd("gateways", {"gw1": now})
        pipe.set("gateway:gw1", msgspec.json.encode(registered), ex=60)
        pipe.execute()


def moved(report: Any, second: int) -> Any:
    """Nothing that engines and cards show is as it was a second ago."""
    cards = [replace(c, free_mib=c.free_mib - second % 7, util_pct=second % 100) for c in report.cards]
    replicas = [
        replace(r, kv_used_pct=20 + (r.id + second) % 50, running=1 + second % 3, door_in_flight=1 + second % 3)
        if r.phase == "ready"
        else r
        for r in report.replicas
    ]
    return replace(report, cards=cards, replicas=replicas)


def tick(loop: Any, farm: Farm, producer: Any) -> tuple[float, float]:
    """(processor, wall) milliseconds of one round and of what it says."""
    farm.speak()
    gc.collect()
    wall, cpu = time.perf_counter(), time.thread_time()
    outcome = loop.round(farm.token, farm.inbox, farm.tick)
    loop.say(outcome, farm.routes, producer, True)
    return 1000 * (time.thread_time() - cpu), 1000 * (time.perf_counter() - wall)


def bodies() -> dict[str, Any]:
    """The report of each host: what its rows say is what it sees."""
    from console.catalog.models import Replica
    from console.fleet.models import Card, Host
    from workers.messages import CardSample, HostReport, ReplicaReport

    cards: dict[int, list[CardSample]] = defaultdict(list)
    for card in Card.objects.order_by("index"):
        cards[card.host_id].append(
            CardSample(
                card.uuid, card.index, card.name, card.total_mib, card.reserved_mib, card.free_mib, card.util_pct
            )
        )
    replicas: dict[int, list[ReplicaReport]] = defaultdict(list)
    for row in Replica.objects.filter(ended_at=None):
        seen = ReplicaReport(row.pk, row.attempt, row.phase, list(row.cards), row.phase_since.timestamp())
        replicas[row.host_id].append(
            replace(seen, progress=row.progress, running=row.running, waiting=0, door_in_flight=0, can_sleep=True)
        )
    return {
        host.name: HostReport(
            host.name,
            0.0,
            "b1",
            0,
            0,
            "1.0.0",
            "http://127.0.0.1:1",
            True,
            host.memory_mib,
            256 * 1024,
            host.bandwidth_mib_s,
            0.0,
            cards[host.pk],
            replicas[host.pk],
        )  # fmt: skip
        for host in Host.objects.all()
    }


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    from demo.redis_server import choose_binary, wait_answers

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [choose_binary(), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        wait_answers(port, lambda: None)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        running.terminate()
        running.wait(10)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
