"""S20: the primary's card dies; its host dies. The standby serves, the lost copy is rebuilt, nothing else moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.decision import Reason, Verb
from scheduler.hold import serves
from scheduler.world import Phase, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import POLICY, a_card, a_service, a_world

GIB = 1024


def a_pair(weights: int, hosts: int = 3, neighbours: int = 2) -> Farm:
    """A pair on two hosts of three, beside hot neighbours that nobody may disturb."""
    cards = [a_card(f"c{h}{i}", f"h{h}") for h in range(hosts) for i in range(2)]
    pair = a_service("pair", weights, 4 * GIB, tier=Tier.HOT, min_replicas=2, max_replicas=3)
    others = [a_service(f"n{i}", 6 * GIB, 2 * GIB, tier=Tier.HOT) for i in range(neighbours)]
    farm = Farm(a_world(*cards, pair, *others), load_s={"pair": 12.0})
    farm.until(lambda f: len(f.ready("pair")) == 2 and all(f.ready(o.name) for o in others))
    farm.step()
    return farm


def routed(farm: Farm, name: str) -> list[int]:
    return [r.id for r in farm.world.replicas.values() if r.service == name and serves(farm.world, POLICY, r, farm.now)]


def card_dies(farm: Farm, card: str) -> None:
    """Off the bus: its engines crash, its driver says nothing good of it any more."""
    cards = dict(farm.world.cards)
    cards[card] = replace(cards[card], healthy=False)
    farm.world = replace(farm.world, cards=cards)
    for replica in list(farm.world.replicas.values()):
        if card in replica.cards:
            farm.change(
                replica.id,
                phase=Phase.FAILED,
                failures_here=1,
                failed_at=farm.now,
                fault="device_error",
                since=farm.now,
            )


@pytest.mark.parametrize("weights", [8 * GIB, 20 * GIB, 50 * GIB])
def test_a_dead_card_is_unrouted_at_once_and_the_copy_rebuilt_within_its_load(weights):
    farm = a_pair(weights)
    lost, stays = farm.ready("pair")
    before = {r.id: r.cards for r in farm.world.replicas.values() if r.service != "pair"}
    card_dies(farm, lost.cards[0])
    assert routed(farm, "pair") == [stays.id], "the standby serves"
    took = farm.until(lambda f: len(f.ready("pair")) == 2)
    assert took <= 12 + 5 + 3
    assert {r.cards[0] for r in farm.ready("pair")}.isdisjoint({lost.cards[0]})
    assert len({farm.world.cards[r.cards[0]].host for r in farm.ready("pair")}) == 2
    assert {r.id: r.cards for r in farm.world.replicas.values() if r.service != "pair"} == before
    assert not [d for d in farm.did("pair", Verb.DRAIN)]


def test_nobody_starts_on_the_dead_card_again():
    farm = a_pair(8 * GIB)
    dead = farm.ready("pair")[0].cards[0]
    card_dies(farm, dead)
    farm.until(lambda f: len(f.ready("pair")) == 2)
    for _ in range(700):
        farm.step()
    assert all(dead not in d.cards for at, d in farm.journal if at > farm.now - 700)


@pytest.mark.parametrize("weights", [8 * GIB, 20 * GIB, 50 * GIB])
def test_a_dead_host_is_unrouted_in_15_s_and_the_copy_rebuilt_after_60(weights):
    farm = a_pair(weights)
    lost, stays = farm.ready("pair")
    host = farm.world.cards[lost.cards[0]].host
    farm.dead.add(host)
    assert farm.until(lambda f: lost.id not in routed(f, "pair")) <= POLICY.silent_s + 2
    assert stays.id in routed(farm, "pair")
    began = farm.now
    farm.until(lambda f: len(routed(f, "pair")) == 2)
    assert farm.now - began <= POLICY.lost_s + 12 + 3
    starts = [d for _, d in farm.journal if d.reason is Reason.REBUILD and d.refusal is None and d.service == "pair"]
    assert len(starts) == 1
    assert farm.world.cards[starts[0].cards[0]].host not in (host, farm.world.cards[stays.cards[0]].host)


def test_nothing_of_the_others_moves_but_what_was_lost_with_the_host():
    farm = a_pair(8 * GIB)
    lost = farm.ready("pair")[0]
    host = farm.world.cards[lost.cards[0]].host
    untouched = [r.id for r in farm.world.replicas.values() if farm.world.cards[r.cards[0]].host != host]
    farm.dead.add(host)
    for _ in range(200):
        farm.step()
    moved = {d.replica for at, d in farm.journal if d.refusal is None and d.replica in untouched}
    assert moved == set()


def test_while_gateways_still_reach_its_engines_a_silent_host_is_left_as_it_is():
    farm = a_pair(8 * GIB)
    host = farm.world.cards[farm.ready("pair")[0].cards[0]].host
    hosts = dict(farm.world.hosts)
    hosts[host] = replace(hosts[host], serving=True)
    farm.world = replace(farm.world, hosts=hosts)
    farm.dead.add(host)
    for _ in range(200):
        farm.step()
    assert len(routed(farm, "pair")) == 2
    assert not [d for _, d in farm.journal if d.reason is Reason.REBUILD]


def test_with_two_hosts_only_the_rebuilt_copy_may_share_the_standbys_host_never_its_card():
    """What a lost host leaves behind is no breach of the two-hosts rule, and a pair is still better than one."""
    farm = a_pair(8 * GIB, hosts=2)
    lost, stays = farm.ready("pair")
    farm.dead.add(farm.world.cards[lost.cards[0]].host)
    for _ in range(150):
        farm.step()
    live = routed(farm, "pair")
    assert stays.id in live
    cards = [farm.world.replicas[i].cards[0] for i in live]
    assert len(cards) == len(set(cards))


def test_a_host_that_comes_back_gives_the_third_copy_back_and_two_hosts_stay():
    farm = a_pair(8 * GIB)
    farm.world = replace(
        farm.world, services={**farm.world.services, "pair": replace(farm.world.services["pair"], max_replicas=2)}
    )
    host = farm.world.cards[farm.ready("pair")[0].cards[0]].host
    farm.dead.add(host)
    farm.until(lambda f: len(routed(f, "pair")) == 2 and f.now > 0, limit_s=200)
    farm.until(lambda f: len([r for r in f.ready("pair")]) == 3)
    farm.dead.clear()
    farm.until(lambda f: len(f.ready("pair")) == 2)
    assert len({farm.world.cards[r.cards[0]].host for r in farm.ready("pair")}) == 2
