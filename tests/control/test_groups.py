"""A copy over four cards on a paper farm: one want, one engine, memory booked and given back on each of its cards."""

from __future__ import annotations

import pytest

from console import state
from console.board import rows as board
from console.catalog.models import Replica, Service
from console.fleet.models import Card
from scheduler.draft import Draft
from scheduler.memory import room_mib
from scheduler.policy import DEFAULT
from tests import factories
from tests.control.conftest import PaperFarm
from workers.control import wants


@pytest.fixture
def team(farm: PaperFarm) -> Service:
    factories.host("h1", cards=5)
    service = factories.service("team", cards_per_replica=4, tier="cold", kv_cap_mib=6144)
    farm.tick()
    return service


def called(farm: PaperFarm) -> Replica:
    farm.call("team")
    farm.until(lambda: farm.ready("team"))
    farm.held.clear()
    (row,) = farm.ready("team")
    return row


def free() -> list[int | None]:
    return list(Card.objects.order_by("index").values_list("free_mib", flat=True))


def test_one_replica_on_four_cards_of_the_host(farm: PaperFarm, team: Service) -> None:
    row = called(farm)
    assert len(set(row.cards)) == 4
    assert Replica.objects.count() == 1
    (engine,) = farm.hosts["h1"].engines.values()
    spec = engine.want.engine
    assert (spec.tp, engine.want.cards) == (4, row.cards)
    assert spec.weights_mib == 4 * team.weights_mib
    assert spec.fixed_mib == team.weights_mib + team.headroom_mib + DEFAULT.default_overhead_mib


def test_its_memory_is_booked_on_each_of_them(farm: PaperFarm, team: Service) -> None:
    row = called(farm)
    farm.tick()
    world = state.world(farm.now)
    draft = Draft(world, DEFAULT, farm.now)
    rooms = {card: room_mib(draft.book(card)) for card in world.cards}
    assert len({rooms[card] for card in row.cards}) == 1
    (other,) = set(world.cards) - set(row.cards)
    held = world.services["team"].claim.fixed_mib + row.kv_granted_mib
    assert rooms[other] - rooms[row.cards[0]] == held
    assert all(draft.book(card).external_mib == 0 for card in world.cards)


def test_kv_of_a_request_is_shared_among_its_cards(team: Service) -> None:
    per_call_mib = team.model.kv_bytes_per_token * DEFAULT.typical_tokens / 2**20 / 4
    spec = wants.engine(team, 300, DEFAULT)
    assert spec.max_num_seqs == min(team.max_num_seqs, int(300 / per_call_mib))
    whole = state.world(0.0).services["team"].one_request_mib
    assert whole == -(-team.max_model_len * team.model.kv_bytes_per_token // (4 * 2**20))


@pytest.mark.parametrize("lag", [0, 3])
def test_when_it_stops_each_card_gets_its_own_back(farm: PaperFarm, team: Service, lag: int) -> None:
    """None of it is taken for somebody else's, and none counts as free before two samples say so."""
    before = free()
    farm.hosts["h1"].lag = lag
    called(farm)
    farm.call("team")
    farm.held.clear()
    Replica.objects.update(want="stopped", want_since=state.moment(farm.now))
    factories.Host.objects.update(want_generation=99)
    farm.until(lambda: Replica.objects.filter(ended_at=None).count() == 0)
    farm.until(lambda: not Card.objects.exclude(release={}).exists(), within=30)
    assert free() == before
    assert all(
        Draft(state.world(farm.now), DEFAULT, farm.now).book(c).external_mib == 0 for c in state.world(farm.now).cards
    )


def test_a_start_that_fails_for_good_gives_up_all_of_its_cards(farm: PaperFarm, team: Service) -> None:
    farm.hosts["h1"].fail.add("team")
    farm.call("team")
    farm.until(lambda: Service.objects.get(name="team").failures, within=120)
    (failure,) = Service.objects.get(name="team").failures
    assert len({failure["card"], *failure["beside"]}) == 4
    known = state.world(farm.now).services["team"].failures[0]
    assert known.beside == tuple(failure["beside"])


def test_the_board_shows_it_on_each_card_as_the_same(farm: PaperFarm, team: Service) -> None:
    row = called(farm)
    seen = board.board(farm.now)
    on = {seen.names.cards[c.id].uuid: c.groups for c in seen.now.cards if c.groups}
    assert set(on) == set(row.cards)
    groups = [group for (group,) in on.values()]
    assert {(g.replica, g.tenant, g.service) for g in groups} == {(row.pk, team.tenant_id, team.pk)}


def test_the_hosts_inventory_says_which_cards_are_joined(farm: PaperFarm, team: Service) -> None:
    """From the sample to the planner."""
    from dataclasses import replace

    from workers.control import ingest
    from workers.messages import encode

    farm.now += 1
    report = farm.hosts["h1"].report(farm.now)
    joined = [replace(card, group=f"nv{card.index // 2}") for card in report.cards]
    ingest.ingest({"h1": (farm.now, encode(replace(report, cards=joined)))}, farm.now, DEFAULT)
    groups = {card.index: card.group for card in state.world(farm.now).cards.values()}
    assert groups == {0: "nv0", 1: "nv0", 2: "nv1", 3: "nv1", 4: "nv2"}
