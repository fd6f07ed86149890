"""S12: three resident, one warm slot, or on demand: advice turns with how often callers switch, both prices shown."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from scheduler.advisor import Habit, Mode, Waiter, advise, lost_concurrency, prices
from tests.scheduler.build import POLICY

STORY = Habit(switches_h=6, load_s=15, wake_s=3, price_fen_h=2000, share=0.4, residue_share=0.06, contended=0.4)


@pytest.mark.parametrize(("a_day", "mode"), [(6 * 24, Mode.WARM), (3, Mode.ON_DEMAND), (300, Mode.RESIDENT)])
def test_the_story(a_day, mode):
    assert advise(replace(STORY, switches_h=a_day / 24), POLICY).mode is mode


def test_ninety_seconds_of_waiting_an_hour_are_said():
    by_mode = {p.mode: p for p in prices(STORY, POLICY)}
    assert by_mode[Mode.ON_DEMAND].waiting_s == 90
    assert by_mode[Mode.RESIDENT].waiting_s == 0
    assert by_mode[Mode.RESIDENT].holding_fen > by_mode[Mode.WARM].holding_fen > by_mode[Mode.ON_DEMAND].holding_fen


def test_three_resident_cost_half_the_concurrency():
    """8 calls at once beside one other, 4 beside three: what the other two hold is worth four calls."""
    call_mib, left_mib, two_others_mib = 1000, 4000, 4000
    assert lost_concurrency(left_mib, two_others_mib, call_mib) == 4


@pytest.mark.parametrize("seed", range(30))
def test_more_switches_never_advise_to_hold_less(seed):
    dice = Random(seed)
    habit = Habit(
        switches_h=0,
        load_s=dice.uniform(5, 120),
        wake_s=dice.uniform(0.5, 5),
        price_fen_h=dice.randint(100, 5000),
        share=(share := dice.uniform(0.05, 0.9)),
        residue_share=share * dice.uniform(0.02, 0.3),
        contended=dice.uniform(0.05, 1.0),
        waiter=dice.choice([Waiter.PERSON, Waiter.BACKGROUND]),
    )
    order = [Mode.ON_DEMAND, Mode.WARM, Mode.RESIDENT]
    said = [order.index(advise(replace(habit, switches_h=n / 24), POLICY).mode) for n in range(1, 4000, 37)]
    assert said == sorted(said)
    cheaper = [order.index(advise(replace(habit, switches_h=2, contended=c / 20), POLICY).mode) for c in range(21)]
    assert cheaper == sorted(cheaper, reverse=True), "the more others want the memory, the less is held"


@pytest.mark.parametrize("seed", range(10))
def test_the_advice_is_never_dearer_than_another_way(seed):
    dice = Random(seed)
    habit = replace(STORY, switches_h=dice.uniform(0, 40), contended=dice.random(), preload_hit=dice.random())
    said = advise(habit, POLICY)
    assert min(p.fen for p in said.prices) == next(p.fen for p in said.prices if p.mode is said.mode)
