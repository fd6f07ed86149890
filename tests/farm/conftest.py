"""One farm for all tests of a session: each test disturbs it, and leaves it whole."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.farm.harness import Farm
from tests.farm.watcher import Watcher


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that may take longest begin first: farms beside each other are then done at about the same time."""
    items.sort(key=lambda item: -limit_s(item) if item.get_closest_marker("farm") else 0)


def limit_s(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0


@pytest.fixture(scope="session")
def session_farm() -> Iterator[Farm]:
    farm = Farm.start()
    yield farm
    left = farm.stop()
    assert left == 0, f"{left} processes left after an orderly stop"
    shutil.rmtree(farm.home)


@pytest.fixture
def farm(session_farm: Farm) -> Farm:
    session_farm.converge(90)
    return session_farm


@pytest.fixture
def watched(farm: Farm) -> Iterator[Watcher]:
    """Invariants are looked at during the test, and after it once the farm is whole again."""
    with Watcher(farm) as watcher:
        yield watcher
        farm.converge(60)
        watcher.check_rest()
