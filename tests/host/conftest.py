from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.host.harness import HostHarness, RedisServer, redis_server

#: More than a process asks for, whichever files it is given.
HOSTS = [f"h{number}" for number in range(400)]


@pytest.fixture(scope="session")
def server() -> Iterator[RedisServer]:
    with redis_server(HOSTS) as running:
        yield running


@pytest.fixture(scope="session")
def names() -> Iterator[str]:
    """A fresh host name for each test: no test sees another's stream."""
    return iter(HOSTS)


@contextmanager
def hosts(server: RedisServer, names: Iterator[str]) -> Iterator[Callable[..., HostHarness]]:
    made: list[HostHarness] = []
    with tempfile.TemporaryDirectory(prefix="gk-") as folder:  # short: a unix socket's address has 107 bytes

        def make(**loading: float) -> HostHarness:
            name = next(names)
            place = Path(folder) / name
            place.mkdir()
            made.append(HostHarness(server, name, place, **loading))
            return made[-1]

        try:
            yield make
        finally:
            for one in made:
                one.close()


@pytest.fixture
def make_host(server: RedisServer, names: Iterator[str]) -> Iterator[Callable[..., HostHarness]]:
    with hosts(server, names) as make:
        yield make


@pytest.fixture
def host(make_host: Callable[..., HostHarness]) -> HostHarness:
    one = make_host()
    one.start_agent()
    return one


@pytest.fixture(scope="module")
def standing(server: RedisServer, names: Iterator[str]) -> Iterator[HostHarness]:
    """One host with engine 1 ready and routed, for all tests of a module that leave it as they found it."""
    with hosts(server, names) as make:
        one = make()
        one.start_agent()
        one.serve()
        yield one
