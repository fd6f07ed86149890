"""Room for a waiting call, on the running farm: who goes, who waits, and who is told at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.farm.corner import HOST, Corner
from tests.farm.harness import Farm, wait_for
from tests.farm.streams import Caller
from tests.farm.watcher import Watcher
from workers.simulator import faults

pytestmark = [pytest.mark.farm, pytest.mark.timeout(240)]


@pytest.fixture
def corner(farm: Farm, watched: Watcher) -> Iterator[Corner]:
    made = Corner(farm, {"swap-a": 50, "swap-b": 50, "above": 90})
    farm.policy(min_loaded_s=1)
    yield made
    sim = farm.home / "hosts" / HOST / "sim"
    faults.clear_faults(sim)
    made.clear()


def test_two_idle_services_of_one_priority_swap_for_a_plain_call_inside_its_hold(corner: Corner) -> None:
    farm = corner.farm
    assert farm.ask("swap-a").status_code == 200
    corner.rest("swap-a")
    reply = farm.ask("swap-b")
    assert reply.status_code == 200, reply.text
    assert 4000 < int(reply.headers["x-gongka-hold-ms"]) <= 15000
    assert not farm.replicas("swap-a")

    # the same again with a load that is known to take 10 s: the plain caller need not wait for his 503
    corner.rest("swap-b")
    corner.learned("swap-a", 10.0)
    faults.set_fault(farm.home / "hosts" / HOST / "sim", "load_delay", "service:swap-a", seconds=6.0)
    refused = farm.ask("swap-a")
    assert refused.status_code == 503, refused.text
    assert refused.json()["error"]["code"] == "model_loading"
    assert refused.elapsed.total_seconds() < 3
    assert 10 <= int(refused.headers["retry-after"]) <= 30
    stream = Caller(farm, "swap-a", max_tokens=5).join()
    assert stream.whole, stream.error
    assert stream.comments


def test_who_waits_is_told_when_the_planner_refuses(corner: Corner) -> None:
    """A hold that began with hope ends with the reason as soon as there is none."""
    farm = corner.farm
    sim = farm.home / "hosts" / HOST / "sim"
    faults.set_fault(sim, "load_crash", "service:swap-a", at_pct=60, text="ValueError: bad weights file")
    stream = Caller(farm, "swap-a", max_tokens=5)
    wait_for("told that it loads", lambda: stream.comments)
    farm.django(
        f"from console.fleet.models import Card\nCard.objects.filter(uuid='{corner.card}').update(cordoned=True)"
    )
    stream.join(60)
    assert stream.error in ("no_capacity", "load_failed")
    assert stream.done, "a clean end"
    refused = farm.ask("swap-b")
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "no_capacity"
    assert refused.elapsed.total_seconds() < 3


def test_a_call_of_higher_priority_waits_for_a_stream_and_never_cuts_it(corner: Corner) -> None:
    farm = corner.farm
    assert farm.ask("swap-a").status_code == 200
    stream = Caller(farm, "swap-a", max_tokens=500)
    wait_for("flowing", lambda: stream.flowing)
    above = Caller(farm, "above", max_tokens=5)
    wait_for("drains", lambda: farm.replicas("swap-a", "draining"), 30)
    assert stream.join().whole, stream.error
    assert above.join().whole, above.error
