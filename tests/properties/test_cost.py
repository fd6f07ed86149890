"""Rows of a card-hour sum to its price and to the card, whatever was told of it, in whatever order, however often."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from scheduler.cost import HOUR_S, CardHour, Part, Span, apportioned, shared, split, uses_of
from tests.properties.test_plan import MANY

START = 3600 * 480_000
CENTRES = frozenset({Part.RESERVED, Part.EXTERNAL, Part.BUFFER, Part.IDLE})


def a_history(dice: Random) -> list[Span]:
    """Phases of a few replicas: gaps, overlaps, repeats, ends that were never told, hours before and after."""
    spans = []
    for replica in range(dice.randint(0, 6)):
        at = START + dice.uniform(-3000, 3000)
        for _ in range(dice.randint(1, 5)):
            ended = at + dice.choice([0.0, 0.4, 7.3, 600.0, 4000.0])
            asleep = dice.random() < 0.3
            sizes = {"residue_mib": 1300} if asleep else {
                "weights_mib": dice.choice([500, 8000, 60000]), "kv_mib": dice.choice([0, 4000, 40000]),
                "headroom_mib": dice.choice([0, 400]), "overhead_mib": 600,
            }  # fmt: skip
            told = None if dice.random() < 0.2 else ended
            spans += [Span(replica, f"s{replica % 3}", "tuv"[replica % 3], at, told, **sizes)] * dice.randint(1, 2)
            at = ended + dice.choice([0.0, 0.0, 120.5, -200.0])
    dice.shuffle(spans)
    return spans


def an_hour(seed: int, price: int) -> CardHour:
    dice = Random(seed)
    total = dice.choice([0, 24576, 81920])
    measured = {r: dice.choice([0, 9000, 70000]) for r in range(6) if dice.random() < 0.5}
    return CardHour(
        price,
        total * HOUR_S,
        reserved=450 * HOUR_S,
        external=dice.choice([None, 0, 5000 * HOUR_S, 90_000 * HOUR_S]),
        buffer=total * HOUR_S * 8 // 100,
        owner=dice.choice(["", "o"]),
        uses=uses_of(a_history(dice), START, measured),
    )


@MANY
@given(st.integers(0, 2**32), st.integers(0, 10**6))
def test_rows_sum_to_the_price_and_to_the_card(seed, price):
    hour = an_hour(seed, price)
    rows = split(hour)
    assert sum(r.fen for r in rows) == price
    assert sum(r.mib_s for r in rows) == hour.total
    assert all(r.fen >= 0 and r.mib_s >= 0 for r in rows)
    assert len({(r.part, r.replica) for r in rows}) == len(rows)
    assert all((r.part in CENTRES) == (not r.service) for r in rows)


@MANY
@given(st.integers(0, 2**32), st.integers(0, 10**6), st.integers(0, 2**32))
def test_sharing_changes_no_sum(seed, price, callers):
    dice = Random(callers)
    rows = split(an_hour(seed, price))
    tokens = {f"s{i}": {t: dice.randint(0, 5000) for t in "tuvwx" if dice.random() < 0.6} for i in range(3)}
    found = [part for parts in shared(rows, tokens) for part in parts]
    assert sum(r.fen for r in found) == price
    assert sum(r.mib_s for r in found) == sum(r.mib_s for r in rows)
    for part in Part:
        assert sum(r.fen for r in found if r.part is part) == sum(r.fen for r in rows if r.part is part)


@MANY
@given(st.integers(0, 2**32))
def test_a_replica_is_never_in_two_phases_at_once(seed):
    for use in uses_of(a_history(Random(seed)), START):
        assert use.weights <= 60000 * HOUR_S
        assert use.residue <= 1300 * HOUR_S
        assert use.overhead <= 600 * HOUR_S


@MANY
@given(st.integers(0, 2**32))
def test_the_order_of_records_does_not_matter(seed):
    dice = Random(seed)
    spans = a_history(dice)
    turned = list(reversed(spans))
    total = {u.replica: sum(n for _, n in u.claimed) for u in uses_of(spans, START)}
    assert {u.replica: sum(n for _, n in u.claimed) for u in uses_of(turned, START)} == total


@MANY
@given(st.integers(0, 10**9), st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_apportioned_sums(amount, weights):
    assert sum(apportioned(amount, weights)) == amount
