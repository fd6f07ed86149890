"""Traffic: the shape of a day, who is called, and that it ends when told to."""

from __future__ import annotations

import http.server
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from demo import farm, traffic
from demo.services import RUSH, SERVICES
from scheduler.policy import DEFAULT
from scheduler.world import Profile


def test_a_day_has_a_shape():
    assert traffic.shape(Profile.ONLINE, 13) > 3 * traffic.shape(Profile.ONLINE, 3)
    assert traffic.shape(Profile.BATCH, 2) > traffic.shape(Profile.BATCH, 13)
    assert all(0 <= traffic.shape(profile, hour) <= 1 for profile in Profile for hour in range(24))


def test_the_checks_services_are_never_called():
    names = {plan.name for plan in traffic.callable_plans()}
    assert len(names) == len(SERVICES) - 2
    assert not names & {farm.CHECK_STREAM, farm.CHECK_PLAIN}


def test_the_morning_rush_fills_more_than_two_copies_and_ends(tmp_path: Path) -> None:
    """It keeps its calls in flight while it lasts, none before, none after, and none while traffic is paused."""
    caller = traffic.Caller(None, {}, 1.0, random.Random(1), pause=tmp_path / "paused")

    def due(hour: float) -> int:
        caller.began = time.monotonic() - (hour - 8) / 24 * traffic.DAY_S
        return caller.rush_due()

    assert [due(hour) for hour in (8.5, 9.4, 9.6, 9.9, 10.1, 20)] == [0, 0, 32, 32, 0, 0]
    caller.rushing = {object(), object()}
    assert due(9.7) == 30
    (tmp_path / "paused").touch()
    assert due(9.7) == 0
    plan = next(plan for plan in SERVICES if plan.name == RUSH)
    assert plan.min_replicas * plan.max_num_seqs + DEFAULT.scale_queue_calls < traffic.RUSH_AT_ONCE


def test_hot_services_get_most_calls_and_cold_ones_a_few():
    plans, dice = traffic.callable_plans(), random.Random(1)
    drawn = Counter(plan.tier for plan in dice.choices(plans, traffic.weights(11, plans), k=5000))
    assert drawn["hot"] > drawn["warm"] > drawn["cold"] > 0


class Gateway(http.server.BaseHTTPRequestHandler):
    """Answers at once, remembers who called what."""

    seen: list[tuple[str, str, bool]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((self.headers["Authorization"], body["model"], body["stream"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def gateway():
    Gateway.seen = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def at_rest(deadline: float) -> int:
    """The count of calls once a second passed without one, where twenty come otherwise."""
    count = -1
    while count != (count := len(Gateway.seen)):
        assert time.monotonic() < deadline, "it goes on calling"
        time.sleep(1.0)
    return count


def test_it_calls_with_the_owners_keys_rests_when_asked_and_ends_within_a_second(gateway, tmp_path):
    keys = {slug: f"gk_{slug}" for slug, _, _ in farm.TENANTS}
    (tmp_path / "demo-keys.json").write_text(json.dumps(keys))
    argv = [sys.executable, "-m", "demo.traffic", "--gateway", gateway, "--speed", "8", "--seed", "4"]
    process = subprocess.Popen(argv, env=os.environ | {"GONGKA_HOME": str(tmp_path)}, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while len(Gateway.seen) < 25 and time.monotonic() < deadline:
            time.sleep(0.05)
        pause = tmp_path / traffic.PAUSE
        pause.touch()
        paused_at = at_rest(deadline)
        pause.unlink()
        while len(Gateway.seen) == paused_at and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(Gateway.seen) > paused_at, "it does not go on"
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert time.monotonic() - asked < 1.0
    finally:
        process.kill()
        process.wait()
    owners = {plan.name: plan.tenant for plan in SERVICES}
    assert len(Gateway.seen) >= 25
    assert all(header == f"Bearer gk_{owners[model]}" for header, model, _ in Gateway.seen)
    assert {stream for _, _, stream in Gateway.seen} == {True, False}


def test_a_speed_of_nothing_is_refused(capsys):
    with pytest.raises(SystemExit):
        traffic.main(["--gateway", "http://127.0.0.1:1", "--speed", "0"])
