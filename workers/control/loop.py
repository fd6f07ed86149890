"""The control loop: a thread of the control worker that plans for as long as it holds the lease."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable
from socket import gethostname
from typing import Any
from uuid import uuid4

import redis
from celery import bootsteps
from celery.beat import Scheduler
from django.db import close_old_connections, connection, transaction

from console import board, wire
from console.fleet.models import Host
from workers.app import READY_JSON, host_queue
from workers.control import lease, wants
from workers.control.latency import Latency
from workers.control.record import Recorder
from workers.control.routes import Routes
from workers.control.tick import Outcome, Tick
from workers.messages import WANT_EXPIRES_S, HostWant

log = logging.getLogger(__name__)

PERIOD_S = 1.0
STORM_PAUSE_S = 0.02  # between two nudged rounds: a storm of held callers costs one plan
HURRY_S = 0.25  # while a caller is held, each step of a drain, stop and start is taken at once
BATCH = 50  # messages a pipeline: nothing starts before its flush


class Loop(bootsteps.StartStopStep):  # type: ignore[misc]
    requires = {"celery.worker.components:Pool"}  # after the pool, before the consumer

    def __init__(self, parent: Any, **options: Any) -> None:
        self.halt = threading.Event()
        self.thread: threading.Thread | None = None
        self.me = ""
        super().__init__(parent, **options)

    def start(self, worker: Any) -> None:
        self.app = worker.app
        self.me = f"{gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"  # unique per life, not per machine
        self.thread = threading.Thread(target=self.run, name="loop", daemon=True)
        self.thread.start()

    def stop(self, worker: Any) -> None:
        self.halt.set()
        if self.thread is not None:
            self.thread.join(10)

    terminate = stop

    def run(self) -> None:
        """Until told to halt: get the lease, lead, and after any fault begin again."""
        pause = 1.0
        while not self.halt.is_set():
            try:
                close_old_connections()
                lease.ensure()
                token = lease.take(self.me)
                if token is not None:
                    pause = 1.0
                    self.lead(token)
            except lease.Lost:
                log.warning("another control leads")
            except redis.RedisError as error:
                log.warning("Redis: %s", error)
            except Exception:
                log.exception("loop")
                connection.close()
                pause = min(pause * 2, 5)
            self.halt.wait(pause)
        lease.release(self.me)
        connection.close()

    def lead(self, token: int) -> None:
        """Plan until the lease or a connection is lost. All memory is made anew: it may be stale."""
        log.info("leading with token %d", token)
        beat = Scheduler(app=self.app)  # in memory: only the leader ticks
        beat.setup_schedule()
        inbox, tick, routes, latency = wire.Inbox(), Tick(token, Recorder(token)), Routes(token), Latency()
        due = soon = time.monotonic()
        with self.app.producer_pool.acquire(block=True) as producer:
            while not self.halt.is_set():
                nudged = inbox.wait_nudge(max(0.0, min(due, soon) - time.monotonic()))
                whole = time.monotonic() >= due
                if not nudged and not whole and time.monotonic() < soon:
                    continue
                if whole:
                    due = max(due + PERIOD_S, time.monotonic())
                outcome = self.round(token, inbox, tick)
                self.say(outcome, routes, producer, whole)
                if whole:
                    latency.tell(outcome.gateways, outcome.world, outcome.rules, time.time())
                soon = time.monotonic() + HURRY_S if outcome.hurry else due
                beat.tick()
                if not whole:
                    self.halt.wait(STORM_PAUSE_S)

    def round(self, token: int, inbox: wire.Inbox, tick: Tick) -> Outcome:
        reports = inbox.read_reports(Host.objects.values_list("name", flat=True))
        gateways = wire.read_gateways()
        with transaction.atomic():
            lease.fence(token)  # first statement: row lock, check and renewal in one
            return tick.run(reports, gateways, time.time())

    def say(self, outcome: Outcome, routes: Routes, producer: Any, whole: bool) -> None:
        """After the commit: wants down (changed hosts first), routes, and once a second the board."""
        first = [want for want in outcome.wants if want.host in outcome.changed]
        self.send(first, producer)
        again = whole and wire.routes_absent()
        said = (outcome.version, outcome.services, outcome.hosts)
        blob = routes.next(*said, time.time(), again, barred=outcome.barred, limits=outcome.limits)
        if blob is not None:
            wire.publish_routes(*blob)
        if whole:
            self.send([want for want in outcome.wants if want.host not in outcome.changed], producer)
            wire.drop_wants(wants.silent_hosts(time.time()))
            board.publish(outcome.world, outcome.gateways, policy=outcome.rules)

    def send(self, told: Iterable[HostWant], producer: Any) -> None:
        with producer.batch(max_size=BATCH):
            for want in told:
                self.app.send_task(
                    "want",
                    kwargs=wants.packed(want),
                    serializer=READY_JSON,
                    queue=host_queue(want.host),
                    expires=WANT_EXPIRES_S,
                    producer=producer,
                    retry=False,
                    argsrepr="",  # costs a third of a message, and would put wants into logs
                    kwargsrepr="",
                )
