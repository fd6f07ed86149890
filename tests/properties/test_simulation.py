"""Rules that hold in every simulated farm, by random farms and random calls."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.planner import plan
from scheduler.policy import DEFAULT
from scheduler.simulation import Call, Growth, Machine, learning, machines
from scheduler.simulation.farm import _play, _settle_in, _timer
from scheduler.simulation.state import Farm
from scheduler.world import Phase, Profile, Tier
from tests.properties.test_plan import SAME
from tests.scheduler.build import a_card, a_host, a_service, a_world

BEGAN = 20_829 * 86400.0
HOURS = 3
FEW = settings(SAME, max_examples=12)
HASTY = replace(DEFAULT, idle_unload_s=120, min_loaded_s=60, grace_s=30, half_empty_pct=0)


def a_farm(seed: int) -> tuple[Farm, list[Call]]:
    """Two small hosts, a handful of services of all kinds, calls in bursts, engines that grow."""
    dice = Random(seed)
    services = [
        a_service(
            f"s{i}",
            weights=dice.choice([500, 6000, 14000, 30000]),
            kv=dice.choice([1000, 5000]),
            profile=dice.choice(list(Profile)),
            tier=dice.choice(list(Tier)),
            priority=dice.choice([30, 50, 70]),
            max_replicas=dice.choice([1, 1, 3]),
            max_num_seqs=dice.choice([2, 8]),
        )
        for i in range(dice.randint(2, 6))
    ]
    cards = [a_card(f"c{i}", f"h{i % 2}", total=dice.choice([24576, 46080])) for i in range(dice.randint(1, 4))]
    hosts = [a_host(f"h{i}", bandwidth_mib_s=dice.choice([500, 2000])) for i in range(2)]
    machine = Machine(init_s=dice.choice([3.0, 20.0]), interference=dice.choice([0.5, 1.0, 2.0]))
    farm = Farm(a_world(*cards, *hosts, *services), HASTY, machine, plan, BEGAN, BEGAN)
    calls = []
    for _ in range(dice.randint(1, 25)):
        at, name = dice.uniform(0, HOURS * 3600), dice.choice(services).name
        for _ in range(dice.choice([1, 1, 2, 30])):
            calls.append(Call(BEGAN + at, name, dice.random() < 0.5, 0.2, dice.uniform(0.5, 60)))
            at += dice.expovariate(1.0)
    for _ in range(dice.randint(0, 6)):
        growth = Growth(
            BEGAN + dice.uniform(0, HOURS * 3600), dice.choice(services).name, dice.randint(100, 9000), 90.0
        )
        farm.at(growth.at, lambda growth=growth: machines.grow(farm, growth))
    return farm, sorted(calls)


def played(seed: int) -> Farm:
    farm, calls = a_farm(seed)
    _settle_in(farm)
    learning.start(farm)
    farm.at(BEGAN, lambda: _timer(farm))
    for hour in range(1, HOURS + 2):
        farm.at(BEGAN + hour * 1800, lambda: check(farm))
    _play(farm, iter(calls), BEGAN + (HOURS + 1) * 3600)
    check(farm)
    return farm


def check(farm: Farm) -> None:
    """No card holds more than it has; who answers is ready; counts are those of the engines."""
    for name, card in farm.world.cards.items():
        assert farm.used_mib(name) <= card.total_mib
        assert {c.seen.id for c in farm.on_card[name]} == {i for i, c in farm.copies.items() if name in c.seen.cards}
    for name, desk in farm.desks.items():
        assert all(c.seen.phase is Phase.READY and c.seen.service == name for c in desk.routed)
        assert desk.held_streams == sum(call.stream for call, _ in desk.held)
    for copy in farm.copies.values():
        assert 0 <= copy.running <= copy.service.max_num_seqs
        assert not copy.queue or copy.running == copy.service.max_num_seqs


@FEW
@given(st.integers(0, 2**32))
def test_every_call_ends_one_way_or_is_still_in_hand(seed: int) -> None:
    farm = played(seed)
    m = farm.measures
    in_hand = sum(c.in_flight for c in farm.copies.values()) + sum(len(d.held) for d in farm.desks.values())
    assert m.calls == m.answered + m.told + m.cut + m.cut_by_kills + in_hand


@FEW
@given(st.integers(0, 2**32))
def test_no_move_for_our_convenience_cuts_a_call(seed: int) -> None:
    farm = played(seed)
    assert farm.measures.cut == 0 or farm.measures.growths > farm.measures.absorbed


@FEW
@given(st.integers(0, 2**32))
def test_the_same_farm_is_played_the_same_again(seed: int) -> None:
    first, second = played(seed).measures, played(seed).measures
    assert (first.loads, first.plans, first.busy_card_s, first.told) == (
        second.loads, second.plans, second.busy_card_s, second.told,
    )  # fmt: skip
