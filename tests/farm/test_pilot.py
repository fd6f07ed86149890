"""S23 on the running farm: a pool observes, one suggests and a person lets it act, and a pilot alone moves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.farm.cold import cold
from tests.farm.corner import Corner
from tests.farm.harness import Farm, wait_for
from tests.farm.person import Person
from tests.farm.watcher import Watcher

pytestmark = [pytest.mark.farm, pytest.mark.timeout(300)]


@pytest.fixture
def corner(farm: Farm, watched: Watcher) -> Corner:
    made = Corner(farm, {"swap-a": 50, "swap-b": 50})
    farm.policy(min_loaded_s=1)
    return made


@pytest.fixture
def operator(corner: Corner) -> Iterator[Person]:
    person = Person(corner.farm, "operator")
    yield person
    for pk, _ in pools(corner.farm, mode="enforce", other=True):
        person.press(f"/advice/pools/{pk}/mode", mode="enforce")
    person.close()


def pools(farm: Farm, *, mode: str, other: bool = False) -> list[tuple[int, str]]:
    """(id, name) of the pools in that mode, or in any other."""
    return farm.rows(f"select id, name from fleet_pool where mode {'<>' if other else '='} ? order by id", mode)


def turn(farm: Farm, operator: Person, pool: str, mode: str) -> None:
    ((pk,),) = farm.rows("select id from fleet_pool where name = ?", pool)
    operator.press(f"/advice/pools/{pk}/mode", mode=mode)


def advice(farm: Farm) -> list[tuple[int, str, str]]:
    """(id, service, what callers hear) of what stands in the corner."""
    query = (
        "select a.id, s.name, a.told from journal_advice a join catalog_service s on s.id = a.service_id"
        " join fleet_pool p on p.id = a.pool_id where p.name = 'corner' and a.closed_at is null"
    )
    return farm.rows(query)


def living(farm: Farm, pool: str) -> dict[int, str]:
    """Want of each copy that is on no card of the pool, by its id."""
    cards = {uuid for (uuid,) in farm.rows(
        "select c.uuid from fleet_card c join fleet_pool p on p.id = c.pool_id where p.name = ?", pool
    )}  # fmt: skip
    rows = farm.rows("select id, want, cards from catalog_replica where ended_at is null")
    return {pk: want for pk, want, on in rows if not cards & set(json.loads(on))}


def test_s23_a_pool_that_observes_moves_nothing_and_tells_so(corner: Corner, operator: Person) -> None:
    farm = corner.farm
    turn(farm, operator, "corner", "observe")
    wait_for("told so", lambda: farm.ask("swap-a").json().get("error", {}).get("code") == "not_managed", 20, 1.0)
    ((pk, name, told),) = advice(farm)
    assert (name, told) == ("swap-a", "not_managed")
    assert "只观察" in operator.text("/advice/")
    assert f"/advice/{pk}/approve" not in operator.page("/advice/")
    assert not farm.replicas("swap-a")


def test_s23_a_pool_that_suggests_takes_nothing_by_itself_and_does_it_once_a_person_has_approved(
    corner: Corner, operator: Person
) -> None:
    farm = corner.farm
    turn(farm, operator, "corner", "suggest")
    wait_for("what gives acts at once", lambda: farm.ask("swap-a").status_code == 200, 60, 1.0)
    corner.rest("swap-a")
    refused = farm.ask("swap-b")
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "awaiting_approval"
    ((pk, name, told),) = advice(farm)
    assert (name, told) == ("swap-a", "awaiting_approval")
    ((kept, _, _),) = farm.replicas("swap-a")
    page = operator.page("/advice/")
    assert f"/advice/{pk}/approve" in page
    assert "让给swap-b" in page
    assert "仍然需要才做" in operator.text(f"/advice/{pk}/approve")

    assert "已批" in operator.press(f"/advice/{pk}/approve")
    wait_for("the room is made, and who it was for is ready", lambda: farm.replicas("swap-b"), 60)
    assert not farm.replicas("swap-a")
    assert farm.ask("swap-b").status_code == 200
    assert farm.rows("select outcome, approved_by_id is not null from journal_advice where id = ?", pk) == [("done", 1)]
    assert farm.rows("select want, reason from catalog_replica where id = ?", kept) == [("stopped", "room")]
    assert advice(farm) == []
    asked = "select o.act, o.force, o.outcome from catalog_order o join catalog_service s on s.id = o.service_id"
    assert [row[:2] for row in farm.rows(f"{asked} where s.name = 'swap-b'")] == [("preload", 1)]
    wait_for(
        "what was asked for is there", lambda: all(row[2] for row in farm.rows(f"{asked} where s.name = 'swap-b'"))
    )
    acts = farm.rows("select username from audit_entry where act = 'advice-approve' and outcome = 'done'")
    assert acts[-1] == ("operator",)


def test_s23_beside_a_pilot_the_rest_moves_nothing_and_its_gain_is_told(corner: Corner, operator: Person) -> None:
    farm = corner.farm
    idle = cold(farm, "meeting-minutes")  # of the rest: loaded, then called by nobody
    assert farm.ask(idle).status_code == 200
    for _, name in pools(farm, mode="enforce"):
        if name != "corner":
            turn(farm, operator, name, "observe")
    rest = living(farm, "corner")
    farm.policy(idle_unload_s=5, grace_s=0, half_empty_pct=0)
    assert farm.ask("swap-a").status_code == 200
    wait_for("the pilot gives back what is idle", lambda: not farm.replicas("swap-a"), 60)
    query = (
        "select a.told from journal_advice a join catalog_service s on s.id = a.service_id"
        " where s.name = ? and a.reason = 'idle' and a.closed_at is null"
    )
    wait_for("what would be done is told", lambda: farm.rows(query, idle) == [("not_managed",)], 60)
    gain = operator.text("/advice/").partition("放手去做会怎样")[2]
    assert re.search(r"小卡共享池\s+观察\s+空闲已满时限 \d", gain), gain
    assert living(farm, "corner") == rest
    assert farm.replicas(idle)
