"""Batch beside an online service on one card of the running farm: limited by day at once, slowed for its neighbour."""

from __future__ import annotations

import json
import threading
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
import redis

from tests.farm.corner import HOST, Corner
from tests.farm.harness import Farm, wait_for
from tests.farm.streams import Caller
from tests.farm.watcher import Watcher
from workers.simulator.faults import set_fault

pytestmark = [pytest.mark.farm, pytest.mark.timeout(600)]

NIGHT, DESK = "iso-night", "iso-desk"
SLOW = 8  # a batch call takes seconds: as many run as are let in, however busy the machine that calls
#: Nothing but what the test says makes a neighbour slow: gaps between chunks tell of the machine the test runs on.
STEADY = {"neighbour_rise_day_pct": 1000, "neighbour_rise_night_pct": 1000, "min_loaded_s": 1, "idle_unload_s": 600}


@pytest.fixture
def corner(farm: Farm, watched: Watcher) -> Corner:
    """A batch and an online service, both ready on one card."""
    made = Corner(farm, {NIGHT: 40, DESK: 60})
    farm.django(
        "from console.catalog.models import Service\n"
        f"Service.objects.filter(name__in=['{NIGHT}', '{DESK}']).update(kv_cap_mib=4096, max_num_seqs=16)\n"
        f"Service.objects.filter(name='{NIGHT}').update(profile='batch')"
    )
    farm.policy(**STEADY, **all_day(batch=True))
    for name in (NIGHT, DESK):
        assert farm.ask(name).status_code == 200
    return made


def all_day(*, batch: bool) -> dict[str, float]:
    """A window that is the whole day, or one that is hours away."""
    now = datetime.now(ZoneInfo("Asia/Shanghai"))
    later = (now.hour * 60 + now.minute + 180) % 1440
    return {"batch_from_min": later, "batch_until_min": later if batch else (later + 60) % 1440}


class Most:
    """The most batch calls that ran at once in the engine, by its own word, and the limit of the card."""

    def __init__(self, farm: Farm) -> None:
        self.farm, self.seen, self.halt = farm, 0, threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        while not self.halt.wait(0.2):
            self.seen = max(self.seen, running(self.farm))

    def end(self) -> int:
        self.halt.set()
        self.thread.join(5)
        return self.seen


def running(farm: Farm) -> int:
    rows = farm.rows(
        "select r.running from catalog_replica r join catalog_service s on s.id = r.service_id"
        " where s.name = ? and r.ended_at is null and r.phase = 'ready'",
        NIGHT,
    )
    return max((row[0] or 0 for row in rows), default=0)


def limit(corner: Corner) -> int | None:
    return corner.farm.rows("select batch_calls from fleet_card where uuid = ?", corner.card)[0][0]


def bound(corner: Corner) -> int | None:
    """Batch calls at once by day, as the gateways are told of each copy; None: no bound."""
    with redis.Redis.from_url(corner.farm.ready["redis"]) as store:
        body = json.loads(store.get("routes") or "{}")
    copies = body.get("services", {}).get(NIGHT, {}).get("replicas", [])
    return max((one["batch_calls"] for one in copies if one.get("batch_calls") is not None), default=None)


def told(farm: Farm) -> list[str]:
    rows = farm.rows("select reason from journal_decision where verb = 'limit' order by id")
    return [row[0] for row in rows]


def moved(farm: Farm) -> list[tuple[str, str]]:
    """What was decided about the two but their loads."""
    return farm.rows(
        "select d.verb, d.reason from journal_decision d join catalog_service s on s.id = d.service_id"
        " where s.name in (?, ?) and d.verb not in ('start', 'limit') and d.refusal = ''",
        NIGHT,
        DESK,
    )


def talking(farm: Farm, halt: threading.Event, callers: int = 4) -> list[threading.Thread]:
    """Online callers, one call after the other."""

    def talk() -> None:
        while not halt.is_set():
            Caller(farm, DESK, max_tokens=3).join()

    threads = [threading.Thread(target=talk, daemon=True) for _ in range(callers)]
    for thread in threads:
        thread.start()
    return threads


def keep_batch(farm: Farm, halt: threading.Event, ended: list[Caller], callers: int = 8) -> list[threading.Thread]:
    def work() -> None:
        while not halt.is_set():
            ended.append(Caller(farm, NIGHT, max_tokens=40).join())

    threads = [threading.Thread(target=work, daemon=True) for _ in range(callers)]
    for thread in threads:
        thread.start()
    return threads


def target(farm: Farm, ms: int) -> None:
    farm.django(
        f"from console.catalog.models import Service\nService.objects.filter(name='{DESK}').update(p99_target_ms={ms})"
    )


def test_outside_its_window_batch_runs_a_few_at_a_time_and_all_are_answered(corner: Corner) -> None:
    farm = corner.farm
    farm.policy(batch_day_calls=2, **all_day(batch=False))
    wait_for("the routes tell the bound", lambda: bound(corner) == 2, 60)
    most = Most(farm)
    calls = [Caller(farm, NIGHT, max_tokens=150) for _ in range(7)]
    assert farm.ask(DESK).status_code == 200, "the neighbour is not limited"
    for call in calls:
        call.join()
    assert most.end() <= 2
    assert [call.error for call in calls] == [""] * 7
    assert all(call.whole for call in calls)
    assert any("stage=turn" in line for call in calls for line in call.comments)
    assert limit(corner) is None, "the day is no controller's limit"


def test_batch_is_slowed_while_its_neighbour_is_over_its_target_and_let_go_afterwards(corner: Corner) -> None:
    """The target is set so that any answer is over it: what is seen here is the way from figures to gateways."""
    farm = corner.farm
    farm.policy(batch_lower_s=3, batch_raise_s=1)
    for name in (NIGHT, DESK):
        set_fault(farm.home / "hosts" / HOST / "sim", "slow", f"service:{name}", factor=SLOW)
    target(farm, 60000)
    halt, ended = threading.Event(), []
    threads = keep_batch(farm, halt, ended) + talking(farm, halt)
    try:
        wait_for("batch runs at full width", lambda: running(farm) >= 6, 120)
        before = told(farm)
        target(farm, 1)
        wait_for("slowed", lambda: (limit(corner) or 99) <= 2, 120)
        wait_for("few run", lambda: running(farm) <= 2, 60)
        rows = farm.rows(
            "select numbers from journal_decision where verb = 'limit' and reason = 'neighbour' order by id desc"
        )
        assert DESK in rows[0][0]
        assert '"target_ms": 1' in rows[0][0]
        target(farm, 60000)
        wait_for("let go", lambda: limit(corner) is None, 120)
        wait_for("at full width again", lambda: running(farm) >= 6, 120)
        assert told(farm)[len(before) :][0] == "neighbour"
        assert told(farm)[-1] == "well"
    finally:
        halt.set()
        for thread in threads:
            thread.join(120)
    assert {call.error for call in ended} == {""}, "nobody was cut, refused or killed"
    assert moved(farm) == []
