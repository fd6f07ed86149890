"""The agent and Redis: what its user may do is enough and no more, an outage passes, secrets stay out of logs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.host.harness import TOKEN, HostHarness, RedisServer, redis_server, until
from workers.messages import MAX_REPORT_BYTES, encode


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """A server that a test may kill."""
    with redis_server(["lone"]) as running:
        yield running


@pytest.fixture
def lone(own_server: RedisServer) -> Iterator[HostHarness]:
    with tempfile.TemporaryDirectory(prefix="gk-") as folder:
        one = HostHarness(own_server, "lone", Path(folder))
        try:
            one.start_agent()
            yield one
        finally:
            one.close()


def test_its_rights_suffice_over_a_whole_life(lone: HostHarness) -> None:
    lone.control.client.acl_log_reset()
    lone.want(1, "ready")
    lone.until_phase(1, "ready")
    lone.kill_agent()
    lone.start_agent()
    lone.want(1, "stopped", force=True)
    lone.until_phase(1, "stopped")
    assert lone.stop_agent() == 0
    refused = {(one["reason"], one["object"]) for one in lone.control.client.acl_log()}
    assert refused <= {("command", "client|setinfo")}  # redis-py's name tag, which is optional
    assert {key.decode() for key in lone.control.client.keys("host:*")} == {"host:lone:report"}


def test_its_user_reaches_nothing_else(lone: HostHarness) -> None:
    with redis.Redis.from_url(lone.server.url("lone")) as client:
        refused = [
            ("XRANGE", "host:lone:report", "-", "+"),
            ("DEL", "host:lone:report"),
            ("XADD", "host:other:report", "*", "b", "x"),
            ("LPUSH", "host:other:want", "x"),
            ("GET", "routes"),
            ("KEYS", "*"),
            ("FLUSHALL",),
        ]
        for words in refused:
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*words)


def test_redis_may_die_and_come_back(lone: HostHarness) -> None:
    lone.want(1, "ready")
    lone.until_phase(1, "ready")
    pid = lone.processes(1)[0].pid
    assert lone.agent is not None
    lone.server.kill()
    assert lone.call(1).status_code == 200, "callers do not notice"
    lone.server.start()
    until(lambda: lone.control.report(), "reports again")
    assert lone.agent.poll() is None
    until(lambda: lone.say_again() or lone.see(1), "its replica is still there")
    lone.want(1, "asleep")
    lone.until_phase(1, "asleep")
    assert lone.processes(1)[0].pid == pid


def test_a_report_is_whole_and_small(lone: HostHarness) -> None:
    report = until(lambda: (now := lone.control.report()) and now.cards_at and now.door_ok and now, "cards and door")
    assert report.host == "lone"
    assert report.door_url == lone.door
    assert report.generation == 0
    assert report.memory_mib > 0
    assert [card.uuid for card in report.cards] == lone.cards
    assert all(card.free_mib for card in report.cards)
    assert len(encode(report)) < MAX_REPORT_BYTES / 50
    seqs = [one.seq for one in lone.control.reports()]
    assert seqs == sorted(set(seqs))


def test_nonsense_on_its_queue_ends_nothing(lone: HostHarness) -> None:
    with lone.control.app.producer_pool.acquire(block=True) as producer:
        for arguments in ({}, {"host": 5}, {"host": "lone", "generation": "x", "at": 1.0, "replicas": [{}]}):
            lone.control.app.send_task("want", kwargs=arguments, queue=lone.control._queue, producer=producer)
    other = lone.control.host
    lone.control.host = "other"
    lone.send(10**9)
    lone.control.host = other
    lone.want(1, "ready")
    lone.until_phase(1, "ready")


def test_logs_hold_no_secret_and_no_words_of_callers(lone: HostHarness) -> None:
    lone.want(1, "ready")
    lone.until_phase(1, "ready")
    until(lambda: "1" in lone.door_map(), "routed")
    assert lone.call(1, "这是一句秘密的话").status_code == 200
    lone.stop_agent()
    texts = "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in (lone.folder / "agent.log", lone.host_folder / "door.log", lone.engine_folder(1) / "log")
    )
    assert TOKEN not in texts
    assert "lone-password" not in texts
    assert "秘密" not in texts
    for process in lone.processes():
        assert TOKEN not in " ".join(process.cmdline())
        assert "lone-password" not in " ".join(process.environ().values())
