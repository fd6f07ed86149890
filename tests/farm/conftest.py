"""One farm for all tests of a session: each test disturbs it, and leaves it whole."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator

import pytest

from tests.farm.harness import PATIENT, Farm
from tests.farm.tale import tale
from tests.farm.tidy import found, tidy
from tests.farm.watcher import Watcher

FARM = pytest.StashKey[Farm]()
#: A limit is for what hangs. A machine three times slower is none: what waits has limits of its own.
SLOW = 2.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that may take longest begin first: farms beside each other are then done at about the same time."""
    items.sort(key=lambda item: -limit_s(item) if item.get_closest_marker("farm") else 0)
    for item in items:
        if limit := limit_s(item):  # by signal: the test fails and is explained, and the farm lives for the next one
            item.add_marker(pytest.mark.timeout(limit * SLOW, method="signal"), append=False)


def limit_s(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure is told with what the farm knows of it."""
    report = yield
    if report.failed and (farm := item.session.stash.get(FARM, None)) is not None:
        report.sections.append(("the farm", tale(farm)))
    return report


@pytest.fixture(scope="session")
def session_farm(request: pytest.FixtureRequest) -> Iterator[Farm]:
    farm = request.session.stash[FARM] = Farm.start()
    farm.policy(**PATIENT)
    farm.found = found(farm)
    yield farm
    del request.session.stash[FARM]
    left = farm.stop()
    assert left == 0, f"{left} processes left after an orderly stop"
    shutil.rmtree(farm.home)


@pytest.fixture
def farm(session_farm: Farm) -> Farm:
    """As it was started, whatever the test before left or broke."""
    tidy(session_farm)
    session_farm.converge(90)
    return session_farm


@pytest.fixture
def watched(farm: Farm) -> Iterator[Watcher]:
    """Invariants are looked at during the test, and after it once the farm is whole again."""
    with Watcher(farm) as watcher:
        yield watcher
        tidy(farm)
        farm.converge(60)
        watcher.check_rest()
