from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.door import Engine
from tests.gateway.farm import Farm, migrated, until


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return migrated(tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="session")
def shared_farm(tmp_path_factory: pytest.TempPathFactory, empty: Path) -> Iterator[Farm]:
    limits = {"stall_s": 1.0, "line_every_s": 0.3, "last_used_s": 0.5, "held_per_service": 20, "breaker_open_s": 0.3}
    farm = Farm(tmp_path_factory.mktemp("farm"), empty, limits)
    yield farm
    farm.close()


@pytest.fixture
def farm(shared_farm: Farm) -> Farm:
    """The running farm, with no service and no engine left from the test before."""
    shared_farm.door.engines = {1: Engine(), 2: Engine(), 3: Engine()}
    version = shared_farm.publish(**dict.fromkeys([name.replace("-", "_") for name in shared_farm.services]))
    until(lambda: shared_farm.registration()["routes_version"] >= version)  # its breaker forgets them too
    return shared_farm


@pytest.fixture
def own_farm(tmp_path: Path, empty: Path) -> Iterator[Callable[..., Farm]]:
    """For tests that break something."""
    farms: list[Farm] = []

    def make(**limits: Any) -> Farm:
        farm = Farm(tmp_path, empty, limits)
        farm.door.engines = {1: Engine(), 2: Engine(), 3: Engine()}
        farms.append(farm)
        return farm

    yield make
    for farm in farms:
        farm.close()
