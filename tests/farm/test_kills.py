"""kill -9 of each kind of process while streams and a hold run: what is not on the killed part does not notice.

Every test ends with the farm whole again within 60 s, counts at zero, one engine a row (fixture `watched`).
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
import redis

from tests.farm.cold import cold
from tests.farm.harness import Farm, wait_for
from tests.farm.streams import Caller
from tests.farm.watcher import Watcher

pytestmark = [pytest.mark.farm, pytest.mark.timeout(240)]

TOKENS = 900  # seconds of a stream on any card, more than a hold told, a kill and its first consequences take


@pytest.fixture
def newcomer(farm: Farm, watched: Watcher, request: pytest.FixtureRequest) -> str:
    """A service that nobody called yet; made before the streams, which shall still flow when it has loaded."""
    return cold(farm, request.param)


def like(service: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("newcomer", [service], indirect=True)


@pytest.fixture
def streams(farm: Farm, watched: Watcher, newcomer: str) -> Iterator[list[Caller]]:
    """A long stream on each hot service, all of them flowing."""
    callers = [Caller(farm, name, max_tokens=TOKENS) for name in sorted(farm.ready["hot"])]
    wait_for("all streams flowing", lambda: all(caller.flowing for caller in callers))
    yield callers
    for caller in callers:
        caller.join()


def held(farm: Farm, name: str) -> Caller:
    """A caller of a service that nobody called before: it waits, and is told so."""
    caller = Caller(farm, name, max_tokens=5)
    wait_for("the hold is told", lambda: caller.comments)
    assert caller.comments[0].startswith(": gongka loading")
    return caller


def host_of(farm: Farm, service: str) -> set[str]:
    return {host for _, host, _ in farm.replicas(service)}


@like("contract-review")
def test_web(farm: Farm, streams: list[Caller], newcomer: str) -> None:
    waiting = held(farm, newcomer)
    old = farm.kill("web")
    assert all(caller.join().whole for caller in streams)
    assert waiting.join().whole
    wait_for("web is back", lambda: [p for p in farm.processes("web") if p.pid != old])


@like("meeting-minutes")
def test_control(farm: Farm, streams: list[Caller], newcomer: str) -> None:
    """A hold that begins while nobody plans is served once somebody does."""
    token = farm.rows("select token from jobs_lease")[0][0]
    farm.kill("control")
    waiting = held(farm, newcomer)
    assert all(caller.join().whole for caller in streams)
    assert waiting.join().whole
    assert farm.rows("select token from jobs_lease")[0][0] > token


@like("text-screen")
def test_jobs(farm: Farm, streams: list[Caller], newcomer: str) -> None:
    """A job left behind is taken again and ends well."""
    said = farm.django(
        "from console.journal.models import Decision\nfrom console.jobs.models import Job\n"
        "from django.db import connection\nfrom django.utils import timezone\nfrom datetime import timedelta\n"
        "one = Decision.objects.create(at=timezone.now() - timedelta(400), verb='start', reason='hold')\n"
        "same = ', '.join(f.column for f in Decision._meta.concrete_fields if not f.primary_key)\n"
        "many = 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)'\n"
        "copy = f'insert into journal_decision ({same}) {many} select {same} from journal_decision, n where id = %s'\n"
        "connection.cursor().execute(copy, [one.pk])\n"
        "print(Job.objects.create(kind='prune').pk)"
    )
    job = int(said.split()[-1])
    row = "select 1 from jobs_job where id = ?"
    wait_for("the job runs", lambda: farm.rows(f"{row} and state = 'running' and progress < 0.9", job), 30)
    waiting = held(farm, newcomer)
    for process in farm.processes("jobs"):
        process.kill()
    # the lease of half a minute runs out by itself in production; here its end is moved forward
    farm.django(
        "from console.jobs.models import Job\nfrom django.utils import timezone\n"
        f"Job.objects.filter(pk={job}).update(lease_until=timezone.now())"
    )
    wait_for("the job is done", lambda: farm.rows(f"{row} and state = 'done' and tries = 2", job), 60)
    assert farm.rows("select count(*) from journal_decision where at < datetime('now', '-399 days')") == [(0,)]
    assert all(caller.join().whole for caller in streams)
    assert waiting.join().whole


@like("process-helper")
def test_agent(farm: Farm, streams: list[Caller], newcomer: str) -> None:
    """Its engines and its door go on; the next life adopts them."""
    host = next(iter(host_of(farm, streams[0].service)))
    engines = {p.pid for p in farm.processes("engine", GONGKA_HOST=host)}
    doors = {p.pid for p in farm.processes("door", GONGKA_HOST=host)}
    boot = farm.rows("select boot from fleet_host where name = ?", host)
    assert engines
    waiting = held(farm, newcomer)
    farm.kill(f"agent-{host}")
    wait_for("a new life reports", lambda: farm.rows("select boot from fleet_host where name = ?", host) != boot)
    assert all(caller.join().whole for caller in streams)
    assert waiting.join().whole
    assert {p.pid for p in farm.processes("engine", GONGKA_HOST=host)} >= engines
    assert {p.pid for p in farm.processes("door", GONGKA_HOST=host)} == doors


@like("fund-qa")
def test_door(farm: Farm, streams: list[Caller], newcomer: str) -> None:
    """Streams through it are ended with an error that says so; all others are whole; callers come back at once."""
    service = streams[0].service
    hosts = host_of(farm, service)
    host = next(iter(hosts))
    waiting = held(farm, newcomer)
    farm.kill("door", GONGKA_HOST=host)
    through = [caller for caller in streams if host in host_of(farm, caller.service)]
    for caller in streams:
        caller.join()
        assert caller.whole or (caller in through and caller.error), (caller.service, caller.error)
    assert any(not caller.whole for caller in through)
    assert all(caller.error == "drained" for caller in through if not caller.whole)
    wait_for("the door is back", lambda: farm.processes("door", GONGKA_HOST=host), 10)
    wait_for("its callers are answered", lambda: farm.ask(service).status_code == 200)
    assert waiting.join().whole


@like("official-writer")
def test_engine(farm: Farm, streams: list[Caller], newcomer: str) -> None:
    """Its own streams get an error in-band, and a new engine takes its place."""
    service = streams[0].service
    replica = farm.replicas(service)[0][0]
    waiting = held(farm, newcomer)
    old = farm.kill("engine", GONGKA_REPLICA=str(replica))
    killed = streams[0].join()
    assert killed.error == "drained"
    assert all(caller.join().whole for caller in streams[1:])
    assert waiting.join().whole
    reply = farm.ask(service, timeout_s=90)
    assert reply.status_code in (200, 503), reply.text
    farm.converge(60)
    assert old not in {p.pid for p in farm.processes("engine")}
    assert farm.ask(service).status_code == 200


@like("product-copy")
def test_gateway(farm: Farm, watched: Watcher, newcomer: str) -> None:
    """Its counts vanish, its records do not: every call before and after is metered once."""
    name = sorted(farm.ready["hot"])[0]
    before = counted_calls(farm, name)
    for _ in range(10):
        assert farm.ask(name).status_code == 200
    callers = [Caller(farm, service, max_tokens=TOKENS) for service in sorted(farm.ready["hot"])]
    wait_for("all streams flowing", lambda: all(caller.flowing for caller in callers))
    callers.append(held(farm, newcomer))
    farm.kill("gateway")
    assert not any(caller.join().whole for caller in callers)
    wait_for("the gateway is back", lambda: gateway_answers(farm, name), 30)
    # the stream that was cut with its gateway wrote no record: it died with the memory it lived in
    wait_for("11 calls counted", lambda: calls(farm, name) - before >= 11, 30)
    assert counted_calls(farm, name) - before == 11


@like("route-qa")
def test_redis(farm: Farm, streams: list[Caller], newcomer: str) -> None:
    """It comes back empty, and nobody's stream knew."""
    waiting = held(farm, newcomer)
    farm.kill("redis")
    assert all(caller.join().whole for caller in streams)
    assert waiting.join().whole


def calls(farm: Farm, service: str) -> int:
    found: int = farm.rows("select coalesce(sum(calls), 0) from usage_hourlycalls where service = ?", service)[0][0]
    return found


def counted_calls(farm: Farm, service: str) -> int:
    """Calls so far, once every record that is on its way is counted."""
    with redis.Redis.from_url(farm.ready["redis"], protocol=2) as client:
        wait_for("all records counted", lambda: client.xlen("usage") == 0, 30)
    return calls(farm, service)


def gateway_answers(farm: Farm, service: str) -> bool:
    try:
        return farm.ask(service).status_code == 200
    except httpx.ConnectError:
        return False
