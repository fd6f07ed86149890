"""Advice, symptoms and budgets over random figures: what they say holds together, more of a cause says no less."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from scheduler.advisor import Habit, Mode, Waiter, advise, lost_concurrency, residents
from scheduler.budget import Standing, forecast_fen, standing
from scheduler.call_budget import CallBudget, barred
from scheduler.policy import Policy
from scheduler.symptoms import (
    Broken,
    Busy,
    Caps,
    Figures,
    Kind,
    Mornings,
    Neighbour,
    PoolUse,
    Resident,
    Swaps,
    check_up,
)
from scheduler.thrash import Hour
from scheduler.world import Budget, Claim
from tests.properties.test_plan import MANY
from tests.scheduler.build import NOW, POLICY, a_card

SEEDS = st.integers(0, 2**32)
HOLDS = [Mode.ON_DEMAND, Mode.WARM, Mode.RESIDENT]  # by what it keeps from others
STANDS = [Standing.FINE, Standing.WARNED, Standing.SPENT]


def a_habit(dice: Random) -> Habit:
    share = dice.uniform(0, 1)
    return Habit(
        switches_h=dice.choice([0.0, dice.uniform(0, 60)]),
        load_s=dice.uniform(1, 300),
        wake_s=dice.uniform(0, 20),
        price_fen_h=dice.randint(0, 5000),
        share=share,
        residue_share=share * dice.random(),
        contended=dice.choice([0.0, dice.random()]),
        waiter=dice.choice(list(Waiter)),
        preload_hit=dice.choice([0.0, dice.random()]),
        can_sleep=dice.random() < 0.7,
        kept=dice.choice(["", "", "", "hot", "small"]),
    )


@MANY
@given(SEEDS)
def test_the_advice_is_the_cheapest_way_or_a_rule(seed):
    habit = a_habit(Random(seed))
    said = advise(habit, POLICY)
    fen = {p.mode: p.fen for p in said.prices}
    assert min(fen.values()) >= 0
    assert said.why == habit.kept
    assert said.mode is Mode.RESIDENT if habit.kept else fen[said.mode] == min(fen.values())
    assert (Mode.WARM in fen) is habit.can_sleep
    assert said.prices[0].waiting_s == 0
    assert said.prices[-1].holding_fen == 0


@MANY
@given(SEEDS, st.floats(1, 50))
def test_who_is_needed_more_often_holds_no_less_and_who_is_wanted_more_no_more(seed, times):
    habit = replace(a_habit(Random(seed)), kept="")
    busier = replace(habit, switches_h=habit.switches_h * times)
    assert HOLDS.index(advise(habit, POLICY).mode) <= HOLDS.index(advise(busier, POLICY).mode)
    dearer = replace(habit, price_fen_h=habit.price_fen_h * times)
    assert HOLDS.index(advise(dearer, POLICY).mode) <= HOLDS.index(advise(habit, POLICY).mode)


@MANY
@given(st.integers(2000, 200_000), st.integers(0, 60_000), st.integers(0, 60_000), st.integers(0, 4000))
def test_residents_fit_and_one_more_would_not(total, weights, kv, headroom):
    said = residents(a_card(total=total, reserved=min(600, total)), Claim(weights, kv, headroom, 600), POLICY)
    assert 0 <= said.fits <= POLICY.max_replicas_per_card
    assert said.fits * said.each_mib + said.left_mib == said.allocatable_mib
    assert said.left_mib >= 0
    if said.fits < POLICY.max_replicas_per_card:
        assert said.short_mib == said.each_mib - said.left_mib > 0


@MANY
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**4))
def test_lost_calls_are_what_the_memory_is_worth(free, held, call):
    lost = lost_concurrency(free, held, call)
    assert lost >= 0
    assert call == 0 or abs(lost - held / call) < 1


def some_figures(dice: Random) -> Figures:
    names = [f"s{i}" for i in range(dice.randint(1, 6))]
    own = [Resident(n, dice.randint(0, 50_000), dice.choice([0, 5, 21, 900]), dice.random() < 0.2) for n in names]
    beside = tuple(Neighbour(n, i, dice.choice([0.0, 1300.0, 9e4]), dice.randint(0, 9000)) for i, n in enumerate(names))
    return Figures(
        pools=[PoolUse("p", 9, dice.uniform(50, 100), dice.choice([None, dice.uniform(0, 30)]), tuple(own))],
        mornings=[Mornings(n, tuple(dice.choice([0.0, 1.0, 9.0]) for _ in range(dice.randint(0, 7)))) for n in names],
        caps=[Caps(n, dice.randint(0, 9), dice.randint(0, 99), 15, dice.choice([None, 9.0, 40.0])) for n in names],
        broken=[Broken(n, dice.uniform(0, 999), dice.randint(0, 3), "crashed", dice.randint(0, 1)) for n in names],
        swaps=[Swaps(n, Hour(dice.randint(0, 20), dice.randint(0, 5), dice.randint(0, 60))) for n in names],
        busy=[Busy(n, dice.choice([None, 0, 4]), dice.choice([None, 100.0, 3000.0]), 800, beside) for n in names],
    )


@MANY
@given(SEEDS)
def test_symptoms_hold_together(seed):
    figures = some_figures(Random(seed))
    said = check_up(figures, POLICY)
    assert len({(s.kind, s.service, s.pool) for s in said}) == len(said)
    for one in said:
        assert one.remedies
        assert bool(one.service) is not bool(one.pool)
        if one.kind is Kind.FULL_IDLE:
            kept = {r.service for r in figures.pools[0].residents if r.kept}
            assert one.numbers["gain_mib"] == sum(mib for _, mib in one.others) > 0
            assert not kept & {name for name, _ in one.others}
        if one.kind is Kind.NEIGHBOUR:
            assert one.numbers["held_mib"] == max(mib for _, mib in one.others)


@MANY
@given(SEEDS)
def test_stricter_thresholds_find_no_more(seed):
    figures = some_figures(Random(seed))
    strict = Policy(
        full_pct=95,
        idle_util_pct=5,
        few_calls_24h=1,
        first_call_days=5,
        capped_least=6,
        dead_after_s=600,
        thrash_least=9,
    )
    found = {(s.kind, s.service, s.pool) for s in check_up(figures, strict)}
    assert found <= {(s.kind, s.service, s.pool) for s in check_up(figures, POLICY)}


@MANY
@given(SEEDS)
def test_the_order_of_the_figures_does_not_matter(seed):
    figures = some_figures(Random(seed))
    turned = Figures(**{name: tuple(reversed(getattr(figures, name))) for name in Figures.__slots__})
    assert check_up(turned, POLICY) == check_up(figures, POLICY)


@MANY
@given(SEEDS)
def test_barred_is_who_has_a_spent_budget(seed):
    dice = Random(seed)
    budgets = [
        CallBudget(
            dice.choice("tu"),
            limit=dice.randint(0, 5),
            used=dice.randint(0, 5),
            resets_at=NOW + dice.choice([-5, 0, 5, 50]),
            key=dice.choice([None, 1, 2]),
        )
        for _ in range(dice.randint(0, 6))
    ]
    found = barred(budgets, NOW)
    for tenant in "tu":
        for key in (1, 2, 3):
            mine = [b for b in budgets if b.key == key or (b.key is None and b.tenant == tenant)]
            ends = [b.resets_at for b in mine if b.used >= b.limit and b.resets_at > NOW]
            assert found.until(tenant, key) == max(ends, default=None)


@MANY
@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**6), st.integers(0, 10**6))
def test_more_spent_never_stands_better(limit, spent, more, foreseen):
    before, after = Budget("t", limit, spent, foreseen), Budget("t", limit, spent + more, foreseen)
    assert STANDS.index(standing(before, POLICY)) <= STANDS.index(standing(after, POLICY))
    assert (standing(before, POLICY) is Standing.SPENT) is (spent >= limit), "a forecast alone shrinks nothing"


@MANY
@given(st.integers(0, 10**7), st.integers(0, 10**6), st.integers(0, 744), st.integers(0, 744))
def test_a_forecast_is_never_below_what_is_spent(spent, recent, hours, left):
    foreseen = forecast_fen(spent, recent, hours, left)
    assert foreseen is None if not hours else foreseen >= spent
