from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.simulator.harness import Engine, SimHost


@pytest.fixture
def host() -> Iterator[SimHost]:
    made = SimHost()
    yield made
    made.close()


@pytest.fixture(scope="module")
def warm() -> Iterator[Engine]:
    """One ready engine for all tests of a module that leave it as they found it."""
    made = SimHost()
    yield made.start("--max-num-queued-reqs", "64").ready()
    made.close()
