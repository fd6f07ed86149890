"""The agent of one host: adopts what runs, takes wants, reports what it sees."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from dataclasses import replace
from importlib import metadata

from workers.host import files
from workers.host.doorkeeper import DoorKeeper
from workers.host.launchers import LAUNCHERS
from workers.host.limits import Limits
from workers.host.replica import Replica
from workers.host.settings import Settings
from workers.host.surroundings import Surroundings
from workers.host.telemetry import Telemetry, machine_memory_mib
from workers.host.turns import Turns
from workers.host.wire import Wire
from workers.messages import CardSample, HostReport, HostWant

log = logging.getLogger(__name__)


class Agent:
    """`generation` 0: no want yet in this life, so nothing is changed."""

    def __init__(self, settings: Settings, wire: Wire, limits: Limits) -> None:
        """Raises BlockingIOError when another agent of this host does not end."""
        self.settings, self.limits, self.wire = settings, limits, wire
        self.boot, self.seq, self.generation = uuid.uuid4().hex, 0, 0
        self.told = False
        settings.engines.mkdir(parents=True, exist_ok=True)
        # Two agents on one host would undo each other's work.
        self._lock_handle = files.lock(settings.folder / "agent.lock", limits.lock_s)
        launcher = LAUNCHERS["process"](settings.farm, settings.host)
        self.around = Surroundings(
            settings=settings,
            limits=limits,
            launcher=launcher,
            keeper=DoorKeeper(settings, limits),
            telemetry=Telemetry(settings, limits),
            turns=Turns(),
            changed=threading.Event(),
        )
        self.replicas: dict[int, Replica] = {}
        self._lock = threading.Lock()
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)

    def begin(self) -> None:
        self.around.telemetry.begin()
        self.around.keeper.begin()
        self.adopt()
        self._thread.start()

    def halt(self) -> None:
        """Ends this agent and its sampler. Engines and the door go on: the next agent adopts them."""
        self._halt.set()
        self.around.changed.set()
        self._thread.join(self.limits.report_s * 5)
        replicas = list(self.replicas.values())
        for one in replicas:
            one.halt()
        for one in replicas:
            one.join(self.limits.tick_s)
        self.around.keeper.halt()
        self.around.telemetry.halt()
        self.wire.close()
        os.close(self._lock_handle)

    def adopt(self) -> None:
        """Every replica that has a process with our mark, or a folder, is one of ours."""
        folders = [int(one.name) for one in self.settings.engines.iterdir() if one.name.isdecimal()]
        running = self.around.launcher.scan(self.limits.scan_age_s)
        with self._lock:
            for number in {*folders, *running} - set(self.replicas):
                self._new(number).tell_again(self.told)

    def _new(self, number: int) -> Replica:
        replica = self.replicas[number] = Replica(number, self.around)
        replica.begin()
        return replica

    def apply(self, want: HostWant) -> bool:
        """The whole want of this host. False: it is of another host, or older than what was applied. Idempotent."""
        if want.host != self.settings.host:
            log.error("a want for another host was ignored")
            return False
        with self._lock:
            if want.generation < self.generation:
                return False
            self.generation, self.told = want.generation, True
            named = {one.id: one for one in want.replicas if one.id > 0}
            for number in named.keys() - self.replicas.keys():
                self._new(number)
            for number, replica in list(self.replicas.items()):
                replica.tell(named.get(number))
                if replica.finished and number not in named:
                    del self.replicas[number]
                    replica.forget()
        return True

    def _run(self) -> None:
        while not self._halt.is_set():
            self.around.changed.clear()
            try:
                self.adopt()
                self.wire.send(self.report())
            except Exception:  # silence would look like a dead host
                log.exception("report")
            self._halt.wait(self.limits.report_gap_s)
            self.around.changed.wait(self.limits.report_s - self.limits.report_gap_s)

    def report(self) -> HostReport:
        self.seq += 1
        telemetry, sample = self.around.telemetry, self.around.telemetry.sample
        machine_mib = machine_memory_mib()
        replicas = list(self.replicas.values())
        owners = {
            one.pid: number for number, group in self.around.launcher.scan(self.limits.tick_s).items() for one in group
        }
        return HostReport(
            host=self.settings.host,
            at=time.time(),
            boot=self.boot,
            seq=self.seq,
            generation=self.generation,
            version=VERSION,
            door_url=self.settings.door_url,
            door_ok=self.around.keeper.ok,
            memory_mib=sample.memory_mib if sample and sample.memory_mib else machine_mib[0],
            memory_free_mib=sample.memory_free_mib if sample and sample.memory_mib else machine_mib[1],
            bandwidth_mib_s=(sample.bandwidth_mib_s if sample else None) or self.limits.bandwidth_mib_s,
            cards_at=telemetry.at,
            cards=[_owned(card, owners) for card in telemetry.cards()],
            replicas=[one.report for one in sorted(replicas, key=lambda one: one.id)],
        )


def _owned(card: CardSample, owners: dict[int, int]) -> CardSample:
    """Says whose each process on the card is."""
    return replace(card, processes=[replace(one, replica=owners.get(one.pid)) for one in card.processes])


def _version() -> str:
    try:
        return metadata.version("gongka")
    except metadata.PackageNotFoundError:
        return "0.1.0"


VERSION = _version()
