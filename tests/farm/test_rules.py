"""S11 and S20 on the running farm: swapping is held back and told, a card or a host dies."""

from __future__ import annotations

import contextlib
import threading
import time

import psutil
import pytest

from tests.farm.corner import Corner
from tests.farm.harness import Farm, wait_for
from tests.farm.plot import Plot
from tests.farm.streams import Caller
from tests.farm.watcher import Watcher
from workers.simulator import faults

pytestmark = [pytest.mark.farm, pytest.mark.timeout(300)]
STAY_S = 20


@pytest.fixture
def corner(farm: Farm, watched: Watcher) -> Corner:
    return Corner(farm, {"swap-a": 50, "swap-b": 50})


def starts(farm: Farm, service: str, since: int) -> int:
    query = (
        "select count(*) from journal_decision d join catalog_service s on s.id = d.service_id"
        " where s.name = ? and d.verb = 'start' and d.refusal = '' and d.id > ?"
    )
    return int(farm.rows(query, service, since)[0][0])


def last_decision(farm: Farm) -> int:
    return int(farm.rows("select coalesce(max(id), 0) from journal_decision")[0][0])


def test_s11_two_models_in_turn_swap_once_a_minimum_stay_and_the_alarm_names_them(corner: Corner) -> None:
    farm = corner.farm
    farm.policy(min_loaded_s=STAY_S)
    since, began = last_decision(farm), time.monotonic()
    callers = []
    while time.monotonic() - began < 4 * STAY_S:
        callers.append(Caller(farm, ("swap-a", "swap-b")[len(callers) % 2], max_tokens=3))
        time.sleep(8)
    for caller in callers:
        caller.join()
    # who comes while the other is in use, or would wait too long, is told at once; nobody's connection just dies
    assert {caller.error for caller in callers if not caller.whole} <= {"no_capacity"}
    assert sum(caller.whole for caller in callers) >= len(callers) / 2
    took = time.monotonic() - began
    swaps = starts(farm, "swap-a", since) + starts(farm, "swap-b", since)
    assert 2 <= swaps <= took / STAY_S + 2
    query = (
        "select s.name, n.numbers from journal_notice n join catalog_service s on s.id = n.service_id"
        " where n.kind = 'thrash' and n.closed_at is null and s.name in ('swap-a', 'swap-b')"
    )
    ringing = wait_for("the alarm", lambda: farm.rows(query), 90, 1.0)
    assert all("slot_fen_h" in numbers for _, numbers in ringing)


def a_pair(farm: Farm) -> tuple[int, str, str]:
    """A ready replica of a hot service on a card where nothing else is awake: (id, host, card)."""
    for name in farm.ready["hot"]:
        for pk, host, cards in farm.replicas(name):
            if len(cards) == 1:
                return pk, host, cards[0]
    raise AssertionError("no hot replica")


def service_of(farm: Farm, replica: int) -> str:
    query = "select s.name from catalog_replica r join catalog_service s on s.id = r.service_id where r.id = ?"
    return str(farm.rows(query, replica)[0][0])


def others(farm: Farm, card: str) -> dict[int, tuple[str, str]]:
    """Ready replicas that are not on the card, with their wants and cards."""
    query = "select id, want, cards from catalog_replica where ended_at is null and phase = 'ready'"
    return {pk: (want, cards) for pk, want, cards in farm.rows(query) if card not in cards}


def test_s20_a_card_that_falls_off_the_bus_loses_its_copies_and_nothing_else_moves(
    farm: Farm, watched: Watcher
) -> None:
    replica, host, card = a_pair(farm)
    service, before = service_of(farm, replica), others(farm, card)
    on_it = [name for name in farm.ready["hot"] if any(card in cards for _, _, cards in farm.replicas(name))]
    sim = farm.home / "hosts" / host / "sim"
    faults.set_fault(sim, "telemetry", f"card:{card}", lost=True)
    try:
        for process in farm.processes("engine"):
            if process.environ()["GONGKA_REPLICA"] == str(replica):
                process.kill()
        moved = wait_for(
            "rebuilt on another card",
            lambda: [one for one in farm.replicas(service) if card not in one[2]],
            90,
        )
        assert farm.ask(service).status_code == 200
        assert all(card not in cards for _, _, cards in moved)
        after = others(farm, card)
        for name in on_it:
            for pk, _, _ in farm.replicas(name):
                after.pop(pk, None)
        assert {pk: before[pk] for pk in after if pk in before} == {pk: after[pk] for pk in after if pk in before}
    finally:
        faults.clear_faults(sim)


class Lost:
    """A host without power: whatever of it runs is killed, and again as soon as the supervisor begins it anew."""

    def __init__(self, farm: Farm, host: str) -> None:
        self.farm, self.host, self.halt = farm, host, threading.Event()

    def __enter__(self) -> Lost:
        self._kill()
        self.thread = threading.Thread(target=self._keep_down, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.halt.set()
        self.thread.join(10)

    def _keep_down(self) -> None:
        while not self.halt.wait(0.5):
            self._kill()

    def _kill(self) -> None:
        for process in self.farm.of_host(self.host):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def living_on(farm: Farm, host: str) -> set[tuple[int, str, str]]:
    """(id, want, cards) of the host's ready copies."""
    query = (
        "select r.id, r.want, r.cards from catalog_replica r join fleet_host h on h.id = r.host_id"
        " where h.name = ? and r.ended_at is null and r.phase = 'ready'"
    )
    return set(farm.rows(query, host))


PAIR = "s20-pair"
HOSTS = ("gpu-02", "gpu-03", "gpu-04")
COPIES = {
    PAIR: {"weights_mib": 2000, "kv_cap_mib": 4096, "headroom_mib": 512, "profile": "online"}
    | {"min_replicas": 2, "max_replicas": 3}
}


@pytest.fixture
def pair(farm: Farm, watched: Watcher) -> Plot:
    """Two copies on two of three hosts."""
    plot = Plot(farm, "pair", list(HOSTS), COPIES)
    wait_for("both are ready", lambda: len(farm.replicas(PAIR)) == 2, 60)
    return plot


def test_s20_a_host_dies_the_standby_serves_and_the_lost_copy_is_rebuilt(pair: Plot) -> None:
    farm = pair.farm
    (lost, host, _), (stays, _, _) = sorted(farm.replicas(PAIR), key=lambda copy: copy[1], reverse=True)
    others = {name: living_on(farm, name) for name in ("gpu-01", *HOSTS) if name != host}
    boot = farm.rows("select boot from fleet_host where name = ?", host)
    farm.policy(silent_s=8, lost_s=15)
    with Lost(farm, host):
        wait_for("the standby serves", lambda: farm.ask(PAIR).status_code == 200, 30)
        wait_for("unrouted", lambda: lost not in routed(farm, PAIR), 60)
        assert {farm.ask(PAIR).status_code for _ in range(12)} == {200}
        wait_for("rebuilt", lambda: len(routed(farm, PAIR)) == 2, 120)
        assert stays in routed(farm, PAIR)
        assert len({on for pk, on, _ in farm.replicas(PAIR) if pk in routed(farm, PAIR)} - {host}) == 2
        assert {farm.ask(PAIR).status_code for _ in range(12)} == {200}
        assert all(before <= living_on(farm, name) for name, before in others.items()), "nothing else moved"
    wait_for("it reports again", lambda: farm.rows("select boot from fleet_host where name = ?", host) != boot)
    farm.converge(120)


def routed(farm: Farm, service: str) -> set[int]:
    """Copies that gateways send calls to."""
    return {int(one["id"]) for one in farm.routes()["services"][service]["replicas"]}
