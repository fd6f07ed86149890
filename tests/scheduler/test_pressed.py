"""When a card is under pressure, and when no longer."""

from __future__ import annotations

from scheduler.decision import Code
from scheduler.policy import Policy
from scheduler.pressed import nearly_full, no_newcomers, samples_after, short_mib, under_pressure, used_pct
from tests.scheduler.build import POLICY, a_card
from tests.scheduler.cases import cases

LINE = 76186  # 93 % of 81920, rounded up
RELIEF = 69632  # 85 %
NEARLY = 81920 - 3277  # less than half of the buffer of 6554 left


def card(used, pressed=0):
    return a_card(unavailable_mib=used, pressed_samples=pressed)


@cases(
    ("before", "used", "after"),
    [
        (0, LINE - 1, 0),
        (0, LINE, 1),
        (1, LINE, 2),
        (2, LINE, 2),  # no further than it matters: a standing state writes no row
        (1, LINE - 1, 0),  # one peak that passed
        (2, LINE - 1, 2),
        (2, RELIEF, 2),
        (2, RELIEF - 1, 0),
        (1, RELIEF, 0),
        (0, NEARLY, 1),
        (0, NEARLY + 1, 2),  # at once
        (0, 81920, 2),
        (0, None, 0),
        (1, None, 1),  # a sample that cannot be read says nothing
        (2, None, 2),
    ],
)
def test_samples_over_the_line_are_counted_and_kept_until_relief(before, used, after):
    assert samples_after(card(used), before, POLICY) == after


@cases(
    ("used", "pressed", "pressure"),
    [(LINE, 1, False), (LINE, 2, True), (70000, 2, True), (NEARLY + 1, 0, True), (None, 2, False), (600, 0, False)],
)
def test_two_samples_or_half_a_buffer_are_pressure(used, pressed, pressure):
    assert under_pressure(card(used, pressed), POLICY) is pressure
    refused = no_newcomers(card(used, pressed), POLICY)
    assert (refused is not None) is pressure
    assert refused is None or (refused.code, refused.numbers["card"]) == (Code.UNDER_PRESSURE, "c1")


@cases("total", [16384, 24576, 49140, 81559, 98304])
def test_what_must_go_brings_use_below_the_line_and_a_mib_less_would_not(total):
    for used in (total, total * 93 // 100, total * 86 // 100):
        short = short_mib(a_card(total=total), POLICY, used)
        assert (used - short) * 100 < total * 85 <= (used - short + 1) * 100


def test_nothing_must_go_below_the_line():
    assert short_mib(card(RELIEF), POLICY, RELIEF) == 1
    assert short_mib(card(RELIEF - 1), POLICY, RELIEF - 1) <= 0


def test_the_lines_are_the_policys():
    eager = Policy(pressure_pct=60, relief_pct=50, pressure_samples=1, pressure_buffer_pct=0)
    assert samples_after(card(50000), 0, eager) == 1
    assert under_pressure(card(50000, 1), eager)
    assert not nearly_full(card(81900), eager)
    assert samples_after(card(40959), 1, eager) == 0


def test_the_share_is_said_to_one_decimal():
    assert used_pct(card(76596)) == 93.5
