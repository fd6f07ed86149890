"""S01: three services share an 80 GB card by their claims; the first one's standby is on another card and host."""

from __future__ import annotations

import pytest

from scheduler.bar import bar_of
from scheduler.draft import Draft
from scheduler.memory import allocatable_mib, oversell_pct, room_mib
from scheduler.world import Phase, Profile, Tier
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_service, a_world

WARM = {"tier": Tier.WARM}


def mib(gb: float) -> int:
    """A claim is rounded up: against the newcomer."""
    return -int(-gb * 1024 // 1)


def inst_a(**more):
    more.setdefault("min_replicas", 2)
    return a_service("inst-a", mib(14.2), mib(18.0), mib(1.4), priority=90, max_replicas=2, **more, **WARM)


def inst_b(**more):
    return a_service("inst-b", mib(6.4), mib(6.0), mib(0.6), profile=Profile.LOWFREQ, min_replicas=1, **more, **WARM)


def inst_c(**more):
    return a_service("inst-c", mib(3.1), mib(4.0), mib(0.5), profile=Profile.LOWFREQ, min_replicas=1, **more, **WARM)


@pytest.fixture
def farm() -> Farm:
    cards = [a_card(f"{host}-c{i}", host) for host in ("h1", "h2") for i in (1, 2)]
    farm = Farm(a_world(*cards, inst_a(), inst_b(), inst_c()))
    farm.until(lambda f: all(f.ready(s) for s in ("inst-a", "inst-b", "inst-c")) and len(f.ready("inst-a")) == 2)
    return farm


def shared_card(farm: Farm) -> str:
    (card,) = {farm.ready("inst-b")[0].cards[0], farm.ready("inst-c")[0].cards[0]}
    return card


def test_the_golden_figures_of_the_claims():
    assert [s.claim.fixed_mib for s in (inst_a(), inst_b(), inst_c())] == [16575, 7769, 4287]


def test_an_empty_card_allocates_all_but_reserve_and_buffer():
    assert allocatable_mib(Draft(a_world(a_card()), POLICY, NOW).book("c1")) == 74766


def test_all_three_share_one_card_and_17463_mib_are_left(farm):
    card = shared_card(farm)
    assert card in {r.cards[0] for r in farm.ready("inst-a")}
    assert room_mib(Draft(farm.world, POLICY, farm.now).book(card)) == 17463


def test_the_standby_is_on_another_card_and_another_host(farm):
    cards = {r.cards[0] for r in farm.ready("inst-a")}
    assert len(cards) == 2
    assert len({farm.world.cards[c].host for c in cards}) == 2


def test_the_bar_adds_up_to_the_card(farm):
    bar = bar_of(Draft(farm.world, POLICY, farm.now).book(shared_card(farm)))
    assert bar.sum_mib == bar.total_mib == 81920
    assert (bar.driver_reserved_mib, bar.buffer_mib, bar.external_mib, bar.free_mib) == (600, 6554, 0, 17463)
    assert sorted(s.weights_mib for s in bar.segments) == [mib(3.1), mib(6.4), mib(14.2)]
    assert all(s.headroom_mib and s.overhead_mib == 600 for s in bar.segments)


def test_each_cap_is_granted_in_full_so_oversell_is_none(farm):
    granted = {r.service: r.kv_granted_mib for r in farm.world.replicas.values()}
    assert granted == {"inst-a": 18432, "inst-b": 6144, "inst-c": 4096}
    assert oversell_pct(Draft(farm.world, POLICY, farm.now).book(shared_card(farm))) == 0


def test_nothing_more_is_to_be_done(farm):
    assert farm.step() == []
    assert {r.phase for r in farm.world.replicas.values()} == {Phase.READY}


@pytest.mark.parametrize("hosts", [2, 3, 5])
def test_it_holds_for_farms_of_other_sizes(hosts):
    cards = [a_card(f"h{h}-c{i}", f"h{h}") for h in range(hosts) for i in range(3)]
    farm = Farm(a_world(*cards, inst_a(), inst_b(), inst_c()))
    farm.until(lambda f: sum(len(f.ready(s)) for s in f.world.services) == 4)
    assert shared_card(farm) in {r.cards[0] for r in farm.ready("inst-a")}


def test_with_one_host_only_the_standby_is_refused_rather_than_put_beside():
    farm = Farm(a_world(a_card("c1"), a_card("c2"), inst_a()))
    farm.until(lambda f: bool(f.ready("inst-a")))
    farm.step()
    assert len(farm.ready("inst-a")) == 1
    assert farm.refusals("inst-a")[-1] == "two_hosts"
