"""Control's and web's only door to Redis: keys, framing, and who may touch which key (docs/wire.md)."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec
import redis
from django.conf import settings

REPORTS_KEPT = 60  # reports of one host; the rest is older than anybody asks for
REPORT_MAX_BYTES = 256 * 1024
GATEWAY_EXPIRES_S = 5
LATENCIES_FRESH_S = 30  # three slots
SLOTS_AT_ONCE = 4  # of one gateway: a new leader reads ten minutes of them over some rounds
TABLE_YOUNG_S = 10  # a registration table younger than this is unknown, not empty


@dataclass(frozen=True, slots=True)
class ServiceCount:
    """What one gateway says of one service."""

    held: int = 0
    held_streams: int = 0
    held_since: float | None = None
    last_call_at: float | None = None
    expected_until: float | None = None  # callers that were told to come back are waited for until then
    queued: int = 0  # callers that wait for tokens in flight at ready replicas to end, not among the held
    limited: int = 0  # and those that wait for batch calls in flight to end


@dataclass(frozen=True, slots=True)
class Registration:
    """One live gateway: which routes it acts on and what it has in hand."""

    name: str
    boot: str
    at: float
    routes_version: int
    in_flight: dict[str, int] = field(default_factory=dict)
    services: dict[str, ServiceCount] = field(default_factory=dict)
    reached: dict[str, float] = field(default_factory=dict)  # host → when one of its engines last answered this gateway


@dataclass(frozen=True, slots=True)
class ServiceLatency:
    """`p99_ms` of the service's metric, None below enough `samples`."""

    p99_ms: float | None = None
    samples: int = 0


@dataclass(frozen=True, slots=True)
class ReplicaLatency:
    """The same of one replica; `disturbance_pct`: its p99 gap between chunks against the 5 min before."""

    p99_ms: float | None = None
    disturbance_pct: float | None = None


@dataclass(frozen=True, slots=True)
class Latencies:
    """What control last made of all gateways' slots: by service name, by replica id."""

    at: float = 0.0
    services: dict[str, ServiceLatency] = field(default_factory=dict)
    replicas: dict[int, ReplicaLatency] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gateways:
    """All live gateways; `known` is false while the table is too young, or Redis away, to mean anything."""

    known: bool
    gateways: tuple[Registration, ...] = ()
    latencies: Latencies = Latencies()


UNKNOWN = Gateways(known=False)


@cache
def client() -> redis.Redis:
    """The process's connection pool. Every call on it may raise `redis.RedisError`."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        protocol=2,  # redis-py answers XREAD as list or dict by protocol: one shape here
        socket_timeout=4,  # longer than the longest BLOCK
        socket_connect_timeout=2,
        health_check_interval=10,
    )


def nudge(service: str = "") -> None:
    """Ask control to look now. Losing it costs one tick."""
    client().xadd("nudge", {"service": service}, maxlen=1000, approximate=True)


def hurry(service: str = "") -> bool:
    """A nudge that may get lost: False when Redis is away, and control looks a second later by itself."""
    try:
        nudge(service)
    except redis.RedisError:
        return False
    return True


class Inbox:
    """Cursors of the streams control reads. Made anew on every reconnect: entry ids may have started again."""

    def __init__(self) -> None:
        self.reports: dict[str, str] = {}
        last: Any = client().xrevrange("nudge", count=1)
        self.nudge = last[0][0].decode() if last else "0-0"  # not `$`: nudges between two reads would be lost

    def wait_nudge(self, seconds: float) -> bool:
        """True as soon as somebody asks; False after `seconds`."""
        block = max(1, int(seconds * 1000))
        found: Any = client().xread({"nudge": self.nudge}, block=min(block, 3000), count=1000)
        if found:
            self.nudge = found[0][1][-1][0].decode()
        return bool(found)

    def read_reports(self, hosts: Iterable[str]) -> dict[str, tuple[float, bytes]]:
        """Newest new report of each host: (Redis's time of entry, body). Oversized bodies are left out."""
        streams: dict[Any, Any] = {f"host:{name}:report": self.reports.get(name, "0-0") for name in hosts}
        if not streams:
            return {}
        found: Any = client().xread(streams)
        result: dict[str, tuple[float, bytes]] = {}
        pipe = client().pipeline(transaction=False)
        for key, entries in found:
            name = key.decode().split(":")[1]
            entry_id, fields = entries[-1]
            self.reports[name] = entry_id.decode()
            body = fields.get(b"b", b"")
            if len(body) <= REPORT_MAX_BYTES:
                result[name] = (int(entry_id.split(b"-")[0]) / 1000, body)
            pipe.xtrim(key, maxlen=REPORTS_KEPT, approximate=True)
        if found:
            pipe.execute()
        return result


def read_gateways() -> Gateways:
    """The registration table, with its age in mind."""
    now = time.time()
    try:
        pipe = client().pipeline(transaction=False)
        pipe.set("gateways:since", now, nx=True)
        pipe.get("gateways:since")
        pipe.zremrangebyscore("gateways", 0, now - 60)
        pipe.zrange("gateways", 0, -1)
        pipe.get("latencies")
        _, since, _, names, latencies = pipe.execute()
        bodies: Any = client().mget([f"gateway:{name.decode()}" for name in names]) if names else []
    except redis.RedisError:
        return UNKNOWN
    live = []
    for body in bodies:
        if body is not None:
            try:
                live.append(msgspec.json.decode(body, type=Registration))
            except msgspec.MsgspecError:
                return UNKNOWN  # a gateway we cannot read may hold anything
    return Gateways(now - float(since) >= TABLE_YOUNG_S, tuple(live), _latencies(latencies, now))


def _latencies(body: bytes | None, now: float) -> Latencies:
    """None of them once they are old: unknown is better than what was."""
    found = msgspec.msgpack.decode(body, type=Latencies) if body else Latencies()
    return found if now - found.at <= LATENCIES_FRESH_S else Latencies()


def publish_latencies(found: Latencies) -> None:
    """For everybody who looks at the farm, control itself included."""
    client().set("latencies", msgspec.msgpack.encode(found), ex=LATENCIES_FRESH_S)


def read_slots(cursors: dict[str, str], gateways: Iterable[str]) -> list[tuple[str, bytes]]:
    """(gateway, body) of the slots after each gateway's cursor, which move on; a few of each, the next read goes on."""
    streams: dict[Any, Any] = {f"gateway:{name}:slots": cursors.get(name, "0-0") for name in gateways}
    found: Any = client().xread(streams, count=SLOTS_AT_ONCE) if streams else []
    result = []
    for key, entries in found:
        name = key.decode().removeprefix("gateway:").removesuffix(":slots")
        cursors[name] = entries[-1][0].decode()
        result += [(name, fields.get(b"b", b"")) for _, fields in entries]
    return result


_PUBLISH = """
local old = redis.call('get', KEYS[2])
if old and tonumber(old) >= tonumber(ARGV[1]) then return 0 end
redis.call('set', KEYS[1], ARGV[2])
redis.call('set', KEYS[2], ARGV[1])
redis.call('xadd', KEYS[3], 'MAXLEN', '~', 10, '*', 'rev', ARGV[1])
return 1
"""


def publish_routes(rev: int, body: bytes) -> bool:
    """Replace the routes blob unless a newer revision is there: a holder that woke from a freeze changes nothing."""
    return bool(client().eval(_PUBLISH, 3, "routes", "routes:rev", "routes:bell", str(rev), body))


def routes_absent() -> bool:
    return not client().exists("routes")


def drop_wants(hosts: Iterable[str]) -> None:
    """Nothing waits for a silent host: its queue would grow by one message a second."""
    if keys := [f"host:{name}:want" for name in hosts]:
        client().delete(*keys)


def read_usage(cursor: str, count: int = 2000) -> list[tuple[str, bytes]]:
    """Usage records after `cursor`, oldest first: (entry id, body)."""
    found: Any = client().xread({"usage": cursor}, count=count)
    entries = found[0][1] if found else []
    return [(entry_id.decode(), fields.get(b"b", b"")) for entry_id, fields in entries]


def acknowledge_usage(seqs: Mapping[str, int], upto: str | None) -> None:
    """Tell gateways what is stored, and drop the entries read."""
    pipe = client().pipeline(transaction=False)
    for gateway, seq in seqs.items():
        pipe.set(f"usage:ack:{gateway}", seq)
    if upto is not None:
        milliseconds, number = upto.split("-")
        pipe.xtrim("usage", minid=f"{milliseconds}-{int(number) + 1}", approximate=False)
    pipe.execute()


def acl_lines(hosts: Mapping[str, str], control_password: str, gateway_password: str) -> str:
    """The aclfile: every user with the least it needs; passwords only as their SHA-256.

    A host's user reaches its own queue keys and may append to, not read or trim, its own report stream:
    a taken-over host owns nothing but itself.
    """
    lines = [
        "user default off",
        f"user control on #{_sha256(control_password)} allchannels allkeys +@all",
        f"user gateway on #{_sha256(gateway_password)} resetchannels -@all %R~routes %R~routes:* %R~usage:ack:*"
        " %W~nudge ~usage ~gateways ~gateway:* +hello +ping +client|setname +select +get +mget +set +del"
        " +expire +zadd +zrem +xadd +xread +xrevrange +multi +exec +discard",
    ]
    for name, password in sorted(hosts.items()):
        key = f"host:{name}"
        lines.append(
            f"user {key} on #{_sha256(password)} resetchannels -@all ~{key}:want* ~{key}:unacked*"
            " +hello +ping +client|setname +brpop +rpop +llen +lpush +rpush +hget +hset +hdel +zadd +zrem +zrange"
            " +set +get +del +watch +unwatch +multi +exec +discard +evalsha +script|load"
            f" (-@all +xadd %W~{key}:report)"
        )
    return "\n".join(lines) + "\n"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
