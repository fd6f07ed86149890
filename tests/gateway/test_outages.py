"""The gateway without Redis, without its database, and killed."""

from __future__ import annotations

import signal
import threading
import time
import uuid
from collections.abc import Callable

import httpx
import pytest

from console import wire
from tests.gateway.farm import PROMPT_S, Farm, Process, on, until
from tests.gateway.test_holds_live import Caller

MakeFarm = Callable[..., Farm]


def test_redis_away_and_back(own_farm: MakeFarm) -> None:
    farm = own_farm()
    farm.routed("svc", **on(1))
    farm.routed("cold")
    farm.redis.stop(signal.SIGKILL)
    ids = [uuid.uuid4().hex for _ in range(20)]
    for id in ids:
        started = time.monotonic()
        assert farm.call("svc", headers={"X-Request-Id": id}).status_code == 200
        assert time.monotonic() - started < PROMPT_S, "no call waits for Redis"
    held = Caller(farm, "cold", stream=True)
    until(lambda: held.text.startswith(": gongka loading"))
    assert httpx.get(f"{farm.url}/readyz").json()["ready"] is True
    farm.redis.start()
    farm.redis.up()
    until(lambda: farm.held("cold") == 1)
    assert farm.registration()["routes_version"] == farm.version, "the last routes stay"
    until(lambda: "cold" in farm.nudges())
    farm.publish(cold=on(2))
    assert "word4" in held.done().text
    for id in ids:
        farm.record(id)
    seqs = [record["seq"] for record in farm.usage()]
    assert seqs == sorted(set(seqs))


def test_the_database_away_and_back(own_farm: MakeFarm) -> None:
    farm = own_farm()
    farm.routed("svc", **on(1))
    log = farm.folder / "gateway.log"
    files = [farm.database.path, farm.database.path.with_name(farm.database.path.name + "-wal")]
    whole = {file: file.read_bytes() for file in files if file.exists()}
    for file in whole:
        file.write_bytes(b"no database " * 1000)
    until(lambda: "database away" in log.read_text())
    assert farm.call("svc").status_code == 200, "the last snapshot stays"
    for file, content in whole.items():
        file.write_bytes(content)
    farm.database.write("UPDATE accounts_apikey SET revoked_at = '2026-01-01 00:00:00' WHERE id = ?", farm.key_id)
    until(lambda: farm.call("svc").status_code == 401)


def test_a_killed_gateway_loses_and_doubles_no_usage(own_farm: MakeFarm) -> None:
    farm = own_farm(segment_kib=2)
    farm.door.engines[1].chunks = 3
    farm.routed("svc", **on(1))
    done: list[str] = []
    stop = threading.Event()

    def caller() -> None:
        while not stop.is_set():
            id = uuid.uuid4().hex
            try:
                if farm.call("svc", headers={"X-Request-Id": id}).status_code == 200:
                    done.append(id)
            except httpx.TransportError:
                stop.wait(0.05)

    threads = [threading.Thread(target=caller) for _ in range(2)]
    for thread in threads:
        thread.start()
    for life in range(3):
        seen = len(done)
        until(lambda seen=seen: len(done) > seen + 20)
        if life == 1:
            farm.redis.client.delete("usage")  # as after a crash of Redis: what was not acknowledged comes again
        farm.gateway.stop(signal.SIGKILL)
        farm.gateway.start()
        farm.up()
    stop.set()
    for thread in threads:
        thread.join(60)
    stored = stored_by_control(farm, done)
    # A kill between the record and the last bytes of the answer leaves a record its caller does not know of.
    assert len(stored) == len(set(stored.values())), "no number twice"
    assert set(done) <= stored.keys()


def stored_by_control(farm: Farm, wanted: list[str]) -> dict[str, int]:
    """Reads `usage` as control does: only numbers above its cursor; acknowledges; until all wanted are in."""
    stored: dict[str, int] = {}

    def complete() -> bool:
        for record in farm.usage():
            if record["seq"] > max(stored.values(), default=0):
                assert record["id"] not in stored
                stored[record["id"]] = record["seq"]
        farm.redis.client.set("usage:ack:gw1", max(stored.values(), default=0))
        return set(wanted) <= stored.keys()

    until(complete)
    folder = farm.folder / "home" / "spool" / "gw1"
    until(lambda: len(list(folder.glob("*.jsonl"))) == 1)
    return stored


def test_a_second_gateway_of_that_name_does_not_start(own_farm: MakeFarm) -> None:
    farm = own_farm()
    command = [part if part != str(farm.port) else "0" for part in farm.gateway.command]
    second = Process(command, farm.folder / "second.log", farm.env)
    try:
        assert second.child.wait(30) == 3
    finally:
        second.stop()
    assert "another gateway runs under the name" in (farm.folder / "second.log").read_text()


def test_a_stopped_gateway_is_gone_from_the_table(own_farm: MakeFarm) -> None:
    farm = own_farm()
    farm.routed("svc", **on(1))
    farm.call("svc")
    assert farm.redis.client.zrange("gateways", 0, -1) == [b"gw1"]
    assert farm.gateway.stop() in (0, -signal.SIGTERM)
    assert farm.redis.client.zrange("gateways", 0, -1) == []
    assert farm.redis.client.get("gateway:gw1") is None
    log = (farm.folder / "gateway.log").read_text()
    assert "Traceback" not in log
    assert "Warning" not in log
    assert farm.KEY not in log
    assert farm.TOKEN not in log


def test_its_own_redis_user_may_do_all_it_does(own_farm: MakeFarm) -> None:
    farm = own_farm()
    line = next(line for line in wire.acl_lines({}, "control-pw", "gateway-pw").splitlines() if "user gateway" in line)
    farm.redis.client.execute_command("ACL", "SETUSER", *line.split()[1:])
    farm.gateway.stop()
    farm.gateway.env = {**farm.env, "REDIS_URL": farm.redis.url.replace("//", "//gateway:gateway-pw@")}
    farm.gateway.start()
    farm.up()
    farm.routed("svc")
    caller = Caller(farm, "svc", headers={"X-Request-Id": "acl-1"})
    until(lambda: farm.held("svc") == 1)
    farm.publish(svc=on(1))
    assert caller.done().status == 200
    farm.redis.client.set("usage:ack:gw1", farm.record("acl-1")["seq"])
    farm.gateway.stop()
    assert farm.redis.client.zrange("gateways", 0, -1) == []
    refused = {entry[entry.index(b"object") + 1] for entry in farm.redis.client.execute_command("ACL", "LOG")}
    assert refused <= {b"client|setinfo"}, "optional to the client library"


def test_who_is_still_there_when_it_stops_is_told(own_farm: MakeFarm) -> None:
    farm = own_farm()
    engine = farm.door.engines[1]
    engine.chunks, engine.gap_s = 1000, 0.05
    farm.routed("svc", **on(1))
    farm.routed("cold")
    streaming, held = Caller(farm, "svc", stream=True), Caller(farm, "cold", stream=True)
    plain = Caller(farm, "cold", headers={"X-Gongka-Max-Wait": "60"})
    until(lambda: "word3" in streaming.text and farm.held("cold") == 2)
    farm.gateway.stop()
    for caller in (streaming, held):
        assert caller.done().text.endswith("data: [DONE]\n\n")
        assert '"code":"stopping"' in caller.text
    assert (plain.done().status, plain.code) == (503, "stopping")
    assert farm.redis.client.zrange("gateways", 0, -1) == []


@pytest.mark.parametrize("body", ["{", '{"services": 3}', "[]"])
def test_routes_nobody_can_read_change_nothing(own_farm: MakeFarm, body: str) -> None:
    farm = own_farm()
    farm.routed("svc", **on(1))
    farm.redis.client.set("routes", body)
    farm.redis.client.xadd("routes:bell", {"rev": 9})
    log = farm.folder / "gateway.log"
    until(lambda: "routes blob not understood" in log.read_text())
    assert farm.call("svc").status_code == 200
    farm.routed("svc", **on(2))
    assert farm.call("svc").status_code == 200
    assert len(farm.door.engines[2].calls) == 1
