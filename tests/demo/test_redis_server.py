"""The embedded server is new enough, keeps its users over a restart, and lets each reach only its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from demo import marks, redis_server
from demo.home import Home
from demo.problem import Problem
from demo.redis_server import Server
from tests.ports import free_port


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.make()
    return made


@pytest.fixture
def server(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("REDIS_URL", raising=False)
    port = free_port()
    made = redis_server.prepare(home, ["gpu-01", "gpu-02"], port)
    env = {**os.environ, marks.MARK: "farm-of-test-redis"}
    process = subprocess.Popen(redis_server.arguments(made, home), stdout=subprocess.DEVNULL, env=env)
    redis_server.wait_answers(port, lambda: None)
    yield made
    process.kill()
    process.wait()


def client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, protocol=2)


def test_it_is_found_by_its_mark(server: Server) -> None:
    (found,) = marks.marked("farm-of-test-redis")
    assert str(server.port) in found.cmdline()


def test_a_host_appends_reports_and_reads_none(server: Server) -> None:
    with client(server.hosts["gpu-01"]) as host, client(server.control) as control:
        host.xadd("host:gpu-01:report", {"b": "{}"})
        assert control.xlen("host:gpu-01:report") == 1
        for forbidden in (
            lambda: host.xrange("host:gpu-01:report"),
            lambda: host.delete("host:gpu-01:report"),
            lambda: host.xadd("host:gpu-02:report", {"b": "{}"}),
            lambda: host.lpush("host:gpu-02:want", "x"),
            lambda: host.get("routes"),
            lambda: host.keys("*"),
            lambda: host.flushall(),
        ):
            with pytest.raises(redis.exceptions.NoPermissionError):
                forbidden()


def test_the_gateway_reads_routes_and_writes_none(server: Server) -> None:
    with client(server.gateway) as gateway, client(server.control) as control:
        control.set("routes", "{}")
        assert gateway.get("routes") == b"{}"
        with pytest.raises(redis.exceptions.NoPermissionError):
            gateway.set("routes", "mine")


def test_nobody_without_a_password(server: Server) -> None:
    with client(f"redis://127.0.0.1:{server.port}/0") as nobody, pytest.raises(redis.exceptions.AuthenticationError):
        nobody.ping()


def test_passwords_are_kept_and_written_nowhere_but_their_private_files(server: Server, home: Home) -> None:
    again = redis_server.prepare(home, ["gpu-01", "gpu-02"], server.port)
    assert again == server
    password = server.control.split(":")[2].split("@")[0]
    assert password not in redis_server.acl_file(home).read_text()
    assert not any(password in word for word in redis_server.arguments(server, home))
    assert all(path.stat().st_mode & 0o077 == 0 for path in home.redis.iterdir() if path.is_file())


def test_a_given_address_is_used_as_it_is(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://somewhere/0")
    made = redis_server.prepare(home, ["gpu-01"], 1)
    assert (made.binary, made.control, made.hosts["gpu-01"]) == (None, "redis://somewhere/0", "redis://somewhere/0")


@pytest.mark.parametrize(
    ("says", "good"),
    [
        ("Redis server v=6.2.14 sha=0", False),
        ("Redis server v=7.0.15 sha=0", True),
        ("Valkey server v=7.2.4 sha=0", True),
        ("Valkey server v=9.1.2 sha=0", True),
        ("something else", False),
    ],
)
def test_the_floor_of_versions(tmp_path: Path, says: str, good: bool) -> None:
    binary = tmp_path / "server"
    binary.write_text(f"#!/bin/sh\necho '{says}'\n")
    binary.chmod(0o755)
    assert redis_server.good_enough(str(binary)) is good


def test_an_old_server_on_the_path_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=6.2.14'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert redis_server.good_enough(redis_server.choose_binary())


def test_it_says_so_when_the_server_does_not_start() -> None:
    port = free_port()
    looks: list[int] = []
    with pytest.raises(Problem, match="did not start"):
        redis_server.wait_answers(port, lambda: looks.append(1), limit_s=0.3)
    assert looks
