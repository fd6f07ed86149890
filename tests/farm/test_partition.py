"""Views that differ: a gateway without Redis, and two planners at once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
import redis

from tests.farm.cold import cold
from tests.farm.corner import Corner
from tests.farm.harness import ROOT, Farm, wait_for
from tests.farm.proxy import Proxy
from tests.farm.streams import Caller
from tests.farm.watcher import Watcher
from tests.ports import free_port

pytestmark = [pytest.mark.farm, pytest.mark.timeout(300)]

CUT_S = 30.0


@pytest.fixture
def corner(farm: Farm, watched: Watcher) -> Corner:
    made = Corner(farm, {"below": 10, "above": 90})
    farm.policy(min_loaded_s=1)
    return made


@pytest.fixture
def second_gateway(farm: Farm) -> Iterator[tuple[str, Proxy]]:
    """Another gateway process whose way to Redis is in our hand."""
    parts = urlsplit(farm.ready["redis"])
    password = (farm.home / "redis" / "gateway.password").read_text().strip()
    assert parts.port is not None
    proxy = Proxy(parts.port)
    port = free_port()
    env = farm.env | {"REDIS_URL": f"redis://gateway:{password}@127.0.0.1:{proxy.port}/0", "GONGKA_GATEWAY": "gw2"}
    words = [
        "uvicorn",
        "console.gateway.asgi:application",
        "--http",
        "console.heads:Bounded",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    process = subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, env=env)
    url = f"http://127.0.0.1:{port}"
    wait_for("the second gateway", lambda: ready(url), 90)
    yield url, proxy
    process.terminate()
    process.wait(20)
    proxy.close()


def ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


def test_a_gateway_cut_off_from_redis_during_a_convenience_drain_loses_no_stream(
    corner: Corner, second_gateway: tuple[str, Proxy]
) -> None:
    farm, (url, proxy) = corner.farm, second_gateway
    assert farm.ask("below").status_code == 200
    stream = Caller(farm, "below", max_tokens=1200, gateway=url)
    wait_for("flowing", lambda: stream.flowing)
    proxy.set_cut(True)
    cut_at = time.monotonic()
    with redis.Redis.from_url(farm.ready["redis"]) as client:
        wait_for("its registration ran out", lambda: client.get("gateway:gw2") is None, 15)
    above = Caller(farm, "above", max_tokens=5)
    wait_for("the drain began", lambda: farm.replicas("below", "draining"), 30)
    wait_for("30 s without Redis", lambda: time.monotonic() - cut_at >= CUT_S, CUT_S + 5)
    proxy.set_cut(False)
    assert stream.join().whole, stream.error
    assert above.join().whole, above.error


@pytest.fixture
def second_control(farm: Farm) -> Iterator[subprocess.Popen[bytes]]:
    words = "celery -A workers.control.app worker -P threads -c 2 --without-gossip --without-mingle"
    command = [sys.executable, "-m", *words.split(), "--without-heartbeat", "-n", "second@test"]
    process = subprocess.Popen(command, cwd=ROOT, env=farm.env)
    yield process
    process.terminate()
    process.wait(20)


def test_two_planners_at_once_make_no_double_start(
    farm: Farm, watched: Watcher, second_control: subprocess.Popen[bytes]
) -> None:
    """The leader is frozen in the middle of its work, the other leads; then both live, and one is fenced out."""
    leader = farm.processes("control")[0]
    assert leader.pid != second_control.pid
    names = [cold(farm, like) for like in ("schedule-notes", "inspection-report")]
    wait_for("the second is up", lambda: second_control.poll() is None and threads(second_control.pid) > 2, 90)
    token = lease(farm)
    freeze(farm, leader)
    try:
        held = [Caller(farm, name, max_tokens=5) for name in names]
        wait_for("the other leads", lambda: lease(farm) > token, 60)
    finally:
        leader.resume()
    assert all(caller.join().whole for caller in held)
    farm.converge(60)
    fences = [fence for (fence,) in farm.rows("select fence from journal_decision order by id")]
    assert fences == sorted(fences), "rows of two holders interleave"
    starts = farm.rows(
        "select s.name, count(*) from journal_decision d join catalog_service s on s.id = d.service_id"
        " where d.fence > ? and d.verb in ('start', 'wake') and d.refusal = '' group by s.name",
        token,
    )
    assert sorted(starts) == sorted((name, 1) for name in names)
    assert psutil.pid_exists(leader.pid)


def freeze(farm: Farm, leader: psutil.Process) -> None:
    """Stop it where it stands, but not inside its transaction: there it holds SQLite's one lock, and nobody leads."""
    wait_for("frozen outside its transaction", lambda: suspended(farm, leader), 60, 0.07)


def suspended(farm: Farm, leader: psutil.Process) -> bool:
    leader.suspend()
    if farm.writable(within_s=1.0):
        return True
    leader.resume()
    return False


def threads(pid: int) -> int:
    return int(psutil.Process(pid).num_threads())


def lease(farm: Farm) -> int:
    found: int = farm.rows("select token from jobs_lease")[0][0]
    return found
