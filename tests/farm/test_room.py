"""Room on the running farm, for a waiting call and for one more copy (S05): who goes, who waits, who is told."""

from __future__ import annotations

import json

import pytest

from tests.farm.corner import HOST, Corner
from tests.farm.harness import Farm, wait_for
from tests.farm.person import Person
from tests.farm.plot import Plot
from tests.farm.streams import Caller, Crowd
from tests.farm.watcher import Watcher
from workers.simulator import faults

pytestmark = [pytest.mark.farm, pytest.mark.timeout(240)]

HOLD_S = 15  # of a plain call by default
AT_ONCE_S = HOLD_S / 2  # on a slow machine too: whoever waits in vain waits for all of it


@pytest.fixture
def corner(farm: Farm, watched: Watcher) -> Corner:
    made = Corner(farm, {"swap-a": 50, "swap-b": 50, "above": 90})
    farm.policy(min_loaded_s=1)
    return made


def test_two_idle_services_of_one_priority_swap_for_a_plain_call_inside_its_hold(corner: Corner) -> None:
    farm = corner.farm
    assert farm.ask("swap-a").status_code == 200
    corner.rest("swap-a")
    reply = farm.ask("swap-b")
    assert reply.status_code == 200, reply.text
    assert int(reply.headers["x-gongka-hold-ms"]) > 4000  # that it is within 15 s: tests/scenarios
    assert not farm.replicas("swap-a")

    # the same again with a load that is known to take 10 s: the plain caller need not wait for his 503
    farm.policy(hold_small_s=HOLD_S)
    wait_for("the gateway knows the hold", lambda: farm.routes()["services"]["swap-a"]["hold_cap_s"] == HOLD_S)
    corner.rest("swap-b")
    corner.learned("swap-a", 10.0)
    faults.set_fault(farm.home / "hosts" / HOST / "sim", "load_delay", "service:swap-a", seconds=6.0)
    refused = farm.ask("swap-a")
    assert refused.status_code == 503, refused.text
    assert refused.json()["error"]["code"] == "model_loading"
    assert refused.elapsed.total_seconds() < AT_ONCE_S
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
    assert refused.elapsed.total_seconds() < AT_ONCE_S


def test_a_call_of_higher_priority_waits_for_a_stream_and_never_cuts_it(corner: Corner) -> None:
    farm = corner.farm
    assert farm.ask("swap-a").status_code == 200
    stream = Caller(farm, "swap-a", max_tokens=500)
    wait_for("flowing", lambda: stream.flowing)
    above = Caller(farm, "above", max_tokens=5)
    wait_for("drains", lambda: farm.replicas("swap-a", "draining"), 30)
    assert stream.join().whole, stream.error
    assert above.join().whole, above.error


HOT, IDLE = "s05-hot", "s05-idle"
HOSTS = ("gpu-03", "gpu-04")
#: Only one of them fits on a card.
WAY = {
    IDLE: {"weights_mib": 2000, "kv_cap_mib": 9216, "headroom_mib": 512, "profile": "online", "min_replicas": 0},
    HOT: {"weights_mib": 2000, "kv_cap_mib": 9216, "headroom_mib": 512, "profile": "online", "tier": "hot"}
    | {"max_replicas": 2, "max_num_seqs": 4},
}
CALLERS, TOKENS = 7, 30  # at once, of which a copy runs four; an answer of about two seconds
SLOW = 4


@pytest.fixture
def way(farm: Farm, watched: Watcher) -> Plot:
    """Two cards: the hot one on one of them, on the other one that nobody calls any more."""
    plot = Plot(farm, "way", list(HOSTS), WAY)
    sims = [farm.home / "hosts" / host / "sim" for host in HOSTS]
    wait_for("the hot one is ready", lambda: farm.replicas(HOT), 60)
    assert farm.ask(IDLE).status_code == 200
    for sim in sims:
        faults.set_fault(sim, "slow", f"service:{HOT}", factor=SLOW)
    return plot


def decided(farm: Farm, service: str) -> list[tuple[str, str, str, dict[str, object]]]:
    """(verb, reason, refusal, numbers), oldest first."""
    query = (
        "select d.verb, d.reason, d.refusal, d.numbers from journal_decision d"
        " join catalog_service s on s.id = d.service_id where s.name = ? order by d.id"
    )
    return [(*row[:3], json.loads(row[3])) for row in farm.rows(query, service)]


def went(farm: Farm) -> list[tuple[str, str, str, dict[str, object]]]:
    """What was done about the idle one since it was loaded."""
    return [row for row in decided(farm, IDLE) if not row[2] and row[0] != "start"]


def first_s(calls: list[Caller]) -> list[float]:
    return [call.first_token_s or 0.0 for call in calls]


def test_s05_an_idle_one_makes_way_for_a_hot_one_that_cannot_grow_and_its_latency_returns(way: Plot) -> None:
    farm = way.farm
    farm.policy(scale_queue_calls=2, min_loaded_s=1)
    assert {card for _, _, (card,) in farm.replicas(HOT) + farm.replicas(IDLE)} == set(way.uuids)
    with Crowd(farm, HOT, CALLERS, TOKENS) as crowd:
        wait_for("it is slow", lambda: [s for s in first_s(crowd.calls) if s > 1.0], 60)
        wait_for("the idle one is told", lambda: went(farm), 60)
        wait_for("and another copy is there", lambda: len(farm.replicas(HOT)) == 2, 90)
        assert not farm.replicas(IDLE)
        began = len(crowd.calls) + CALLERS
        wait_for("latency returns", lambda: max([9.0, *first_s(crowd.calls[began:])][-CALLERS:]) < 0.8, 90)
    assert [call.error for call in crowd.calls if not call.whole] == []

    assert [row[:2] for row in went(farm)] == [("drain", "room"), ("drain", "room"), ("stop", "room")]
    announced = went(farm)[0][3]
    assert announced["room_for"] == HOT
    assert "not_before" in announced
    more = [row[2] for row in decided(farm, HOT) if row[:2] in (("start", "queue"), ("start", "p99"))]
    assert more[0] == "not_now", "it waited for the room"
    assert "" in more, "and had it"
    operator = Person(farm, "operator")
    story = operator.text(f"/timeline/?service={HOT}")
    assert f"让给{HOT}" in story
    assert f"{IDLE} 摘流" in story
    operator.close()
